"""Errors as programs word them, and the advice that goes with them."""

import time

import pytest

from scriptmode_runtime._report.hints import hint
from scriptmode_runtime.plan import ProcessSpec

SPEC = ProcessSpec("worker", ("/venv/bin/python", "train.py"), {}, "/")
LIBRARY = "/venv/lib/python3.11/site-packages/horovod/tensorflow/mpi_lib.cpython-311-x86_64-linux-gnu.so"
#: TensorFlow 2.21.0 and Keras 3.15.1, `model.fit` in MultiWorkerMirroredStrategy's scope on two workers.
KERAS_THREE = """  File "/venv/lib/python3.11/site-packages/tensorflow/python/framework/constant_op.py", line 108, in convert_to_eager_tensor
    return ops.EagerTensor(value, ctx.device_name, dtype)
ValueError: Attempt to convert a value (PerReplica:{
  0: <tf.Tensor: shape=(4, 4), dtype=float32, numpy=
array([[0., 0., 0., 0.],
       [0., 0., 0., 0.]], dtype=float32)>
}) with an unsupported type (<class 'tensorflow.python.distribute.values.PerReplica'>) to a Tensor.
"""
#: The same versions, `model.fit` in ParameterServerStrategy's scope.
KERAS_THREE_SERVERS = """  File "/venv/lib/python3.12/site-packages/keras/src/utils/traceback_utils.py", line 122, in error_handler
    raise e.with_traceback(filtered_tb) from None
  File "/venv/lib/python3.12/site-packages/tensorflow/python/distribute/input_lib.py", line 984, in __iter__
    raise ValueError("To use this dataset, you need to pass this dataset to "
ValueError: To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset.
"""
#: Horovod 0.28.1 built for TensorFlow 2.15.1, imported with 2.21.0.
OTHER_TENSORFLOW = f"""tensorflow.python.framework.errors_impl.NotFoundError: {LIBRARY}: undefined symbol: _ZN4absl12lts_2023012518container_internal11kEmptyGroupE

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "<string>", line 1, in <module>
horovod.common.exceptions.HorovodVersionMismatchError: Framework tensorflow installed with version 2.15.1 but found version 2.21.0.
             This can result in unexpected behavior including runtime errors.
             Reinstall Horovod using `pip install --no-cache-dir` to build with the new version.
"""
#: Horovod 0.28.1 and Keras 3.15.1: MetricAverageCallback, the tape and the other callback, broadcast_variables.
HOROVOD_AND_KERAS_THREE = [
    "AttributeError: module 'keras.backend' has no attribute 'constant'",
    "AttributeError: 'Variable' object has no attribute 'ref'",
    "    AttributeError: 'SymbolicTensor' object has no attribute 'assign'",
]
NOT_BUILT = f"""ImportError: Extension horovod.tensorflow has not been built: {LIBRARY} not found
If this is not expected, reinstall Horovod with HOROVOD_WITH_TENSORFLOW=1 to debug the build error.
"""
OOM = "OOM when allocating tensor with shape[4194304,4194304] and type float on /job:localhost/replica:0/task:0/device:{}:0 by allocator {} [Op:Fill] name: "
NO_DAEMON_FOUR = "-----\nORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n"
NO_DAEMON_FIVE = "-----\nA daemon failed to report back after being spawned. This could\nbe due to several factors\n"

NO_DISTRIBUTION = """WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/polars/
ERROR: Could not find a version that satisfies the requirement polars>=9 (from versions: none)
ERROR: No matching distribution found for polars>=9
"""

