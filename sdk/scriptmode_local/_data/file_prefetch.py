"""Prefetch for the open files of a FastFile mount, within one budget for all of them.

A file that is read at random is read by the ranges that its reader asks for. From its first byte on, or where the last
read ended, a file counts as read in sequence, and its chunks go through these states:

    pending --fetch thread--> ready --reader has passed it--> dropped
       |                        ^
       +--------- error --------+      (the read that needs it fails; the next one drops all and asks the store again)

* The *server's thread* calls `PrefetchedFile.read`. It submits the chunks that the read covers to the pool for reads
  that a reader waits for, and twice as much as was read in sequence so far to the pool for prefetches.
* *Fetch threads* read from the store, and answer the reads that waited for their chunk.

Bounded are the bytes of all chunks, pending or ready (`BUDGET_BYTES`; one file holds a share of them and at most
`MOST_AHEAD_BYTES`), and the requests at a time (`WORKERS` for each pool). A file that was not read for `IDLE_SECONDS`
loses its chunks to one that needs them. Without budget a read asks the store directly. Retries are bounded by the
store: see `s3_store.S3Store`. A fetch thread that a store does not return to is known by its silence (`is_stalled`).
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Union

from scriptmode.errors import DataError
from scriptmode_local._data.cancellation import cancelled_by
from scriptmode_local._data.object_store import CHUNK_BYTES, Buffer, ObjectStore, StoredObject
from scriptmode_local._data.prefetch import WORKERS, object_check, read_chunk

if TYPE_CHECKING:
    from scriptmode_local._data.integrity import ObjectCheck

#: The result of a read: consecutive bytes in one or more buffers, or an error.
Content = Union["Sequence[Buffer]", BaseException]
MIB = 1024 * 1024
#: Bytes of the pending and ready chunks of all open files together.
BUDGET_BYTES = 128 * MIB
#: A file up to this size is one chunk.
WHOLE_BYTES = 4 * MIB
#: Chunks grow with what was read in sequence: the first bytes come soon, and a large file takes few requests.
LEAST_CHUNK_BYTES, MOST_CHUNK_BYTES = 1 * MIB, CHUNK_BYTES
MOST_AHEAD_BYTES = 64 * MIB
#: The kernel reads ahead by itself, a little out of order.
BEHIND_BYTES = 1 * MIB
#: Seconds without a sign of life from a store after which a read has failed: a store's own limits are shorter, which
#: are those of one attempt and not of all.
STALL_SECONDS = 120.0
#: Seconds without a read after which a file may lose its chunks.
IDLE_SECONDS = 1.0


@dataclass
class PendingChunk:
    """A range of an object's bytes, pending or ready."""

    start: int
    end: int
    data: Future[Sequence[Buffer]]
    #: When it was requested, or its fetch thread last showed that it is alive.
    active: float
    #: Whether a read waits for it, or has got some of it.
    is_needed: bool = False


