"""Run the ``main`` of a module in the background: ``python -m scriptmode_local._system.detached``.

The arguments are the module's name and those of its ``main``: a directory and the descriptor of a held lock. The first
process ends before the module is imported, so that its caller need not wait for that: it takes ten times as long.
"""

import os
import sys
from importlib import import_module

from scriptmode_runtime._processes import forks


def _run(module: str, folder: str, lock: str) -> int:
    forks.restart_without_threads("scriptmode_local._system.detached")
    # The lock must be released when the background process ends, so no child of it may inherit the descriptor.
    os.set_inheritable(int(lock), False)  # noqa: FBT003
    if forks.fork():
        # Without what the interpreter does at its end.
        os._exit(0)
    # The caller waits for the end of standard output.
    os.dup2(2, 1)
    return int(import_module(module).main([folder, lock]) or 0)


if __name__ == "__main__":
    sys.exit(_run(*sys.argv[1:]))
