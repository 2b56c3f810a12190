"""The time of each line of a host's log: when it was first seen. Kept beside the log, so that it never changes.

A file of pairs, each the length that a log had and the time in milliseconds of its last change then. A line has the
time of the first pair whose length includes its end. Clients rely on it: the SageMaker SDK asks for the lines since the
time of the last one that it has, and would have a line twice whose time changed.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.service_values import ENDED, UNREADABLE
from scriptmode_local._store.state import STATUS_OF

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scriptmode_local import LocalPlatform
    from scriptmode_local._store.state import JobSummary

_PAIR = struct.Struct("<QQ")
#: Seconds between two looks at the logs of running jobs, and at which jobs run.
_LOG_SECONDS, _JOB_SECONDS = 0.25, 1.0


@dataclass
class LogTimes:
    """The times of a log. The directory of the ``file`` of pairs is created, but not the directory above."""

    log: Path
    file: Path
    _ends: list[int] = field(default_factory=list)
    _times: list[int] = field(default_factory=list)

    def update(self) -> int:
        """Add what was written since the last call; return the length of the log whose times are known.

        Raises ``OSError`` where the times cannot be written, ``FileNotFoundError`` without a log.
        """
        status = self.log.stat()
        if self._ends and not self.file.exists():
            # The job was deleted, and another one has its name.
            self._ends, self._times = [], []
        if self._ends and self._ends[-1] >= status.st_size:
            return self._ends[-1]
        with suppress(FileExistsError):
            self.file.parent.mkdir(mode=0o700)
        descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            # Another server of the same data directory may add pairs as well.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._read(descriptor)
            known = self._ends[-1] if self._ends else 0
            if status.st_size > known:
                moment = max(status.st_mtime_ns // 1_000_000, self._times[-1] if self._times else 0)
                os.write(descriptor, _PAIR.pack(status.st_size, moment))
                self._ends.append(status.st_size)
                self._times.append(moment)
        finally:
            os.close(descriptor)
        return self._ends[-1] if self._ends else 0

    def _read(self, descriptor: int) -> None:
        """Read the pairs that are not read yet. One that a full disk or a kill cut is overwritten."""
        size = os.fstat(descriptor).st_size
        whole = size - size % _PAIR.size
        if whole != size:
            os.ftruncate(descriptor, whole)
        start = len(self._ends) * _PAIR.size
        for end, moment in _PAIR.iter_unpack(os.pread(descriptor, whole - start, start) if whole > start else b""):
            self._ends.append(end)
            self._times.append(moment)

    def time_of(self, end: int) -> int:
        """Return the time, in milliseconds since the epoch, of a line that ends before the offset ``end``."""
        return self._times[min(bisect_left(self._ends, end), len(self._times) - 1)]

    def end_before(self, moment: int) -> int:
        """Return the length that the log had before ``moment``."""
        before = bisect_left(self._times, moment)
        return self._ends[before - 1] if before else 0

    @property
    def span(self) -> tuple[int, int]:
        """The times of the first and of the last line."""
        return self._times[0], self._times[-1]


class LogWatch:
    """The times of the logs of all jobs of a platform; a thread keeps those of running jobs up to date."""

    def __init__(self, platform: LocalPlatform) -> None:
        self._platform = platform
        self._lock = threading.Lock()
        self._found: dict[Path, tuple[threading.Lock, LogTimes]] = {}
        self._ended = threading.Event()

    def times(self, job: str) -> Iterator[tuple[str, LogTimes, int]]:
        """Yield each host of a job with the times of its log, up to date, and the length that they cover.

        Raises `JobNotFoundError` and ``OSError``.
        """
        folder = self._platform.server_folder(job)
        for host, location in self._platform.log_locations(job).items():
            yield host, *self._update(Path(location), folder / f"{host}.times")

    def jobs(self) -> list[str]:
        """Return the names of the jobs that can be read."""
        return [job["TrainingJobName"] for job in self._platform.list() if job["TrainingJobStatus"] != UNREADABLE]

    def _update(self, log: Path, file: Path) -> tuple[LogTimes, int]:
        with self._lock:
            lock, times = self._found.setdefault(log, (threading.Lock(), LogTimes(log, file)))
        with lock:
            try:
                return times, times.update()
            except FileNotFoundError:
                # The job was deleted, and another one may get its name.
                with self._lock:
                    self._found.pop(log, None)
                raise

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._watch, name="log times", daemon=True).start()

    def stop(self) -> None:
        """Stop the thread."""
        self._ended.set()

    def _watch(self) -> None:
        next_list, running = 0.0, []
        while not self._ended.wait(_LOG_SECONDS):
            if time.monotonic() >= next_list:
                next_list = time.monotonic() + _JOB_SECONDS
                with suppress(Exception):
                    running = self._platform.select(_running_jobs)["Running"]
            for name in running:
                # Jobs are deleted, and disks are full: clients see the error when they ask.
                with suppress(Exception):
                    list(self.times(name))


def _running_jobs(jobs: Iterable[JobSummary]) -> dict[str, Any]:
    """Return the names of the jobs that run, of whose files the store's list has the statuses."""
    running = [job.name for job in jobs if STATUS_OF.get(job.secondary) not in ENDED]
    return {"TrainingJobSummaries": [], "Running": running}
