"""How far a job's data is, counted while it is staged and streamed, and recorded for whoever watches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable

from scriptmode.data.channel_source import input_mode
from scriptmode.data.shared_counters import SharedCounters
from scriptmode.platforms.base import ChannelProgress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.local.store.job_store import JobFolder

#: A view is drawn as often.
_SECONDS = 0.5


class StagingProgress:
    """How many bytes of each channel are here, counted by the child that stages them and read by its parent."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._channels = [
            (channel["ChannelName"], input_mode(request, channel)) for channel in request.get("InputDataConfig", ())
        ]
        # The channel that is being staged; then for each how many bytes are here, and of how many.
        self._numbers = SharedCounters(1 + 2 * len(self._channels))

    def report(self, channel: int, done: int, total: int) -> None:
        """Count, as `channels.Report` says."""
        self._numbers[0] = channel
        self._numbers[1 + 2 * channel], self._numbers[2 + 2 * channel] = done, total

    def current(self) -> ChannelProgress | None:
        """Give the channel that is being staged."""
        return self._of(self._numbers[0]) if self._channels else None

    def progress(self) -> list[ChannelProgress]:
        """Give every channel that something was counted of."""
        return [each for each in map(self._of, range(len(self._channels))) if each.total]

    def _of(self, index: int) -> ChannelProgress:
        name, mode = self._channels[index]
        return ChannelProgress(name, mode, self._numbers[1 + 2 * index], self._numbers[2 + 2 * index])


class ProgressRecorder:
    """Writes the progress into the job's folder, at most twice a second and only what changed."""

    def __init__(self, folder: JobFolder, read: Callable[[], list[ChannelProgress]]) -> None:
        self._folder = folder
        self._read = read
        self._recorded: list[ChannelProgress] = []
        self._next = 0.0

    def record(self, *, now: bool = False) -> None:
        """Record what changed; ``now`` without regard to when it was last recorded.

        Nobody's job ends for want of this record: a folder that cannot be written is left alone.
        """
        if not now and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SECONDS
        progress = self._read()
        if progress != self._recorded and self._folder.write_progress(progress):
            self._recorded = progress
