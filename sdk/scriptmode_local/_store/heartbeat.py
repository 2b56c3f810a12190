"""The heartbeat of a job's agent: a time in the job's lock file that the agent writes every few seconds.

The lock tells whether the agent is alive, because the kernel releases it when the process dies. The heartbeat tells
whether the agent works, or is stopped or hangs. The time is that of the monotonic clock, which does not advance while
the machine is suspended, so a suspended machine makes no agent silent. It can be compared only within one boot; for
another boot (a data directory that several machines share) the file's modification time is used instead.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode_local._data import regular_files

if TYPE_CHECKING:
    from scriptmode_runtime._processes.proc import ProcessIdentity

INTERVAL_SECONDS = 5.0
#: An agent without a heartbeat for so long is stopped or hangs: even on a machine with a hundred times more runnable
#: processes than processors, each process runs some times a minute.
SILENT_SECONDS = 30.0
#: An agent that waits longer for Docker, a disk or another program hangs. The longest limit of a single operation is in
#: `job_containers`, 600 s to change the owner of millions of files.
LONGEST_WORK_SECONDS = 900.0
_LENGTH = 64


class Heartbeat:
    """Writer of heartbeats, at most one every `INTERVAL_SECONDS`; ``lock`` is the lock file's descriptor."""

    def __init__(self, lock: int) -> None:
        self._lock = lock
        self._next = 0.0

    def beat(self) -> None:
        """Write the time, unless the last heartbeat is younger than `INTERVAL_SECONDS`."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + INTERVAL_SECONDS
            write_heartbeat(self._lock)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Write heartbeats while the block runs, for at most `LONGEST_WORK_SECONDS`.

        It is for blocking work, which cannot call `beat`. A timer's signal writes them, because the agent has no
        threads.
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
    """Write the current time to the open lock file."""
    from scriptmode_runtime._processes.proc import boot_id

    content = f"{boot_id()} {time.monotonic():.3f}".ljust(_LENGTH - 1) + "\n"
    try:
        # Of constant length and written at once, so that no reader sees a part of it.
        os.pwrite(lock, content.encode(), 0)
    except OSError:
        # A full disk still takes a new modification time.
        with suppress(OSError):
            os.utime(lock)


def is_of_this_boot(lock_file: Path) -> bool:
    """Return whether the last heartbeat was written since this machine started; raise ``OSError``."""
    from scriptmode_runtime._processes.proc import boot_id

    return regular_files.read_bytes(lock_file).decode("ascii", "replace").split()[:1] == [boot_id()]


def silent_since(lock_file: Path, agent: ProcessIdentity | None = None) -> float | None:
    """Return since when the agent has been silent, in seconds since the epoch; ``None`` while it is not silent.

    A stopped process of this machine is silent at once. Also ``None`` for an agent that never wrote a heartbeat.
    """
    from scriptmode_runtime._processes import proc

    try:
        fields = regular_files.read_bytes(lock_file).decode("ascii").split()
        written = lock_file.stat().st_mtime
        where, when = fields[0], float(fields[1])
    except (OSError, ValueError, IndexError):
        return None
    if agent and proc.is_stopped(agent):
        return written
    # The clock of a file server may be ahead of this machine's.
    is_silent = abs(time.time() - written) > SILENT_SECONDS
    if where == proc.boot_id():
        is_silent = is_silent and time.monotonic() - when > SILENT_SECONDS
    return written if is_silent else None