#: What is found in outputs, by the advice that goes with it.
MESSAGES = {
    "use scriptmode_runtime.tensorflow.PipeModeDataset": [
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: {{function_node}} /opt/ml/input/data/train_0; Illegal seek"
    ],
    "write to the directory that SM_MODEL_DIR or SM_OUTPUT_DATA_DIR names": [
        "FileNotFoundError: [Errno 2] No such file or directory: '/opt/ml/model/weights.h5'"
    ],
    "or has it in Pipe mode, as FIFOs <channel>_0, <channel>_1": [
        "FileNotFoundError: [Errno 2] No such file or directory: '/opt/ml/input/data/train'"
    ],
    "give data that the script downloads as a channel": [
        "Exception: URL fetch failure on https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz: None -- [Errno -3] Temporary failure in name resolution",
        """requests.exceptions.ConnectionError: HTTPSConnectionPool(host='storage.googleapis.com', port=443): Max retries exceeded with url: /x (Caused by NameResolutionError("HTTPSConnection(host='storage.googleapis.com', port=443): Failed to resolve 'storage.googleapis.com' ([Errno -2] Name or service not known)"))""",
        "tensorflow.python.framework.errors_impl.FailedPreconditionError: Error executing an HTTP request: libcurl code 6 meaning 'Couldn't resolve host name', error details: Could not resolve host: www.googleapis.com",
    ],
    "The package index has no polars>=9: correct its name or version": [
        NO_DISTRIBUTION,
        "error: No solution found when resolving dependencies\n  cause: Because only polars<=1.1 is available and you require polars>=9, we",
    ],
    "The package index has no polar: correct its name or version": [
        "No solution found when resolving dependencies:\n  cause: Because polar was not found in the package registry and you"
    ],
    "The job has no channel of that name: give an input with it": ["KeyError: 'SM_CHANNEL_EVAL'"],
    "Horovod is not installed in /venv/bin/python": ["ModuleNotFoundError: No module named 'horovod'"],
    "tensorflow is not installed in /venv/bin/python: install it there with pip install 'scriptmode[tensorflow]'": [
        "ModuleNotFoundError: No module named 'tensorflow'"
    ],
    "pandas is not installed in /venv/bin/python": ["ModuleNotFoundError: No module named 'pandas'"],
    "This TensorFlow has no ": [
        "ModuleNotFoundError: No module named 'tensorflow.contrib'",
        "ModuleNotFoundError: No module named 'tensorflow.examples'",
        "ModuleNotFoundError: No module named 'tensorflow_estimator'",
        "AttributeError: module 'tensorflow' has no attribute 'contrib'",
        "AttributeError: module 'tensorflow._api.v2.compat.v1' has no attribute 'estimator'",
    ],
    "global_variables_initializer: names of 1 are in tensorflow.compat.v1": [
        "AttributeError: module 'tensorflow' has no attribute 'global_variables_initializer'"
    ],
    "was built for another TensorFlow or Open MPI": [
        OTHER_TENSORFLOW,
        OTHER_TENSORFLOW.splitlines()[0],
        NOT_BUILT,
        f"OSError: {LIBRARY}: undefined symbol: ompi_mpi_op_sum",
        "ImportError: libmpi.so.40: cannot open shared object file: No such file",
        "ValueError: Neither MPI nor Gloo support has been built.",
    ],
    "has the name of a module": [
        "AttributeError: partially initialized module 'tensorflow' has no attribute 'distribute' (most likely due to a circular import)",
        "AttributeError: module 'random' has no attribute 'random' (consider renaming '/opt/ml/code/random.py' since it has the same name as the standard library module named 'random' and prevents importing that standard library module)",
    ],
    "This host cannot start more processes and threads: ": [
        "RuntimeError: can't start new thread",
        "train.sh: fork: retry: Resource temporarily unavailable",
    ],
    "The host ran out of memory: ": [
        "MemoryError",
        "OSError: [Errno 12] Cannot allocate memory",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        OOM.format("CPU", "mklcpu"),
    ],
    "The GPU ran out of memory": [
        OOM.format("GPU", "GPU_0_bfc"),
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:828] failed to allocate 32.00M (33554432 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    ],
    "A disk is full": ["OSError: [Errno 28] No space left on device", "OSError: [Errno 122] Disk quota exceeded"],
    "A port of this task is held by another program": [
        "OSError: [Errno 98] Address already in use",
        "tensorflow.python.framework.errors_impl.UnknownError: Could not start gRPC server",
    ],
    "takes a chief": [
        "ValueError: Disallowed task type found in cluster spec. Allowed types are ('chief', 'worker', 'evaluator', 'ps', None) and the cluster spec is ClusterSpec({'master': ['127.0.0.1:1']})."
    ],
    "Keras 3 cannot fit on several workers: use Keras 2 (tf-keras of TensorFlow's version, TF_USE_LEGACY_KERAS=1), or write the loop": [
        KERAS_THREE
    ],
    "Keras 3 cannot fit with parameter servers: use Keras 2 (tf-keras": [KERAS_THREE_SERVERS],
    "import scriptmode_runtime.tensorflow.horovod instead": HOROVOD_AND_KERAS_THREE,
    "--name value, or -n value": [
        "train.py: error: unrecognized arguments: --lr 0.1",
        "train.py: error: unrecognized arguments: -n 4",
        "Error: No such option: --lr",
        "FATAL Flags parsing error: Unknown command line flag 'lr'",
    ],
    "flags go after --": ["train.py: error: unrecognized arguments: true"],
    "The launcher sets no such variable: SM_MODEL_DIR": ["KeyError: 'SM_MODEL_DIRECTORY'", "KeyError: 'SM_HP_EPOCS'"],
    "give the file's directory as source_dir, or data as an input (SM_CHANNEL_NAME)": [
        *(f"Error: No such file or directory: '{name}'" for name in ("data/a.csv", "a.csv", "/x/algo-1/code/a.csv")),
        *("FileNotFoundError: a.csv not found.", "NotFoundError: {{x}} a.csv; No such file or directory [Op:Y]"),
    ],
    "A job has no terminal": ["bdb.BdbQuit", "EOFError: EOF when reading a line"],
    "save it with the line ends of Unix": [
        "/usr/bin/env: \u2018python\\r\u2019: No such file or directory",
        "train.sh: line 2: $'\\r': command not found",
        "bash: ./train.sh: /bin/sh^M: bad interpreter: No such file or directory",
        "train.sh: 2: \r: not found",
    ],
    "are given --model_dir": ["train.py: error: unrecognized arguments: --lr 0.1 --model_dir s3://b/m"],
    "as a hyperparameter of that name": ["train.py: error: the following arguments are required: --data"],
    "a channel's directory is in SM_CHANNEL_NAME": ["train.py: error: the following arguments are required: --train"],
    "could not start its daemon": [NO_DAEMON_FOUR, NO_DAEMON_FIVE],
}


