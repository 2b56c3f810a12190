"""Prefetch with threads, and yield in order: the bytes of a stream's pieces, or what is looked up for a manifest.

A piece is cut into chunks of `CHUNK_BYTES`. A chunk, or another item, goes through these states, in order:

    not scheduled --worker--> pending --worker--> ready --consumer--> yielded --consumer--> released
                                 |                  ^
                                 +---- error -------+   (raised when the consumer comes to it)

* *Workers* (threads) schedule the next chunk while the window has budget left, read it from its store, and mark it
  ready with its bytes or its error. One worker schedules at a time, so that the queue has the order of the stream.
* The *consumer* (the generator's caller) waits for the first chunk of the queue to be ready. It returns a chunk's bytes
  to the budget when it asks for the next one.

Bounded are the bytes of all pending, ready and yielded chunks (the window: ``window_bytes``, exceeded by less than one
chunk) and the requests at a time (``workers``). Retries are bounded by the store: see `s3_store.S3Store`.

Scheduling stops at the end of the pieces, after the first error, and when the consumer closes the generator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from threading import Condition, Lock, Thread
from typing import Callable, Generic, NamedTuple, TypeVar

from scriptmode_local._data.cancellation import cancelled_by
from scriptmode_local._data.integrity import ObjectCheck, Verifying
from scriptmode_local._data.object_store import CHUNK_BYTES, Buffer, Chunk, Literal, ObjectStore, Piece, StoredObject

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

WINDOW_BYTES = 112 * 1024 * 1024
WAITING_SECONDS = 0.2
WORKERS = 16
#: What a chunk costs of the window beside its bytes: it is an object with a name, and many chunks are small or empty.
CHUNK_OVERHEAD_BYTES = 4096


def prefetch(
    store_of: Callable[[str], ObjectStore],
    pieces: Iterable[Piece],
    *,
    window_bytes: int = WINDOW_BYTES,
    workers: int = WORKERS,
    waiting: Callable[[], None] = lambda: None,
    begun: Begun | None = None,
) -> Generator[Chunk, None, None]:
    """Yield the bytes of all pieces in their order; about ``window_bytes`` at most are prefetched at a time.

    ``begun`` comes before ``pieces``, which is consumed as the window moves on, by one of the threads at a time. An
    error of a piece, or of ``pieces`` itself, is raised here after everything before it was yielded. Closing the
    generator stops the prefetching: no request is sent afterwards, and those in progress are aborted. ``waiting`` is
    called every `WAITING_SECONDS` without a chunk; what it raises is raised here.
    """

    def read(chunk: _PendingChunk) -> list[Chunk]:
        piece = chunk.piece
        if isinstance(piece, Literal) or chunk.start == chunk.end:
            return [Chunk(piece.data if isinstance(piece, Literal) else b"", ends=True, uri=piece.uri)]
        *buffers, last = read_chunk(store_of, piece, chunk.start, chunk.end, chunk.check)
        earlier = [Chunk(buffer, ends=False, uri=piece.uri) for buffer in buffers]
        return [*earlier, Chunk(last, chunk.end == piece.size, piece.uri)]

    chunks = _chunks_of(pieces, store_of, begun)
    results = ordered_prefetch(chunks, read, cost=_cost, budget=window_bytes, workers=workers, waiting=waiting)
    with closing(results):
        for result in results:
            while result:
                yield result.pop(0)


def ordered_prefetch(
    items: Iterator[_Item],
    fetch: Callable[[_Item], _Result],
    *,
    cost: Callable[[_Item], int] = lambda _: 1,
    budget: int,
    workers: int = WORKERS,
    waiting: Callable[[], None] = lambda: None,
) -> Generator[_Result, None, None]:
    """Yield what ``fetch`` returns for each item, in the order of the items, prefetched by ``workers`` threads.

    The sum of their costs is at most the ``budget`` at a time, exceeded by less than one item. Errors, closing and
    ``waiting`` are as in `prefetch`.
    """
    window = _PrefetchWindow(items, fetch, cost, budget)
    for number in range(workers):
        Thread(target=window.run_worker, name=f"prefetch-{number}", daemon=True).start()
    try:
        yield from window.results(waiting)
    finally:
        window.close()


def read_chunk(
    store_of: Callable[[str], ObjectStore], item: StoredObject, start: int, end: int, check: ObjectCheck | None
) -> Sequence[Buffer]:
    """Return a range of an object, after it was added to the check of the object."""
    data = store_of(item.uri).read(item, start, end)
    if check is not None:
        check.add(start, data)
    return data


def object_check(store_of: Callable[[str], ObjectStore], item: StoredObject) -> ObjectCheck | None:
    """Return the check of an object that is read in chunks; None where its store has no checksums."""
    store = store_of(item.uri)
    return store.object_check(item) if isinstance(store, Verifying) else None


class Begun(NamedTuple):
    """A piece whose first bytes were read already."""

    piece: Piece
    done: int = 0
    check: ObjectCheck | None = None


class _PendingChunk(NamedTuple):
    """A range of a piece."""

    piece: Piece
    start: int
    end: int
    #: Shared by the chunks of one piece; None where its store has no checksums.
    check: ObjectCheck | None = None


def _cost(chunk: _PendingChunk) -> int:
    return chunk.end - chunk.start + CHUNK_OVERHEAD_BYTES


@dataclass
class _Pending(Generic[_Result]):
    """An item that was scheduled; it is ready once it has its ``result`` or an ``error``."""

    cost: int = 0
    result: list[_Result] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def is_ready(self) -> bool:
        return bool(self.result) or self.error is not None


class _PrefetchWindow(Generic[_Item, _Result]):
    """The queue of pending and ready items, and the cost of the budget that is left (the module has the picture)."""

    def __init__(
        self, items: Iterator[_Item], fetch: Callable[[_Item], _Result], cost: Callable[[_Item], int], budget: int
    ) -> None:
        self._items = items
        self._fetch = fetch
        self._cost = cost
        self._queue: deque[_Pending[_Result]] = deque()
        #: What is left; less than 0 by at most one item.
        self._budget = budget
        #: No item is scheduled any more: all were, one failed, or the consumer closed the generator.
        self._stopped = False
        self._closed = False
        #: Held by the worker that schedules: the order of the locking is the order of the queue.
        self._scheduling = Lock()
        changing = Lock()
        self._first_is_ready = Condition(changing)
        self._has_budget = Condition(changing)

    def results(self, waiting: Callable[[], None]) -> Iterator[_Result]:
        """Yield results in order as they become ready; each is released when the next one is asked for."""
        while (pending := self._wait_for_first(waiting)) is not None:
            if pending.error is not None:
                raise pending.error
            yield pending.result[0]
            pending.result.clear()
            with self._has_budget:
                self._budget += pending.cost
                self._has_budget.notify()

    def run_worker(self) -> None:
        """Schedule and read one chunk after another until scheduling stops."""
        with cancelled_by(lambda: self._closed):
            while (scheduled := self._schedule()) is not None:
                item, pending = scheduled
                result, error = [], None
                try:
                    result.append(self._fetch(item))
                except Exception as caught:  # noqa: BLE001 - raised where the consumer comes to it
                    error = caught
                with self._first_is_ready:
                    pending.result, pending.error = result, error
                    if error is not None:
                        # The consumer gets no further than here.
                        self._stop()
                    elif self._queue and self._queue[0] is pending:
                        self._first_is_ready.notify()

    def close(self) -> None:
        """Stop scheduling and abort the reads in progress."""
        with self._has_budget:
            self._closed = True
            self._stop()
            self._queue.clear()
        # A worker that is scheduling closes the pieces itself when its call of them returns.
        if self._scheduling.acquire(blocking=False):
            _close(self._items)
            self._scheduling.release()

    def _wait_for_first(self, waiting: Callable[[], None]) -> _Pending[_Result] | None:
        """Wait for the first chunk of the queue and remove it; return None after the last one."""
        with self._first_is_ready:
            while not self._queue or not self._queue[0].is_ready:
                if self._stopped and not self._queue:
                    return None
                if not self._first_is_ready.wait(WAITING_SECONDS):
                    waiting()
            return self._queue.popleft()

    def _schedule(self) -> tuple[_Item, _Pending[_Result]] | None:
        """Append the next chunk to the queue once there is budget; return None when scheduling has stopped."""
        with self._scheduling:
            with self._has_budget:
                while self._budget <= 0 and not self._stopped:
                    self._has_budget.wait()
                if self._stopped:
                    return None
            item = error = None
            try:
                item = next(self._items, None)
            except Exception as caught:  # noqa: BLE001 - raised where the consumer comes to it
                error = caught
            with self._first_is_ready:
                if item is not None and not self._stopped:
                    pending = _Pending[_Result](self._cost(item))
                    self._queue.append(pending)
                    self._budget -= pending.cost
                    return item, pending
                if error is not None:
                    self._queue.append(_Pending(error=error))
                self._stop()
            _close(self._items)
            return None

    def _stop(self) -> None:
        """Stop scheduling; the caller holds the lock of both conditions."""
        self._stopped = True
        self._first_is_ready.notify()
        self._has_budget.notify_all()


def _chunks_of(
    pieces: Iterable[Piece], store_of: Callable[[str], ObjectStore], begun: Begun | None
) -> Iterator[_PendingChunk]:
    iterator = iter(pieces)
    try:
        for piece, done, begun_check in chain([begun] if begun else (), map(Begun, iterator)):
            size = len(piece.data) if isinstance(piece, Literal) else piece.size
            if isinstance(piece, Literal) or size <= CHUNK_BYTES:
                # The store itself verifies an object that is read as a whole.
                yield _PendingChunk(piece, 0, size)
                continue
            check = begun_check or object_check(store_of, piece)
            for start in range(done, size, CHUNK_BYTES):
                yield _PendingChunk(piece, start, min(start + CHUNK_BYTES, size), check)
    finally:
        _close(iterator)


def _close(iterator: Iterator[object]) -> None:
    if close := getattr(iterator, "close", None):
        close()
