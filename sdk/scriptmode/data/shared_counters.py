"""Counters that a forked child writes and its parent reads."""

from __future__ import annotations

import mmap
import struct


class SharedCounters:
    """Counters in memory shared with the processes forked afterwards; each is written by one process."""

    def __init__(self, count: int) -> None:
        self._layout = struct.Struct("q")
        self._memory = mmap.mmap(-1, count * self._layout.size)

    def __getitem__(self, index: int) -> int:
        return int(self._layout.unpack_from(self._memory, index * self._layout.size)[0])

    def __setitem__(self, index: int, number: int) -> None:
        self._layout.pack_into(self._memory, index * self._layout.size, number)
