"""The time of each line of a host's log: when it was first seen. Kept beside the log, so that it never changes.

A file of pairs, each the length that a log had and the time in milliseconds of its last change then. A line has the
time of the first pair whose length includes its end. Clients rely on it: the SageMaker SDK asks for the lines since the
time of the last one that it has, and would have a line twice whose time changed.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from scriptmode_local._store.shapes import LAST_SECOND

_PAIR = struct.Struct("<QQ")
#: Seconds between two looks at the logs of a running job.
_SECONDS = 0.25
#: The pause after a look, as a multiple of its own time.
_PAUSES = 20


@dataclass
class LogTimes:
    """The times of a log. The job's agent writes them, and once the job has ended, who reads its log."""

    log: Path
    _ends: array[int] = field(default_factory=partial(array, "Q"))
    _times: array[int] = field(default_factory=partial(array, "Q"))
    #: Pairs at the beginning of the file that are not kept.
    _dropped: int = 0

    @property
    def file(self) -> Path:
        """The file of pairs."""
        return self.log.with_suffix(".times")

    def update(self) -> int:
        """Add what was written since the last call; return the length of the log whose times are known.

        Raises ``OSError`` where the times cannot be written, ``FileNotFoundError`` without a log.
        """
        status = self.log.stat()
        if self._ends and self._ends[-1] >= status.st_size:
            return self._ends[-1]
        descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            # Not awaited: what another process holds for long is no reason to wait.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read(descriptor)
            if os.fstat(descriptor).st_size != self._size:
                # A pair that a full disk or a kill cut, or that is damaged, is overwritten.
                os.ftruncate(descriptor, self._size)
            known = self._ends[-1] if self._ends else 0
            if status.st_size > known:
                moment = max(status.st_mtime_ns // 1_000_000, self._times[-1] if self._times else 0)
                os.write(descriptor, _PAIR.pack(status.st_size, moment))
                self._ends.append(status.st_size)
                self._times.append(moment)
        finally:
            os.close(descriptor)
        return self._ends[-1] if self._ends else 0

    @property
    def _size(self) -> int:
        return (self._dropped + len(self._ends)) * _PAIR.size

    def keep_last(self) -> None:
        """Forget all pairs but the last one, for a writer that answers nothing."""
        self._dropped += len(self._ends[:-1])
        del self._ends[:-1], self._times[:-1]

    def read(self) -> int:
        """Read what others have added, nothing where it cannot be read; return the length whose times are known."""
        with suppress(OSError):
            descriptor = os.open(self.file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                self._read(descriptor)
            finally:
                os.close(descriptor)
        return self._ends[-1] if self._ends else 0

    def _read(self, descriptor: int) -> None:
        """Read the pairs that are not read yet, up to one that is damaged."""
        size, start = os.fstat(descriptor).st_size, self._size
        whole = size - size % _PAIR.size
        for end, moment in _PAIR.iter_unpack(os.pread(descriptor, whole - start, start) if whole > start else b""):
            before = (self._ends[-1], self._times[-1]) if self._ends else (0, 1)
            if end <= before[0] or not before[1] <= moment <= 1000 * LAST_SECOND:
                return
            self._ends.append(end)
            self._times.append(moment)

    def time_of(self, end: int, otherwise: int = 0) -> int:
        """Return the time, in milliseconds since the epoch, of a line that ends before the offset ``end``."""
        at = bisect_left(self._ends, end)
        return self._times[at] if at < len(self._times) else otherwise

    def end_before(self, moment: int) -> int:
        """Return the length that the log had before ``moment``."""
        before = bisect_left(self._times, moment)
        return self._ends[before - 1] if before else 0

    @property
    def span(self) -> tuple[int, int]:
        """The times of the first and of the last line."""
        return self._times[0], self._times[-1]


class LogTimesRecorder:
    """Recorder of the times of the logs of a running job, a quarter of a second apart; later if there are many."""

    def __init__(self, logs: Iterable[Path]) -> None:
        self._times = list(map(LogTimes, logs))
        self._next = 0.0

    def record(self) -> None:
        """Record what has been written, unless the last look was a moment ago."""
        if time.monotonic() < self._next:
            return
        begun = time.monotonic()
        for times in self._times:
            # There is no log yet, or the disk is full: a later line has a later time.
            with suppress(OSError):
                times.update()
            times.keep_last()
        now = time.monotonic()
        self._next = now + max(_SECONDS, _PAUSES * (now - begun))
