"""Recording how much of a job's inputs has arrived, for clients."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from scriptmode.core.spec.service_values import ChannelProgress

#: Interval of recording; the live view is drawn as often.
_SECONDS = 0.5


class ProgressRecorder:
    """Writer of the progress, at most twice a second and only when it changed; ``write`` returns False to retry."""

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