class Prefetcher:
    """What all open files of a mount share: the fetch threads and the budget. Used by one thread."""

    def __init__(
        self,
        store_of: Callable[[str], ObjectStore],
        budget: int = BUDGET_BYTES,
        *,
        fetchers: int = WORKERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store_of = store_of
        #: When any fetch thread last showed that it is alive.
        self._active = clock()
        self._budget = budget
        self._clock = clock
        #: Bytes and time of the last read, the least recently read first.
        self._used: OrderedDict[PrefetchedFile, tuple[int, float]] = OrderedDict()
        self._total = 0
        #: Objects whose bytes differ from their checksum, and the reason.
        self.damaged: dict[StoredObject, DataError] = {}
        # A read that a reader waits for is not queued behind prefetches.
        self._needed = ThreadPoolExecutor(fetchers, "fetch")
        self._prefetches = ThreadPoolExecutor(fetchers, "prefetch")

    def held(self, file: PrefetchedFile | None = None) -> int:
        """Return the bytes of the pending and ready chunks of one file, or of all."""
        return self._used.get(file, (0, 0.0))[0] if file else self._total

    def share(self) -> int:
        """Return the bytes that one file may hold, so that one more file has as many."""
        return max(min(MOST_AHEAD_BYTES, self._budget // (1 + len(self._used))), LEAST_CHUNK_BYTES)

    def open(self, item: StoredObject) -> PrefetchedFile:
        """Open an object."""
        return PrefetchedFile(item, self)

    def close(self) -> None:
        """Stop the threads after the requests in progress."""
        for pool in (self._needed, self._prefetches):
            pool.shutdown(wait=True, cancel_futures=True)

    def fetch(
        self, item: StoredObject, start: int, end: int, *, ahead: bool = False, check: ObjectCheck | None = None
    ) -> PendingChunk:
        """Start to fetch a range; its bytes are added to ``check`` before the chunk is ready."""
        pool = self._prefetches if ahead else self._needed
        chunk = PendingChunk(start, end, Future(), self._clock())

        def is_cancelled() -> bool:
            # Stores ask it after each part and before each attempt.
            chunk.active = self._active = self._clock()
            return False

        def fetch() -> Sequence[Buffer]:
            is_cancelled()
            with cancelled_by(is_cancelled):
                return read_chunk(self.store_of, item, start, end, check)

        chunk.data = pool.submit(fetch)
        return chunk

    def is_stalled(self, chunk: PendingChunk, seconds: float) -> bool:
        """Return whether a chunk's fetch thread, or all of them if it has none yet, have been silent that long."""
        active = chunk.active if chunk.data.running() else max(chunk.active, self._active)
        return not chunk.data.done() and self._clock() - active > seconds

    def reserve(self, size: int, file: PrefetchedFile) -> bool:
        """Return whether the budget has ``size`` more bytes for ``file``; idle files lose their chunks for it."""
        while self._total + size > self._budget:
            idle = next((other for other in self._used if other is not file), None)
            # Not sooner: files that are read in turns would take each other's chunks away again and again.
            if idle is None or self._clock() - self._used[idle][1] < IDLE_SECONDS:
                return False
            idle.close()
        return True

    def account(self, file: PrefetchedFile, size: int) -> None:
        """Record the bytes that a file holds now, and the time as that of its last read."""
        self._total += size - self._used.pop(file, (0, 0.0))[0]
        if size:
            self._used[file] = (size, self._clock())


class PrefetchedFile:
    """An open object, prefetched while it is read in sequence. Used by one thread; answers come on others."""

    def __init__(self, item: StoredObject, prefetcher: Prefetcher) -> None:
        self._item = item
        self._prefetcher = prefetcher
        #: Consecutive; the first one starts at or before the last read.
        self._chunks: deque[PendingChunk] = deque()
        #: Offsets: where reading in sequence started, and where the last read ended.
        self._sequence_start = 0
        self._offset = 0
        #: Verifies the object while it is read in sequence from its first byte on.
        self._check: ObjectCheck | None = None

    def read(
        self, start: int, size: int, answer: Callable[[Content], None]
    ) -> Callable[[float], DataError | None] | None:
        """Call ``answer`` once, on any thread, with the bytes from ``start`` on, within the object, or the error.

        The function that is returned, unless the read was answered at once, is for any thread, too: it returns an error
        if the store has been silent for as many seconds, else None.
        """
        end = min(start + size, self._item.size)
        if start >= end:
            answer(())
            return None
        if error := self._damage():
            answer(error)
            return None
        chunks = self._covering(start, end) if self._is_sequential(start) else []
        if not chunks:
            chunks = [self._prefetcher.fetch(self._item, start, end)]
        for chunk in chunks:
            chunk.is_needed = True
        self._offset = end
        if self._chunks:
            self._prefetch()
        _when_ready(chunks, lambda: answer(_cut(chunks, start, end)))
        return lambda seconds: self._stall(chunks, seconds)

    def _stall(self, chunks: Sequence[PendingChunk], seconds: float) -> DataError | None:
        if not any(self._prefetcher.is_stalled(chunk, seconds) for chunk in chunks):
            return None
        reason = f"{self._item.uri}: reading it has hung for {seconds:.0f} s"
        return DataError(reason, advice="check that its storage answers on this machine, and start the job again")

    def close(self) -> None:
        """Drop all chunks; reads that wait for one still get it."""
        for chunk in self._chunks:
            if not chunk.is_needed:
                chunk.data.cancel()
        self._chunks.clear()
        if self._check is not None:
            self._damage()
            self._check.stop()
            self._check = None
        self._prefetcher.account(self, 0)

    def _damage(self) -> DataError | None:
        """Return why the object's bytes must not be used; kept: the kernel repeats reads that failed."""
        if self._check is not None and self._check.error is not None:
            self._prefetcher.damaged[self._item] = self._check.error
        return self._prefetcher.damaged.get(self._item)

    def _is_sequential(self, start: int) -> bool:
        """Return whether a read goes through the chunks; drop them first where a new sequence starts."""
        ended = (chunk.data for chunk in self._chunks if chunk.data.done())
        if any(data.cancelled() or data.exception() for data in ended):
            # A read after a failed one asks the store again.
            self.close()
        if self._chunks and self._chunks[0].start <= start <= self._chunks[-1].end:
            return True
        if start not in (0, self._offset):
            return False
        self.close()
        self._sequence_start = start
        if start == 0:
            self._check = object_check(self._prefetcher.store_of, self._item)
        return True

    def _covering(self, start: int, end: int) -> list[PendingChunk]:
        """Return the chunks that cover a range, fetching what is missing; none when the budget is used up."""
        while self._chunks and self._chunks[0].end + BEHIND_BYTES <= start:
            self._chunks.popleft()
        while (at := self._chunks[-1].end if self._chunks else start) < end:
            size = min(max(self._chunk_size(start), end - at), self._item.size - at)
            if not self._add(at, size):
                return []
        return [chunk for chunk in self._chunks if chunk.start < end and start < chunk.end]

    def _chunk_size(self, start: int) -> int:
        share = self._prefetcher.share()
        if self._sequence_start == 0 and self._item.size <= min(WHOLE_BYTES, share):
            return self._item.size
        return max(min(start - self._sequence_start, MOST_CHUNK_BYTES, share // 4), LEAST_CHUNK_BYTES)

    def _prefetch(self) -> None:
        """Prefetch twice as much as was read in sequence until now, as far as the budget goes."""
        ahead = min(2 * (self._offset - self._sequence_start), self._prefetcher.share())
        goal = min(self._offset + ahead, self._item.size)
        while (at := self._chunks[-1].end) < goal:
            size = min(self._chunk_size(self._offset), self._item.size - at)
            if not self._add(at, size, ahead=True):
                break
        self._account()

    def _add(self, at: int, size: int, *, ahead: bool = False) -> bool:
        self._account()
        if not self._prefetcher.reserve(size, self):
            return False
        # The store itself verifies an object that is read as a whole.
        check = None if size == self._item.size else self._check
        self._chunks.append(self._prefetcher.fetch(self._item, at, at + size, ahead=ahead, check=check))
        self._account()
        return True

    def _account(self) -> None:
        self._prefetcher.account(self, self._chunks[-1].end - self._chunks[0].start if self._chunks else 0)


def _when_ready(chunks: Sequence[PendingChunk], call: Callable[[], None]) -> None:
    """Call ``call`` now if all chunks are ready, else on the thread that fetches the last one."""
    for chunk in chunks:
        if not chunk.data.done():
            chunk.data.add_done_callback(lambda _: _when_ready(chunks, call))
            return
    call()


def _cut(chunks: Sequence[PendingChunk], start: int, end: int) -> Content:
    """Return the bytes of a range from the chunks that cover it, or the error of one of them."""
    parts: list[Buffer] = []
    for chunk in chunks:
        if chunk.data.cancelled():
            return CancelledError()
        if error := chunk.data.exception():
            return error
        offset = chunk.start
        for buffer in chunk.data.result():
            if part := memoryview(buffer)[max(start - offset, 0) : max(end - offset, 0)]:
                parts.append(part)
            offset += len(buffer)
    return parts