@pytest.mark.parametrize("advice", MESSAGES)
def test_the_usual_mistakes_come_with_the_next_step_in_one_line(advice):
    for output in MESSAGES[advice]:
        found = hint(f"before\n{output}\n", 1, SPEC)
        assert advice in found, output
        assert found == hint(output, 1, SPEC)
        assert "\n" not in found
        assert len(found) < 150  # leaves space for the error


@pytest.mark.parametrize(
    ("output", "code", "advice"),
    [
        ("", 137, "If it was not killed on purpose, memory ran out"),
        ("MemoryError", 137, "The host ran out of memory"),
        ("", 139, "PYTHONFAULTHANDLER=1"),
        ("", 135, "/dev/shm"),
        ("", 132, "instructions"),
    ],
)
def test_an_exit_code_alone_has_a_hint(output, code, advice):
    assert advice in hint(output, code, SPEC)


@pytest.mark.parametrize(
    "output",
    [
        "404: not found",
        "FileNotFoundError: [Errno 2] No such file or directory: 'git'",
        "I0000 00:00:1795266079.250050   29108 cudart_stub.cc:31] Could not find cuda drivers on your machine, GPU will not be used.",
        "E0000 00:00:1795266082.992055   29108 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)",
        "Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open shared object file",
    ],
)
def test_what_is_not_known_or_no_error_brings_no_advice(output):
    assert hint(output, 1, SPEC) == ""


def test_the_last_match_in_the_output_applies():
    assert "disk" in hint("MemoryError\nNo space left on device\n", 1, SPEC)
    assert "memory" in hint("No space left on device\nMemoryError\n", 1, SPEC)


def test_what_happened_long_before_a_traceback_is_not_its_reason():
    traceback = "Traceback (most recent call last):\n  File\nValueError: no\n"
    logged = "W: No space left on device\n" + "step\n" * 500
    assert hint(logged + traceback, 1, SPEC) == ""
    assert "disk" in hint("W: No space left on device\n" + traceback, 1, SPEC)


@pytest.mark.parametrize(
    "between",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
def test_the_reason_at_the_beginning_of_a_chain_of_tracebacks_is_found(between):
    first = "Traceback (most recent call last):\n  File\nOSError: [Errno 28] No space left on device\n"
    second = f"Traceback (most recent call last):\n{'  File' * 999}\nRuntimeError: no checkpoint\n"
    assert "disk" in hint(f"{first}\n{between}\n\n{second}", 1, SPEC)


HOSTILE = [
    "x", "horovod/", "libmpi", "libmpi.so", "libmpi.so.", "OOM when allocating", "OOM when allocating GPU:",
    "unrecognized arguments: ", "unrecognized arguments:",
    "module 'tensorflow", "module '",
    "module 'keras", "module 'keras.", "partially initialized module '", "ModuleNotFoundError: No module named '", "unsupported type (", NO_DAEMON_FIVE,
    "Traceback (most recent call last):", "No such file or directory: 'a", "\nFileNotFoundError: a", "No such file or directory: '/", "KeyError: 'SM_",
    "Traceback (most recent call last):\nDuring handling of the above exception, another exception occurred:\n",
]  # fmt: skip


@pytest.mark.parametrize("word", HOSTILE)
def test_no_output_keeps_the_report_waiting(word):
    started = time.process_time()
    hint((word * 65_536)[:65_536], 1, SPEC)
    assert time.process_time() - started < 0.3
