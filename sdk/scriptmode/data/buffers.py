"""Memory for what is read: used again once nobody holds a view of it any more, for new memory costs as reading does."""

from __future__ import annotations

import mmap
from collections import deque
from threading import Lock

#: Smaller memory is left to malloc; of a larger freed stretch its arenas would keep what lies between others.
LEAST_MAPPED = 256 * 1024
#: Of this size on a mapping is kept for the next one: what is saved is more than what looking for it takes.
LEAST_KEPT = 1024 * 1024
#: A buffer is at most so much of its size larger than what was asked for.
SPARE = 16


class Buffers:
    """Gives memory and keeps it; safe to share between threads.

    What is in use and what is kept are together never more than was in use at once: before new memory comes, as much
    that nobody uses goes back to the system.
    """

    def __init__(self) -> None:
        #: By size; those given out last stand last.
        self._kept: dict[int, deque[mmap.mmap]] = {}
        #: Bytes that came anew and for which nothing went back yet.
        self._owed = 0
        self._looking = Lock()

    def of(self, size: int) -> memoryview:
        """Give a buffer of so many bytes, of any content."""
        capacity = _capacity(size)
        with self._looking:
            kept = self._kept.get(capacity, ())
            found = next((buffer for buffer in kept if _is_free(buffer)), None)
            if found is None:
                self._give_back(capacity)
                if size < LEAST_MAPPED:
                    return memoryview(bytearray(size))
                found = mmap.mmap(-1, capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            else:
                self._kept[capacity].remove(found)
            if capacity >= LEAST_KEPT:
                self._kept.setdefault(capacity, deque()).append(found)
            return memoryview(found)[:size]

    def _give_back(self, size: int) -> None:
        """Free about as many bytes of what nobody uses as are about to come."""
        self._owed += size
        for capacity, kept in self._kept.items():
            for buffer in list(kept):
                if self._owed <= 0:
                    return
                if _is_free(buffer):
                    kept.remove(buffer)
                    buffer.close()
                    self._owed -= capacity
        # Nothing is left that could go back.
        self._owed = min(self._owed, 0)


def _capacity(size: int) -> int:
    """Give the size of the buffer that is taken for so many bytes: buffers of few sizes are found again."""
    if size < LEAST_KEPT:
        return size
    step = (1 << (size.bit_length() - 1)) // SPARE
    return -(-size // step) * step


def _is_free(buffer: mmap.mmap) -> bool:
    try:
        # What somebody has a view of cannot change its size; the same size changes nothing.
        buffer.resize(len(buffer))
    except BufferError:
        return False
    return True
