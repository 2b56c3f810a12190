"""Hints: a table from the last output of a failed process to one line of advice. Pure.

The output can be any text: each pattern takes time in proportion to its length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scriptmode_runtime._values.failure import last_traceback

if TYPE_CHECKING:
    from scriptmode_runtime.plan import ProcessSpec


def _line(begin: str, end: str, most: int) -> str:
    """Return the pattern of ``end`` after ``begin`` in one line, at most ``most`` characters later, in linear time."""
    return rf"{begin}(?:(?!{begin})[^\n]){{0,{most}}}{end}"


#: The advice by the pattern of the output; ``{0}`` and so on are the pattern's groups. Of two matches that end at the
#: same position in the output the upper row applies.
_OF_OUTPUT = {
    "HorovodVersionMismatchError|Neither MPI nor Gloo support has been built|Extension horovod.tensorflow has not been|"
    + _line("horovod/", "undefined symbol", 300) + r"|libmpi\w{0,40}\.so[.\d]{0,20}: cannot open shared object file":
        "Horovod in {python} was built for another TensorFlow or Open MPI: build it again there",
    r"ModuleNotFoundError: No module named 'horovod'":
        "Horovod is not installed in {python}: build it there against its TensorFlow and Open MPI",
    r"ModuleNotFoundError: No module named 'tensorflow'":
        "tensorflow is not installed in {python}: install it there with pip install 'scriptmode[tensorflow]'",
    r"(?<!partially initialized )(?:module 'tensorflow[\w.]*' has no attribute '|"
    r"No module named 'tensorflow(?:\.|_(?=estimator)))(\w+)":
        "This TensorFlow has no {0}: names of 1 are in tensorflow.compat.v1, tf.contrib left with 2.0, tf.estimator "
        "with 2.16",
    # Python names the first package that is missing, so the package of a name with dots was found.
    r"ModuleNotFoundError: No module named '([^'.]+)(?=')":
        "{0} is not installed in {python}: give the directory of your file as source_dir, or name the package in "
        "requirements.txt",
    r"partially initialized module '[^']+' has no attribute|\(consider renaming '[^']+' ":
        "A file of the source has the name of a module and hides it: rename the file",
    "CUDA_ERROR_OUT_OF_MEMORY|" + _line("OOM when allocating", r"GPU:\d", 1000):
        "The GPU ran out of memory: use a smaller batch, or TF_FORCE_GPU_ALLOW_GROWTH=true where processes share a GPU",
    r"MemoryError|Cannot allocate memory|std::bad_alloc|OOM when allocating|failed to allocate memory"
    r"|Out of memory (?:while )?trying to allocate":
        "The host ran out of memory: use a smaller batch, or a larger host",
    r"can't start new thread|fork: (?:retry: )?Resource temporarily unavailable":
        "This host cannot start more processes and threads: use fewer, or container_limits with more pids",
    r"Illegal seek":
        "TensorFlow's own readers cannot read a pipe: use scriptmode_runtime.tensorflow.PipeModeDataset",
    r"No such file or directory: '[^'\n]{0,4000}/input/data/[^/'\n]{1,80}'":
        "The job has no such channel, or has it in Pipe mode, as FIFOs <channel>_0, <channel>_1 ..., each removed once "
        "it was read",
    r"(?:No such file or directory|Permission denied): '/opt/ml/(?:model|output|checkpoints)(?:/[^'\n]{0,4000})?'":
        "Process hosts have no /opt/ml: write to the directory that SM_MODEL_DIR or SM_OUTPUT_DATA_DIR names",
    r"KeyError: 'SM_CHANNEL_(\w{1,80})'":
        "The job has no channel of that name: give an input with it, to fit or as --input NAME=...; an input without a "
        "name is the channel 'training'",
    r"KeyError: 'SM_(?!CHANNEL_)\w{1,80}'":
        "The launcher sets no such variable: SM_MODEL_DIR, SM_HP_NAME, SM_CHANNEL_NAME ..., all in SM_TRAINING_ENV",
    # In the words of Python, NumPy and TensorFlow; a name without a dot may be that of a command.
    r"No such file or directory: '(?:[^/'\n]{1,400}[/.]|/[^'\n]{0,4000}/(?:ml|algo-\d+)/code/)"
    r"|FileNotFoundError: [^/\s]\S{0,400} not found\.|\s[^/\s]\S{0,400}; No such file or directory":
        "A copy of the source runs: give the file's directory as source_dir, or data as an input (SM_CHANNEL_NAME)",
    r"bdb\.BdbQuit|EOFError: EOF when reading a line":
        "A job has no terminal: give what input() reads as a hyperparameter, and remove breakpoint()",
    r"\\r\W: (?:No such file|command not found)|\^M: bad interpreter|\r: not found":
        "A line of the script ends with a carriage return, as on Windows: save it with the line ends of Unix",
    # In the words of Python, and of libcurl in TensorFlow.
    r"\[Errno -[235]\] (?:Name or service not known|Temporary failure in name resolution|No address associated)"
    r"|libcurl code 6 |urlopen error \[Errno 101\] Network is unreachable":
        "This host could not look up an internet address: give data that the script downloads as a channel",
    # It follows such an error of pip; in the words of pip, and of uv.
    r"(?:No matching distribution found for |No solution found when resolving dependencies[\s\S]{0,40}?Because "
    r"(?:only \S{1,200} is available and you require )?)([^\s;]{0,199}[^\s;,])":
        "The package index has no {0}: correct its name or version, or let this host reach an index",
    r"No space left on device|Disk quota exceeded":
        "A disk is full, or has no room for another file: use a larger volume, or fewer files",
    r"Address already in use|Could not start gRPC server":
        "A port of this task is held by another program: end that program, or start the job again",
    r"Disallowed task type":
        "TF2's ParameterServerStrategy takes a chief: set parameter_server's coordinator (in TF1 style: chief) to True",
    r"unsupported type \(<class 'tensorflow\.python\.distribute\.values\.PerReplica'>\)":
        "Keras 3 cannot fit on several workers: {keras}, or write the loop",
    r"pass this dataset to ClusterCoordinator\.create_per_worker_dataset":
        "Keras 3 cannot fit with parameter servers: {keras}; a loop calls that",
    r"module 'keras[\w.]{0,80}' has no attribute 'constant'|'Variable' object has no attribute 'ref'"
    r"|'SymbolicTensor' object has no attribute 'assign'":
        "Horovod is older than Keras 3: import scriptmode_runtime.tensorflow.horovod instead, or TF_USE_LEGACY_KERAS=1",
    _line("unrecognized arguments:", " --model_dir", 2500):
        "TensorFlow jobs are given --model_dir: let the script take it, or set the estimator's model_dir=False",
    r"unrecognized arguments:|[Nn]o such option:?|Unknown command line flag":
        "Let the parser take --name value, or -n value for one letter, of each hyperparameter; flags go after --",
    r"the following arguments are required:|Missing option ":
        "Give what the parser requires as a hyperparameter of that name; a channel's directory is in SM_CHANNEL_NAME",
    r"unable to reliably start one or more daemons|A daemon failed to report back":
        "mpirun could not start its daemon on another host: Open MPI is missing there, or of another version",
}  # fmt: skip
#: The advice by exit code where no pattern matches the output.
_OF_EXIT_CODE = {
    132: "Usually the processor lacks instructions that a library was built for: use another instance type",
    135: "Usually a memory-mapped file could not be read or written: a full disk, or too small a /dev/shm",
    137: "If it was not killed on purpose, memory ran out: use a smaller batch, or a larger host",
    139: "Usually a library crashed: PYTHONFAULTHANDLER=1 in the job's environment shows where",
}
#: How to get Keras 2.
_KERAS_2 = "use Keras 2 (tf-keras of TensorFlow's version, TF_USE_LEGACY_KERAS=1)"
#: Characters before a traceback that may have its reason: what a library logs before it raises.
_BEFORE = 2000


def hint(output: str, exit_code: int, spec: ProcessSpec) -> str:
    """Return the advice for the last match in the output, else for the exit code, else ""."""
    # From shortly before the last traceback on, with the tracebacks that it was chained from.
    text = output[max(0, last_traceback(output) - _BEFORE) :]
    best, advice = -1, _OF_EXIT_CODE.get(exit_code, "")
    words: tuple[str, ...] = ()
    for pattern, template in _OF_OUTPUT.items():
        for match in re.finditer(pattern, text):
            if match.end() > best:
                best, advice, words = match.end(), template, match.groups("")
    return advice.format(*words, python=_python(spec), keras=_KERAS_2)


def _python(spec: ProcessSpec) -> str:
    """Return the interpreter that ran the program, also after mpirun's options."""
    pythons = [word for word in spec.argv if re.search(r"(^|/)python[0-9.]*$", word)]
    return pythons[-1] if pythons else "the interpreter"
