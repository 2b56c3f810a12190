"""A clock that advances only when a caller sleeps, so that a job of hours is over in a moment."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone

from scriptmode._core.machine.clock import Clock

#: The moment at which a fake clock reads 0.
START = datetime(2026, 1, 5, 9, 0, tzinfo=timezone.utc)


class FakeClock(Clock):
    """A clock that advances only by its sleeps; it may be shared between threads.

    Args:
        start: Wall time at which it reads 0, with a time zone.

    Attributes:
        slept: Seconds of every sleep, in order.
    """

    def __init__(self, start: datetime = START) -> None:
        self.start = start
        self.slept: list[float] = []
        self._seconds = 0.0
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the seconds since the start."""
        return self._seconds

    def sleep(self, seconds: float) -> None:
        """Advance the clock and return at once."""
        self.advance(seconds)
        self.slept.append(seconds)

    def advance(self, seconds: float) -> None:
        """Advance the clock without a sleep.

        Args:
            seconds: Seconds to advance, at least 0.
        """
        with self._lock:
            self._seconds += seconds

    def wall_time(self, second: float | None = None) -> datetime:
        """Return the date and time now, or when the clock reads ``second``."""
        return self.start + timedelta(seconds=self._seconds if second is None else second)
