"""Files that are open below a FastFile mount: what is read next is fetched ahead, within one bound for all of them."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

from scriptmode.data.integrity import Verifying
from scriptmode.data.object_store import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scriptmode.data.fuse_server import Content
    from scriptmode.data.integrity import ObjectCheck
    from scriptmode.data.object_store import Buffer, ObjectStore, StoredObject
    from scriptmode.errors import DataError

MIB = 1024 * 1024
#: What lies ready or is on its way for all open files together.
BUDGET_BYTES = 128 * MIB
#: A file up to this size comes in one piece with its first bytes.
WHOLE_BYTES = 4 * MIB
#: Parts grow with what was read in sequence: nobody waits long for the first bytes, and large files come in few parts.
LEAST_PART_BYTES, MOST_PART_BYTES = 1 * MIB, CHUNK_BYTES
MOST_AHEAD_BYTES = 64 * MIB
#: The kernel reads ahead by itself, a little out of order.
BEHIND_BYTES = 1 * MIB
FETCHERS = 16
#: A reader that did not read for so long may lose what was fetched ahead for it.
RESTING_SECONDS = 1.0


@dataclass
class PendingChunk:
    """A stretch of an object on its way, or there."""

    start: int
    end: int
    data: Future[Buffer]
    #: Whether somebody was promised some of it.
    wanted: bool = False


class Prefetcher:
    """What all open files of a mount share: the threads that fetch, and the bound. Used by one thread."""

    def __init__(
        self,
        store_of: Callable[[str], ObjectStore],
        budget: int = BUDGET_BYTES,
        *,
        fetchers: int = FETCHERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store_of = store_of
        self._budget = budget
        self._clock = clock
        #: Bytes and time of last use, the longest unused first.
        self._used: OrderedDict[PrefetchedFile, tuple[int, float]] = OrderedDict()
        self._total = 0
        #: Objects whose bytes differ from their checksum, and the reason.
        self.damaged: dict[StoredObject, DataError] = {}
        # What somebody waits for does not stand in line behind what somebody might want.
        self._now = ThreadPoolExecutor(fetchers, "fetch")
        self._ahead = ThreadPoolExecutor(fetchers, "fetch-ahead")

    def held(self, reading: PrefetchedFile | None = None) -> int:
        """Give the bytes that one of the readers, or all of them, hold ready or on their way."""
        return self._used.get(reading, (0, 0.0))[0] if reading else self._total

    def share(self) -> int:
        """Give how much one reader may hold, so that another could begin."""
        return max(min(MOST_AHEAD_BYTES, self._budget // (1 + len(self._used))), LEAST_PART_BYTES)

    def open(self, item: StoredObject) -> PrefetchedFile:
        """Give a new reader of an object."""
        return PrefetchedFile(item, self)

    def close(self) -> None:
        """End the threads once they fetched what they are at."""
        for pool in (self._now, self._ahead):
            pool.shutdown(wait=True, cancel_futures=True)

    def fetch(
        self, item: StoredObject, start: int, end: int, *, ahead: bool = False, check: ObjectCheck | None = None
    ) -> PendingChunk:
        """Start to fetch a stretch; ``check`` gets its bytes before they count as there."""
        pool = self._ahead if ahead else self._now
        return PendingChunk(start, end, pool.submit(_fetch, self._store_of, item, start, end, check))

    def object_check(self, item: StoredObject) -> ObjectCheck | None:
        """Return what compares an object that is read in parts; none where its store has no checksums."""
        store = self._store_of(item.uri)
        return store.object_check(item) if isinstance(store, Verifying) else None

    def has_room(self, size: int, keeper: PrefetchedFile) -> bool:
        """Say whether ``keeper`` may hold so much more; readers that rest lose what they hold for it."""
        while self._total + size > self._budget:
            resting = next((reading for reading in self._used if reading is not keeper), None)
            # Readers that take turns would take each other's bytes away again and again.
            if resting is None or self._clock() - self._used[resting][1] < RESTING_SECONDS:
                return False
            resting.drop()
        return True

    def account(self, reading: PrefetchedFile, size: int) -> None:
        """Note how much one of them holds now, and that it was used."""
        self._total += size - self._used.pop(reading, (0, 0.0))[0]
        if size:
            self._used[reading] = (size, self._clock())


class PrefetchedFile:
    """One open object: knows whether it is read in sequence. Used by one thread; answers come on others."""

    def __init__(self, item: StoredObject, shelf: Prefetcher) -> None:
        self._item = item
        self._shelf = shelf
        #: Consecutive; the first begins at or before what was read last.
        self._parts: deque[PendingChunk] = deque()
        #: Where reading in sequence began, and how far it came.
        self._begun = 0
        self._reached = 0
        #: Compares the object while it is read in sequence from its first byte on.
        self._check: ObjectCheck | None = None

    def read(self, start: int, size: int, answer: Callable[[Content], None]) -> None:
        """Answer with the bytes from ``start`` on, up to the object's end, once they are there."""
        end = min(start + size, self._item.size)
        if start >= end:
            answer(())
            return
        if error := self._damage():
            answer(error)
            return
        parts = self._covering(start, end) if self._in_sequence(start) else []
        if not parts:
            parts = [self._shelf.fetch(self._item, start, end)]
        for part in parts:
            part.wanted = True
        self._reached = end
        if self._parts:
            self._fetch_ahead()
        _when_there(parts, lambda: answer(_cut(parts, start, end)))

    def close(self) -> None:
        """Give back what it holds."""
        self.drop()

    def drop(self) -> None:
        """Forget what was fetched ahead; who waits for some of it still gets it."""
        for part in self._parts:
            if not part.wanted:
                part.data.cancel()
        self._parts.clear()
        if self._check is not None:
            self._damage()
            self._check.stop()
            self._check = None
        self._shelf.account(self, 0)

    def _damage(self) -> DataError | None:
        """Return why the object's bytes are not to be used: the kernel asks again for what it could not read."""
        if self._check is not None and self._check.error is not None:
            self._shelf.damaged[self._item] = self._check.error
        return self._shelf.damaged.get(self._item)

    def _in_sequence(self, start: int) -> bool:
        """Say whether to read through the parts; begin them anew where a sequence begins."""
        if any(_failed(part) for part in self._parts):
            # Whoever reads again asks the store again.
            self.drop()
        if self._parts and self._parts[0].start <= start <= self._parts[-1].end:
            return True
        if start not in (0, self._reached):
            return False
        self.drop()
        self._begun = start
        if start == 0:
            self._check = self._shelf.object_check(self._item)
        return True

    def _covering(self, start: int, end: int) -> list[PendingChunk]:
        """Give the parts that a stretch lies in; none when there is no room for them."""
        while self._parts and self._parts[0].end + BEHIND_BYTES <= start:
            self._parts.popleft()
        while (at := self._parts[-1].end if self._parts else start) < end:
            size = min(max(self._part_size(start), end - at), self._item.size - at)
            if not self._add(at, size):
                return []
        return [part for part in self._parts if part.start < end and start < part.end]

    def _part_size(self, start: int) -> int:
        share = self._shelf.share()
        if self._begun == 0 and self._item.size <= min(WHOLE_BYTES, share):
            return self._item.size
        return max(min(start - self._begun, MOST_PART_BYTES, share // 4), LEAST_PART_BYTES)

    def _fetch_ahead(self) -> None:
        """Fetch twice as much again as was read in sequence until now, as far as there is room."""
        wanted = min(2 * (self._reached - self._begun), self._shelf.share())
        goal = min(self._reached + wanted, self._item.size)
        while (at := self._parts[-1].end) < goal:
            size = min(self._part_size(self._reached), self._item.size - at)
            if not self._add(at, size, ahead=True):
                break
        self._account()

    def _add(self, at: int, size: int, *, ahead: bool = False) -> bool:
        self._account()
        if not self._shelf.has_room(size, self):
            return False
        # The store itself compares what is read as a whole.
        check = None if size == self._item.size else self._check
        self._parts.append(self._shelf.fetch(self._item, at, at + size, ahead=ahead, check=check))
        self._account()
        return True

    def _account(self) -> None:
        self._shelf.account(self, self._parts[-1].end - self._parts[0].start if self._parts else 0)


def _failed(part: PendingChunk) -> bool:
    return part.data.done() and (part.data.cancelled() or part.data.exception() is not None)


def _fetch(
    store_of: Callable[[str], ObjectStore], item: StoredObject, start: int, end: int, check: ObjectCheck | None
) -> Buffer:
    data = store_of(item.uri).read(item, start, end)
    if check is not None:
        check.add(start, data)
    return data


def _when_there(parts: Sequence[PendingChunk], act: Callable[[], None]) -> None:
    """Act now if all parts are there, else on the thread that brings the last one."""
    for part in parts:
        if not part.data.done():
            part.data.add_done_callback(lambda _: _when_there(parts, act))
            return
    act()


def _cut(parts: Sequence[PendingChunk], start: int, end: int) -> Content:
    """Give the bytes of a stretch from the parts that it lies in, or the error of one of them."""
    found = []
    for part in parts:
        if part.data.cancelled():
            return CancelledError()
        if error := part.data.exception():
            return error
        data = memoryview(part.data.result())
        found.append(data[max(start - part.start, 0) : min(end, part.end) - part.start])
    return found
