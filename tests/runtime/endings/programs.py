"""Programs that end in failure, as users write them: Python, shell, pip, TensorFlow, MPI."""

#: Programs in Python, by what ends them.
PYTHON = {
    "sys.exit with a text": 'import sys\nprint("epoch 1")\nsys.exit("no data in the channel")',
    "sys.exit with a number": 'import sys\nprint("epoch 1 loss 0.5")\nsys.exit(7)',
    "sys.exit without output": "import sys\nsys.exit(3)",
    "os._exit": 'import os\nprint("giving up: the learning rate is negative", flush=True)\nos._exit(9)',
    "an exception": 'def train():\n    raise ValueError("the loss is not a number")\n\ntrain()',
    "an exception without a message": "raise KeyboardInterrupt",
    "an assertion": 'rate = -1\nassert rate > 0, f"the rate is {rate}"',
    "an assertion without a message": "assert 1 > 2",
    "a key": 'parameters = {"lr": 1}\nprint(parameters["learning_rate"])',
    "a missing file": 'open("/opt/ml/input/data/train/labels.csv")',
    "a missing module": "import a_module_that_nobody_has",
    "a syntax error": 'print("a)',
    "an indentation error": "def f():\nprint(1)",
    "a cause": 'try:\n    int("x")\nexcept ValueError as error:\n    raise RuntimeError("the configuration is wrong") from error',
    "an exception while another is handled": 'try:\n    int("x")\nexcept ValueError:\n    {}["y"]',
    "a group": 'raise ExceptionGroup("two workers failed", [ValueError("no rate"), OSError(28, "No space left on device")])',
    "a message of many lines": 'raise RuntimeError("the configuration is wrong:\\n" + "\\n".join(f"line {n} is unknown" for n in range(300)))',
    "a message of one long line": 'raise RuntimeError("x" * 5000)',
    "a library with many frames": ('import json\n\n\ndef load():\n    return json.loads("[" * 100_000)\n\n\nload()'),
    "frames of a recursion": "def f(n):\n    return f(n + 1)\n\n\nf(0)",
    "a thread": (
        "import sys, threading\n\n\ndef feed():\n"
        '    raise OSError("the queue is closed")\n\n\n'
        "thread = threading.Thread(target=feed)\nthread.start()\nthread.join()\nsys.exit(1)"
    ),
    "a process of a pool": (
        "import multiprocessing\n\n\ndef half(n):\n    return 1 / n\n\n\n"
        'with multiprocessing.get_context("fork").Pool(1) as pool:\n    pool.map(half, [1, 0])'
    ),
    "argparse": (
        "import argparse\nparser = argparse.ArgumentParser('train.py')\nparser.add_argument('--lr', type=float)\n"
        "parser.parse_args(['--lr', 'fast'])"
    ),
    "argparse, an argument that is missing": (
        "import argparse\nparser = argparse.ArgumentParser('train.py')\nparser.add_argument('--epochs', required=True)\n"
        "parser.parse_args([])"
    ),
    "a progress bar before the error": (
        "import sys\nfor n in range(50):\n    sys.stdout.write(f'\\r{n}/50 loss 0.1')\n"
        'raise ValueError("the batch is empty")'
    ),
    "output after the error": (
        'import atexit\natexit.register(lambda: print("closing the session"))\nraise ValueError("the batch is empty")'
    ),
    "an ignored error after it": (
        'class Session:\n    def __del__(self):\n        raise OSError("closed")\n\n\nsession = Session()\nraise ValueError("the batch is empty")'
    ),
    "colours": 'import sys\nsys.exit("\\x1b[31mthe data is empty\\x1b[0m\\x00")',
    "a segmentation fault": "import ctypes\nctypes.string_at(0)",
    "a segmentation fault that is traced": "import ctypes, faulthandler\nfaulthandler.enable()\nctypes.string_at(0)",
    "abort": "import os, sys\nsys.stderr.write(\"terminate called after throwing an instance of 'std::bad_alloc'\\n  what():  std::bad_alloc\\n\")\nsys.stderr.flush()\nos.abort()",
    "SIGKILL": 'import os, signal\nprint("step 5", flush=True)\nos.kill(os.getpid(), signal.SIGKILL)',
    "SIGTERM": 'import os, signal\nprint("step 5", flush=True)\nos.kill(os.getpid(), signal.SIGTERM)',
    "memory": "x = []\nraise MemoryError",
    "a warning and then an exit": 'import sys, warnings\nwarnings.warn("old")\nsys.exit("the input has no label")',
    "a message of two lines": 'raise ValueError("the shapes differ:\\n(3, 4) and (4, 3)")',
    "notes of an exception": 'error = ValueError("no batch")\nerror.add_note("while reading part-3")\nraise error',
    "an exception class of the source": "class DataError(Exception):\n    pass\n\n\nraise DataError('part-3 is empty')",
    "a missing attribute": "import os\nos.pth",
    "a division": "def mean(values):\n    return sum(values) / len(values)\n\n\nmean([])",
    "logging": 'import logging, sys\nlogging.error("the checkpoint is from another model")\nsys.exit(1)',
    "an error word in ordinary output": 'import sys\nprint("validation error: 0.25")\nsys.exit("stopped: the loss grows")',
    "absl flags": (
        "import sys\nsys.stderr.write(\"FATAL Flags parsing error: Unknown command line flag 'lr'\\n"
        'Pass --helpshort or --helpfull to see help on flags.\\n")\nsys.exit(1)'
    ),
}
#: Shell commands.
SHELL = {
    "cp": "cp /opt/ml/input/data/train/labels.csv .",
    "python without its file": "python3 /nowhere/train.py",
    "a command that is missing": "set -e\necho start\na_command_that_nobody_has --epochs 3",
    "a file that is not executable": "printf 'x' > tool; chmod 644 tool; ./tool",
    "an unset variable": 'set -u\necho "$NOT_SET"',
    "set -e": "set -e\necho reading\nfalse",
    "exit with a text": 'echo "no GPU is free" >&2; exit 4',
    "killed": "kill -9 $$",
    "a child that was killed": 'sh -c "kill -9 \\$\\$"; exit $?',
    "grep": "grep label /nowhere/labels.csv",
    "tar": "tar -xf /nowhere/data.tar",
    "a syntax error of the shell": "if true; then",
    "cat": "cat /nowhere/labels.csv | sort; exit ${PIPESTATUS[0]}",
    "mkdir": "mkdir /proc/model",
}
PIP = {
    "a package that does not exist": "python3 -m pip --no-input install --no-index a-package-that-nobody-has==1.2.3",
    "a file of requirements that does not exist": "python3 -m pip --no-input install -r missing.txt",
    "a version that is none": "python3 -m pip --no-input install --no-index 'numpy==one'",
}
_MODEL = (
    "import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nimport numpy\nimport tensorflow as tf\n\n"
    "model = tf.keras.Sequential([tf.keras.layers.Dense(3)])\n"
    "model.compile('sgd', tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))\n"
)
TENSORFLOW = {
    "a label that is out of range": _MODEL + "model.fit(numpy.ones((8, 4)), numpy.full(8, 9), verbose=0)",
    "shapes that differ": _MODEL
    + "model.fit(numpy.ones((8, 4)), numpy.zeros(8), verbose=0)\nmodel.predict(numpy.ones((8, 5)), verbose=0)",
    "a file that does not exist": (
        "import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nimport tensorflow as tf\n\n"
        "for record in tf.data.TFRecordDataset('/nowhere/part-0'):\n    print(record)"
    ),
    "a record that is damaged": (
        "import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nimport tensorflow as tf\n\n"
        "open('part-0', 'wb').write(b'x' * 100)\nfor record in tf.data.TFRecordDataset('part-0'):\n    print(record)"
    ),
    "a matrix product": (
        "import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nimport tensorflow as tf\n\n"
        "tf.linalg.matmul(tf.ones((2, 3)), tf.ones((2, 3)))"
    ),
    "a check of numerics in a graph": (
        "import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nimport tensorflow as tf\n\n\n"
        "@tf.function\ndef step(x):\n    return tf.debugging.check_numerics(tf.math.log(x), 'the loss')\n\n\n"
        "step(tf.constant(-1.0))"
    ),
}
