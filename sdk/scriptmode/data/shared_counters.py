"""Counters that a forked child writes and its parent reads."""

from __future__ import annotations

import mmap
import struct
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class SharedCounters:
    """Counters in memory shared with the processes forked afterwards; each is written by one process."""

    def __init__(self, count: int) -> None:
        self._layout = struct.Struct("q")
        self._memory = mmap.mmap(-1, count * self._layout.size)

    def __getitem__(self, index: int) -> int:
        return int(self._layout.unpack_from(self._memory, index * self._layout.size)[0])

    def __setitem__(self, index: int, number: int) -> None:
        self._layout.pack_into(self._memory, index * self._layout.size, number)


class NamedCounters:
    """Counters with names, which the threads of one forked child increase."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._numbers = SharedCounters(len(self._names))
        self._adding = Lock()

    def add(self, name: str, count: int = 1) -> None:
        """Count one more, or as many as ``count``."""
        with self._adding:
            self._numbers[self._names.index(name)] += count

    def counts(self) -> dict[str, int]:
        """Return the counts that are not 0, in the order of the names."""
        return {name: self._numbers[index] for index, name in enumerate(self._names) if self._numbers[index]}
