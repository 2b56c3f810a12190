"""Recording how much of a job's inputs has arrived, for clients."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from scriptmode._core.spec.host_values import ChannelProgress

#: Interval of recording; the live view is drawn as often.
_SECONDS = 0.5


class ProgressRecorder:
    """Writer of the progress, at most twice a second and only when it changed.

    ``write`` returns False where it could not, and is called again: a job does not fail because of this record.
    """

    def __init__(
        self, read: Callable[[], list[ChannelProgress]], write: Callable[[list[ChannelProgress]], bool]
    ) -> None:
        self._read = read
        self._write = write
        self._recorded: list[ChannelProgress] = []
        self._next = 0.0

    def record(self, *, now: bool = False) -> None:
        """Write the progress if it changed and the interval has passed; ``now``: also before it has passed."""
        if not now and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SECONDS
        progress = self._read()
        if progress != self._recorded and self._write(progress):
            self._recorded = progress


def sum_by_channel(progress: Iterable[ChannelProgress]) -> list[ChannelProgress]:
    """Return the progress of each channel on all its hosts together."""
    totals: dict[str, ChannelProgress] = {}
    for part in progress:
        totals[part.channel] = _add(totals[part.channel], part) if part.channel in totals else part
    return list(totals.values())


def _add(progress: ChannelProgress, other: ChannelProgress) -> ChannelProgress:
    total = None if progress.total is None or other.total is None else progress.total + other.total
    epoch = None if progress.epoch is None or other.epoch is None else max(progress.epoch, other.epoch)
    return replace(progress, done=progress.done + other.done, total=total, epoch=epoch)
