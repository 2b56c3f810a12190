"""Stream large objects one after another, each over one connection, while that is fast; else as `prefetch` does.

A reader that is faster than S3 finds the window of `prefetch` empty. Then the window costs CPU alone: its memory is
larger than the processor's caches, and S3 answers many requests at a time. Where a connection or the reader is slower
than `LEAST_RATE`, `prefetch` reads the rest: with many connections, and ahead of the reader. It also reads what is
compared with a checksum, which other threads compute.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Callable, Union

from scriptmode_local._data.integrity import Verifying
from scriptmode_local._data.object_store import CHUNK_BYTES, Buffer, ObjectStore, Piece, StoredObject
from scriptmode_local._data.prefetch import Begun, prefetch

if TYPE_CHECKING:
    from scriptmode._core.aws.s3_body import Body

    #: A body whose next bytes the consumer moves: see `Body.splice`.
    Bytes = Union[Buffer, Body]

#: Bytes per second, in each `RATE_SECONDS`: more than a connection to Amazon S3 gives.
LEAST_RATE = 128 * 1024 * 1024
RATE_SECONDS = 1.0


def stream(
    store_of: Callable[[str], ObjectStore], pieces: Iterable[Piece], *, waiting: Callable[[], None]
) -> Generator[Bytes, None, None]:
    """Yield the bytes of all pieces in their order; a buffer is valid until the next one is asked for.

    Errors, closing and ``waiting`` are as in `prefetch`.
    """
    rest = iter(pieces)
    begun = yield from _one_by_one(store_of, rest, waiting)
    if begun is not None:
        with closing(prefetch(store_of, rest, waiting=waiting, begun=begun)) as chunks:
            for chunk in chunks:
                yield chunk.data


def _one_by_one(
    store_of: Callable[[str], ObjectStore], pieces: Iterator[Piece], waiting: Callable[[], None]
) -> Generator[Bytes, None, Begun | None]:
    """Yield the bytes of pieces while they are large and come fast; return the one that `prefetch` goes on with."""
    for piece in pieces:
        store = store_of(piece.uri)
        if not isinstance(piece, StoredObject) or piece.size <= CHUNK_BYTES or not isinstance(store, Verifying):
            return Begun(piece)
        check = store.object_check(piece)
        done = 0
        if not check.is_needed() and (body := store.open(piece, 0, piece.size, waiting)):
            with closing(body):
                yield from _while_fast(body)
            done = piece.size - body.left
        if done < piece.size:
            return Begun(piece, done, check)
    return None


def _while_fast(body: Body) -> Iterator[Bytes]:
    """Yield the bytes of an object until its connection breaks, or they come or are consumed too slowly."""
    before = body.left
    began = time.monotonic()
    while left := body.left:
        if body.can_splice:
            yield body
        else:
            yield body.read()
        seconds = time.monotonic() - began
        is_slow = seconds >= RATE_SECONDS and before - body.left < LEAST_RATE * seconds
        if left == body.left or is_slow:
            return
        if seconds >= RATE_SECONDS:
            began, before = time.monotonic(), body.left
