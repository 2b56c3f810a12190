"""The sign of life that a job's agent leaves in the job's lock file, and how long it has been missing.

The kernel says whether the agent is there: it holds the lock. That it also works is said by the agent alone, which
records the time in the lock file every few seconds. A machine that was suspended makes no agent silent: the time is
that of the monotonic clock, which stands still meanwhile. Where the boot is another one (a data directory shared by
machines) the file's time of change has to do.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from scriptmode.data import regular_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INTERVAL_SECONDS = 5.0
#: An agent that was silent for so long is stopped or hangs: even on a machine that has a hundred times more to do than
#: processors to do it with, a process runs some times a minute.
SILENT_SECONDS = 60.0
#: An agent that waits for Docker, a disk or another program for longer hangs. `job_containers` has the longest limit of
#: its own, 600 s to change the owner of millions of files.
LONGEST_WORK_SECONDS = 900.0
_LENGTH = 64


class Heartbeat:
    """Records at most every `INTERVAL_SECONDS` that this process works. ``lock`` is the lock file's descriptor."""

    def __init__(self, lock: int) -> None:
        self._lock = lock
        self._next = 0.0

    def beat(self) -> None:
        """Record the time, unless that was done a moment ago."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + INTERVAL_SECONDS
            write_heartbeat(self._lock)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Record the time all the while that this process waits for others, `LONGEST_WORK_SECONDS` at most.

        A timer's signal does so, because the agent has no threads. It is for work without a turn to call `beat`.
        """
        until = time.monotonic() + LONGEST_WORK_SECONDS
        before = signal.signal(signal.SIGALRM, lambda *_: self.beat() if time.monotonic() < until else None)
        signal.setitimer(signal.ITIMER_REAL, INTERVAL_SECONDS, INTERVAL_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def write_heartbeat(lock: int) -> None:
    """Record in the open lock file that the agent works at this moment."""
    from scriptmode.platforms.local.system.process_tree import boot

    content = f"{boot()} {time.monotonic():.3f}".ljust(_LENGTH - 1) + "\n"
    try:
        # As long as what it replaces, so that no reader sees half of it.
        os.pwrite(lock, content.encode(), 0)
    except OSError:
        # A full disk takes a time, if nothing else.
        with suppress(OSError):
            os.utime(lock)


def silent_since(lock_file: Path) -> float | None:
    """Return since when the agent has been silent, in seconds since the epoch; ``None`` while it is not.

    Of an agent that never recorded anything, one of an earlier version, nothing is known: ``None``.
    """
    from scriptmode.platforms.local.system.process_tree import boot

    try:
        fields = regular_files.read_bytes(lock_file).decode("ascii").split()
        written = lock_file.stat().st_mtime
        where, when = fields[0], float(fields[1])
    except (OSError, ValueError, IndexError):
        return None
    # The clock of a file server may be ahead of this machine's.
    is_silent = abs(time.time() - written) > SILENT_SECONDS
    if where == boot():
        is_silent = is_silent and time.monotonic() - when > SILENT_SECONDS
    return written if is_silent else None
