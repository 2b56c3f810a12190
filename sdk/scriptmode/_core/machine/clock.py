"""The clock of everything that waits for a training job; a test passes its own."""

from __future__ import annotations

import time
from datetime import datetime, timezone


class Clock:
    """The clocks of this machine; ``now`` is the monotonic one, in seconds, which stops while the machine sleeps."""

    def now(self) -> float:
        """Return the seconds since an arbitrary moment."""
        return time.monotonic()

    def wall_time(self) -> datetime:
        """Return the time of day in UTC."""
        return datetime.now(timezone.utc)

    def sleep(self, seconds: float) -> None:
        """Sleep for a number of seconds."""
        time.sleep(seconds)


SYSTEM = Clock()
