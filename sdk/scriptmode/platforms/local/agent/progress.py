"""Progress of a job's data: counted by a host's agent while it is staged, recorded by the job's agent for clients."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Callable

from scriptmode.core.spec.service_values import ChannelProgress
from scriptmode.data import integrity
from scriptmode.data.shared_counters import NamedCounters, create_counters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scriptmode.core.spec.job_request import JobRequest
    from scriptmode.platforms.local.store.job_store import JobFolder

#: Interval of recording; the live view is drawn as often.
_SECONDS = 0.5


class StagingProgress:
    """Number of staged bytes of each channel in shared memory: the child that stages writes it, its parent reads it."""

    def __init__(self, job: JobRequest) -> None:
        self._channels = [(channel.name, job.input_mode(channel)) for channel in job.channels]
        # For each channel the bytes staged and their total.
        self._numbers = create_counters(max(1, 2 * len(self._channels)))
        #: For each channel what its objects were compared with.
        self.verification: Sequence[NamedCounters] = [NamedCounters(integrity.RESULTS) for _ in self._channels]

    def report(self, channel: int, done: int, total: int) -> None:
        """Set the progress of a channel, as `file_mode.Progress` describes."""
        self._numbers[2 * channel], self._numbers[2 * channel + 1] = done, total

    def repeat(self, channel: int, first: int) -> None:
        """Set the progress of a channel whose copies are those of ``first``."""
        self.report(channel, self._numbers[2 * first], self._numbers[2 * first + 1])
        for name, count in self.verification[first].counts().items():
            self.verification[channel].add(name, count)

    def progress(self) -> list[ChannelProgress]:
        """Return the progress of every channel whose staging began."""
        return [each for each in map(self._of, range(len(self._channels))) if each.total]

    def _of(self, index: int) -> ChannelProgress:
        name, mode = self._channels[index]
        done, total = self._numbers[2 * index], self._numbers[2 * index + 1]
        return ChannelProgress(name, mode, done, total, verification=self.verification[index].counts())


class ProgressRecorder:
    """Writer of the progress to the job's directory, at most twice a second and only when it changed."""

    def __init__(self, folder: JobFolder, read: Callable[[], list[ChannelProgress]]) -> None:
        self._folder = folder
        self._read = read
        self._recorded: list[ChannelProgress] = []
        self._next = 0.0

    def record(self, *, now: bool = False) -> None:
        """Write the progress if it changed and the interval has passed; ``now``: also before it has passed.

        A directory that cannot be written is ignored: a job does not fail because of this record.
        """
        if not now and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SECONDS
        progress = self._read()
        if progress != self._recorded and self._folder.write_progress(progress):
            self._recorded = progress
