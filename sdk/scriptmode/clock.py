"""Time, as everything that waits for a training job reads it; a test gives its own."""

from __future__ import annotations

import time


class Clock:
    """The monotonic clock of this machine, in seconds."""

    def now(self) -> float:
        """Give the seconds since some moment in the past."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


SYSTEM = Clock()
