"""Counters that a forked child writes and its parent reads."""

from __future__ import annotations

import mmap
from struct import calcsize
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def create_counters(count: int) -> memoryview:
    """Return counters in memory shared with the processes forked afterwards; each is written by one process."""
    return memoryview(mmap.mmap(-1, count * calcsize("q"))).cast("q")


class NamedCounters:
    """Counters with names, which the threads of one forked child increase."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._numbers = create_counters(len(self._names))
        self._adding = Lock()

    def add(self, name: str, count: int = 1) -> None:
        """Count one more, or as many as ``count``."""
        with self._adding:
            self._numbers[self._names.index(name)] += count

    def counts(self) -> dict[str, int]:
        """Return the counts that are not 0, in the order of the names."""
        return {name: self._numbers[index] for index, name in enumerate(self._names) if self._numbers[index]}
