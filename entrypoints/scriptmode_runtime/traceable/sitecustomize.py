"""Register the signals with which a Python process writes its threads' stacks; first on ``PYTHONPATH`` where enabled.

Python imports it at start. A ``sitecustomize`` that this one hides is imported after it.

The main thread handles the first signal between two instructions of Python. If it does not, it is in native code, where
faulthandler handles the second one at once. Elsewhere faulthandler may end the process by SIGSEGV, because it reads
stacks while they change.
"""

import faulthandler
import importlib.machinery
import os
import signal
import sys
from _thread import get_ident
from io import FileIO
from types import FrameType  # noqa: TC003

#: ``<first signal>:<folder>``, set by `scriptmode_runtime._processes.stacks`; the second signal is the next one.
_VARIABLE = "SCRIPTMODE_STACKS"
_FRAMES = 100


def _register(files: "list[FileIO]") -> None:
    """Open this process's file, and close that of the process which forked it, the only one of ``files``."""
    first, _, folder = os.environ[_VARIABLE].partition(":")
    try:
        # Open as long as the process lives: the signals' handlers write to it.
        file = open(os.path.join(folder, str(os.getpid())), "ab", buffering=0)  # noqa: SIM115
        faulthandler.register(int(first) + 1, file, all_threads=False)
        signal.signal(int(first), lambda _number, frame: _write(file, frame))
    except (OSError, ValueError):
        return
    while files:
        files.pop().close()
    files.append(file)


def _write(file: FileIO, main: "FrameType | None") -> None:
    """Write the stack of the main thread, which handles a signal, and those of the others."""
    frames = sys._current_frames()  # noqa: SLF001 - public, and documented
    del frames[get_ident()]
    stacks = [f"Stack {_describe(main)}", *(f"Thread 0x{thread:016x} {_describe(frames[thread])}" for thread in frames)]
    try:  # noqa: SIM105 - contextlib takes milliseconds to import
        file.write("\n".join(stacks).encode(errors="replace"))
    except (OSError, ValueError):
        pass


def _describe(frame: "FrameType | None") -> str:
    text, left = "(most recent call first):\n", _FRAMES
    while frame and left:
        text += f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}\n'
        frame, left = frame.f_back, left - 1
    return text


def _import_hidden() -> None:
    own = os.path.dirname(os.path.abspath(__file__))
    places = [path for path in sys.path if os.path.abspath(path or ".") != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec and spec.loader:
        from importlib.util import module_from_spec

        spec.loader.exec_module(module_from_spec(spec))


if os.environ.get(_VARIABLE):
    files: "list[FileIO]" = []
    _register(files)
    os.register_at_fork(after_in_child=lambda: _register(files))
_import_hidden()
