"""Register the signals with which a Python process writes its threads' stacks; first on ``PYTHONPATH`` where enabled.

Python imports it at start. A ``sitecustomize`` that this one hides is imported after it.

The main thread handles the first signal between two instructions of Python. If it does not, it is in native code, which
neither signal interrupts, and faulthandler handles the second one at once. Elsewhere it may end the process by
SIGSEGV, because it reads stacks while they change.
"""

import faulthandler
import importlib.machinery
import os
import signal
import sys
from _thread import get_ident
from types import FrameType  # noqa: TC003

#: ``<first signal>:<second signal>:<folder>``, set by `scriptmode_runtime._processes.stacks`.
_VARIABLE = "SCRIPTMODE_STACKS"
_FRAMES = 100


def _register() -> None:
    """Open this process's file, and have both signals' handlers write to it.

    It is never closed, nor that of the process which forked this one: the number may be that of a user's file by now.
    """
    first, second, folder = os.environ[_VARIABLE].split(":", 2)
    try:
        path = os.path.join(folder, str(os.getpid()))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        faulthandler.register(int(second), descriptor, all_threads=False)
        signal.signal(int(first), lambda _number, frame: _write(descriptor, frame))
        signal.siginterrupt(int(first), False)  # noqa: FBT003 - positional
    except (OSError, ValueError):
        return


def _write(descriptor: int, main: "FrameType | None") -> None:
    """Write the stack of the main thread, which handles a signal, and those of the others."""
    try:
        frames = sys._current_frames()  # noqa: SLF001 - public, and documented
        del frames[get_ident()]
        stacks = [f"Stack {_describe(main)}"]
        stacks += [f"Thread 0x{thread:016x} {_describe(frames[thread])}" for thread in frames]
        os.write(descriptor, "\n".join(stacks).encode("ascii", "backslashreplace"))
    except (OSError, RecursionError):
        return


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
    _register()
    os.register_at_fork(after_in_child=_register)
_import_hidden()
