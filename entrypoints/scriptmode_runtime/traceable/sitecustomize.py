"""Register the signal with which a Python process writes its threads' stacks; first on ``PYTHONPATH`` where enabled.

Python imports it at start. A ``sitecustomize`` that this one hides is imported after it.
"""

import contextlib
import faulthandler
import importlib.machinery
import importlib.util
import os
import sys

#: ``<signal>:<folder>``, set by `scriptmode_runtime._processes.stacks`.
_VARIABLE = "SCRIPTMODE_STACKS"


def _register(files: contextlib.ExitStack) -> None:
    """Open this process's file, and close that of the process which forked it, the only one of ``files``."""
    number, _, folder = os.environ[_VARIABLE].partition(":")
    with contextlib.suppress(OSError, ValueError):
        # Open as long as the process lives: the signal's handler writes to it.
        file = open(os.path.join(folder, str(os.getpid())), "ab", buffering=0)  # noqa: SIM115
        faulthandler.register(int(number), file, all_threads=True)
        files.close()
        files.enter_context(file)


def _import_hidden() -> None:
    own = os.path.dirname(os.path.abspath(__file__))
    places = [path for path in sys.path if os.path.abspath(path or ".") != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get(_VARIABLE):
    files = contextlib.ExitStack()
    _register(files)
    os.register_at_fork(after_in_child=lambda: _register(files))
_import_hidden()
