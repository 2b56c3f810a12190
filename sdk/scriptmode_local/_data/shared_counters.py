"""Counters that a forked child writes and its parent reads."""

from __future__ import annotations

import mmap
from struct import calcsize


def create_counters(count: int) -> memoryview:
    """Return counters in memory shared with the processes forked afterwards; each is written by one process."""
    return memoryview(mmap.mmap(-1, count * calcsize("q"))).cast("q")
