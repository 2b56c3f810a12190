"""Forks, which a process with threads must not make: a lock that another thread holds stays locked in the child.

Only this module forks.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable

from scriptmode_runtime._processes import proc

if TYPE_CHECKING:
    import subprocess

#: Seconds in which the kernel ends a thread that Python has joined, or that has given its result.
_ENDING_SECONDS, _POLL_SECONDS = 0.5, 0.001


class ForkError(RuntimeError):
    """A process that has threads was about to fork."""


def fork() -> int:
    """Return the child's process ID, and 0 in the child; raise `ForkError` in a process with threads."""
    _require_one_thread()
    return os.fork()


def popen(argv: Sequence[str], before_exec: Callable[[], None], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that calls ``before_exec`` first; raise `ForkError` in a process with threads."""
    _require_one_thread()
    import subprocess

    return subprocess.Popen(argv, preexec_fn=before_exec, **options)  # noqa: PLW1509 - there are no threads


def restart_without_threads(module: str) -> None:
    """Replace a process that has just started ``module`` and that has threads by one without them.

    A debugger or a ``sitecustomize`` started them. The new interpreter does not run what is installed in it, but has
    its path of modules.
    """
    if len(threads()) < 2 or sys.flags.no_site:  # noqa: PLR2004 - this one and another
        return
    from pathlib import Path

    start = f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    code = f"import sys; sys.path[:] = {sys.path!r}; import runpy; {start}"
    # Debuggers add themselves to the arguments of an interpreter, where all of them are strings.
    os.execv(sys.executable, (Path(sys.executable), "-S", "-c", code, *sys.argv[1:]))  # noqa: S606 - never a shell


def _require_one_thread() -> None:
    deadline = time.monotonic() + _ENDING_SECONDS
    while len(names := threads()) > 1 and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    if len(names) > 1:
        raise ForkError(
            f"process {os.getpid()} has {len(names)} threads ({', '.join(names)}) and must not fork; "
            "start the work in an interpreter of its own"
        )


def threads() -> list[str]:
    """Return the names of all threads of this process: those of Python's, and the kernel's of others."""
    python = {thread.native_id: thread.name for thread in threading.enumerate()}
    # Where there is no /proc, Python's are the only ones known.
    tasks = map(int, os.listdir("/proc/self/task")) if proc.has_processes() else python
    return [python.get(task) or proc.read_text(f"/proc/self/task/{task}/comm").strip() or str(task) for task in tasks]
