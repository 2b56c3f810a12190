"""Time, as everything that waits for a training job reads it; a test gives its own."""

from __future__ import annotations

import time
from datetime import datetime, timezone


class Clock:
    """The clocks of this machine; ``now`` is the monotonic one, in seconds, which stands while the machine sleeps."""

    def now(self) -> float:
        """Give the seconds since some moment in the past."""
        return time.monotonic()

    def wall_time(self) -> datetime:
        """Give the time of day, in UTC."""
        return datetime.now(timezone.utc)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


SYSTEM = Clock()
