"""Run the ``main`` of a module in the background: ``python -m scriptmode_local._system.detached``.

The arguments are the module's name and those of its ``main``: a directory, two levels below the data directory, and the
descriptor of a held lock. The first process ends before the module is imported, so that its caller need not wait for
that: it takes ten times as long. Of one data directory one process imports at a time; otherwise the callers that start
fifty would wait for the processors that these fifty use.
"""

import os
import signal
import sys
from contextlib import suppress
from importlib import import_module

from scriptmode_local._system.directory_lock import locked_directory
from scriptmode_runtime._processes import forks

#: The longest wait for others, of which one may hang: less than the silence after which an agent counts as lost.
_WAIT_SECONDS = 10


def _run(module: str, folder: str, lock: str) -> int:
    forks.restart_without_threads("scriptmode_local._system.detached")
    # The lock must be released when the background process ends, so no child of it may inherit the descriptor.
    os.set_inheritable(int(lock), False)  # noqa: FBT003
    if forks.fork():
        # Without what the interpreter does at its end.
        os._exit(0)
    # The caller waits for the end of standard output.
    os.dup2(2, 1)
    from pathlib import Path

    signal.signal(signal.SIGALRM, _stop_waiting)
    signal.alarm(_WAIT_SECONDS)
    with suppress(OSError), locked_directory(Path(folder).parent.parent):
        signal.alarm(0)
        import_module(module)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return int(import_module(module).main([folder, lock]) or 0)


def _stop_waiting(*_: object) -> None:
    raise TimeoutError


if __name__ == "__main__":
    sys.exit(_run(*sys.argv[1:]))
