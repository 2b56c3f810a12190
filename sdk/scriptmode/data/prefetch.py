"""Pieces of a stream as chunks of bytes in their order, fetched ahead of the reader by threads."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Callable

from scriptmode.data.integrity import Verifying
from scriptmode.data.object_store import CHUNK_BYTES, Chunk, Literal
from scriptmode.data.targets import reading_while

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from scriptmode.data.integrity import ObjectCheck
    from scriptmode.data.object_store import Buffer, ObjectStore, Piece, StoredObject

WINDOW_BYTES = 128 * 1024 * 1024
WAITING_SECONDS = 0.2
#: What a chunk counts for beside its bytes: it is listed, named and looked after, and many are small or empty.
CHUNK_OVERHEAD_BYTES = 4096


def prefetch(
    store_of: Callable[[str], ObjectStore],
    pieces: Iterable[Piece],
    *,
    window_bytes: int = WINDOW_BYTES,
    workers: int = 16,
    waiting: Callable[[], None] = lambda: None,
) -> Generator[Chunk, None, None]:
    """Yield the bytes of all pieces in their order; at most about ``window_bytes`` are fetched or waiting at a time.

    ``pieces`` is consumed as the window moves on, by one of the threads at a time. What fails, a piece or ``pieces``
    itself, raises here after everything before it. Closing the generator ends the fetching: no request is begun
    afterwards, and those under way are broken off. ``waiting`` is called every `WAITING_SECONDS` without a chunk; what
    it raises is raised here.
    """
    window = _PrefetchWindow(store_of, iter(pieces), window_bytes)
    for number in range(workers):
        Thread(target=window.work, name=f"read-ahead-{number}", daemon=True).start()
    try:
        yield from window.chunks(waiting)
    finally:
        window.close()


class _SharedCheck:
    """Compares one piece with its checksum, where its store has such."""

    def __init__(self, piece: StoredObject) -> None:
        self._piece = piece
        self._beginning = Lock()
        self._sequence: ObjectCheck | None = None

    def add(self, store: ObjectStore, start: int, data: Buffer) -> None:
        """Take a part; raise `DataError` once all have come and are not the object's."""
        if not isinstance(store, Verifying):
            return
        with self._beginning:
            if self._sequence is None:
                self._sequence = store.object_check(self._piece)
        self._sequence.add(start, data)


@dataclass
class _PendingChunk:
    """A stretch of a piece on its way: it is ready once it has its ``data`` or an ``error``."""

    piece: Piece | None
    start: int
    end: int
    ends: bool
    #: Shared by the parts of one piece.
    check: _SharedCheck | None = None
    data: Buffer | None = None
    error: BaseException | None = None

    @property
    def is_ready(self) -> bool:
        return self.data is not None or self.error is not None

    @property
    def cost(self) -> int:
        return self.end - self.start + CHUNK_OVERHEAD_BYTES


class _PrefetchWindow:
    """The parts under way, in order. Threads take the next one when there is room; the reader takes the first."""

    def __init__(self, store_of: Callable[[str], ObjectStore], pieces: Iterator[Piece], room: int) -> None:
        self._store_of = store_of
        self._pieces = pieces
        self._parts = _parts(pieces)
        self._under_way: deque[_PendingChunk] = deque()
        self._room = room
        #: Nothing is taken any more: all is taken, something failed, or the reader went away.
        self._ended = False
        self._closed = False
        #: Held by the thread that takes the next part: whoever is first there stands first in the order.
        self._taking = Lock()
        changing = Lock()
        self._first_ready = Condition(changing)
        self._has_room = Condition(changing)

    def chunks(self, waiting: Callable[[], None]) -> Iterator[Chunk]:
        """Yield what is ready, in order; a chunk's room is given back when the next one is asked for."""
        part = self._first(waiting)
        while part is not None:
            if part.error is not None:
                raise part.error
            if part.data is not None and part.piece is not None:
                yield Chunk(part.data, part.ends, part.piece.uri)
            part.data = None
            with self._has_room:
                self._room += part.cost
                self._has_room.notify()
            part = self._first(waiting)

    def work(self) -> None:
        """Fetch one part after another until all are taken."""
        with reading_while(lambda: not self._closed):
            while (part := self._next()) is not None:
                self._fetch(part)

    def close(self) -> None:
        """Let no part be taken any more."""
        with self._has_room:
            self._closed = True
            self._end()
            self._under_way.clear()
        # A thread that is just taking closes the pieces itself when they come back to it.
        if self._taking.acquire(blocking=False):
            self._close_pieces()
            self._taking.release()

    def _first(self, waiting: Callable[[], None]) -> _PendingChunk | None:
        """Wait for the first part in order; none when that was the last."""
        with self._first_ready:
            while not self._under_way or not self._under_way[0].is_ready:
                if self._ended and not self._under_way:
                    return None
                if not self._first_ready.wait(WAITING_SECONDS):
                    waiting()
            return self._under_way.popleft()

    def _next(self) -> _PendingChunk | None:
        with self._taking:
            return self._take()

    def _take(self) -> _PendingChunk | None:
        with self._has_room:
            while self._room <= 0 and not self._ended:
                self._has_room.wait()
            if self._ended:
                return None
        try:
            part = next(self._parts, None)
        except Exception as error:  # noqa: BLE001 - raised where the reader comes to it
            part = _PendingChunk(None, 0, 0, ends=True, error=error)
        with self._first_ready:
            if self._ended:
                part = None
            if part is not None:
                self._under_way.append(part)
                self._room -= part.cost
            if part is None or part.error is not None:
                self._end()
            elif part.is_ready:
                self._first_ready.notify()
        if part is None:
            self._close_pieces()
        return part

    def _fetch(self, part: _PendingChunk) -> None:
        piece = part.piece
        if part.is_ready or piece is None or isinstance(piece, Literal):
            return
        data, error = None, None
        try:
            store = self._store_of(piece.uri)
            data = store.read(piece, part.start, part.end)
            if part.check is not None:
                part.check.add(store, part.start, data)
        except Exception as caught:  # noqa: BLE001 - raised where the reader comes to it
            error = caught
        with self._first_ready:
            part.data, part.error = data, error
            if error is not None:
                # The reader gets no further than here.
                self._end()
            elif self._under_way and self._under_way[0] is part:
                self._first_ready.notify()

    def _end(self) -> None:
        self._ended = True
        self._first_ready.notify()
        self._has_room.notify_all()

    def _close_pieces(self) -> None:
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()


def _parts(pieces: Iterator[Piece]) -> Iterator[_PendingChunk]:
    for piece in pieces:
        if isinstance(piece, Literal):
            yield _PendingChunk(piece, 0, len(piece.data), ends=True, data=piece.data)
        elif piece.size == 0:
            yield _PendingChunk(piece, 0, 0, ends=True, data=b"")
        else:
            # The store itself compares what is read as a whole.
            check = _SharedCheck(piece) if piece.size > CHUNK_BYTES else None
            for start in range(0, piece.size, CHUNK_BYTES):
                end = min(start + CHUNK_BYTES, piece.size)
                yield _PendingChunk(piece, start, end, ends=end == piece.size, check=check)
