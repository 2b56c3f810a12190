"""How the bytes of a channel's pieces stand in its pipe: as they are, decompressed, each a RecordIO record, or both."""

from __future__ import annotations

import zlib
from contextlib import closing
from typing import TYPE_CHECKING

from scriptmode.data import recordio
from scriptmode.data.object_store import Chunk
from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from pathlib import Path

    from scriptmode.data.object_store import Buffer

#: zlib's window for data with gzip's header and checksum.
_GZIP = 31
#: So much goes in and comes out at once: what does not fit is copied.
_IN = 256 * 1024
_OUT = 1024 * 1024


def frame(
    chunks: Generator[Chunk, None, None],
    *,
    is_gzipped: bool,
    is_wrapped: bool,
    spool: Path,
    manifest: str | None = None,
) -> Generator[Buffer, None, None]:
    """Yield the bytes of a pipe; a buffer may be empty, and is good until the next one is asked for.

    ``spool`` is a folder for a large object that waits for its length. Chunks of ``manifest``, an augmented
    manifest's URI, are its attributes and never compressed. Closing it closes ``chunks``. Raises `DataError` naming
    the object.
    """
    with closing(chunks):
        plain = _decompressed(chunks, manifest) if is_gzipped else chunks
        if is_wrapped:
            yield from recordio.wrapped(plain, spool)
        else:
            for chunk in plain:
                yield chunk.data


def _decompressed(chunks: Iterable[Chunk], manifest: str | None) -> Iterator[Chunk]:
    current: _Object | None = None
    for chunk in chunks:
        if current is None and chunk.uri == manifest:
            yield chunk
            continue
        current = current or _Object(chunk.uri)
        for data in current.take(chunk.data):
            yield Chunk(data, False, chunk.uri)  # noqa: FBT003 - a field of a tuple
        if chunk.ends:
            current.end()
            yield Chunk(b"", True, chunk.uri)  # noqa: FBT003
            current = None


class _Object:
    """A gzip file that comes in chunks of any size: members one after another, then any number of zeros."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        #: None between members.
        self._member: zlib._Decompress | None = None

    def take(self, chunk: Buffer) -> Iterator[bytes]:
        """Yield what more of the file decompresses to."""
        view = memoryview(chunk)
        for start in range(0, len(view), _IN):
            rest: Buffer = view[start : start + _IN]
            while len(rest):
                if self._member is None:
                    # gzip pads its files with zeros where they are written in blocks (gzip's manual, "Tapes").
                    rest = bytes(rest).lstrip(b"\0")
                    self._member = zlib.decompressobj(_GZIP) if rest else None
                else:
                    data, rest = self._step(self._member, rest)
                    if data:
                        yield data

    def end(self) -> None:
        """Raise `DataError` unless the file may end here; an empty one may."""
        if self._member is not None:
            raise DataError(
                f"{self._uri}: the gzip data ends in the middle, the object may be cut; store it again, "
                "or leave CompressionType out"
            )

    def _step(self, member: zlib._Decompress, rest: Buffer) -> tuple[bytes, bytes]:
        try:
            data = member.decompress(rest, _OUT)
        except zlib.error as error:
            raise DataError(
                f"{self._uri}: this is not gzip data, or it is broken ({error}); store it again, "
                "or leave CompressionType out"
            ) from error
        if member.eof:
            self._member = None
            return data, member.unused_data
        return data, member.unconsumed_tail
