"""Frame a channel's pieces for its pipe: unchanged, decompressed, each as a RecordIO record, or both."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from scriptmode.errors import DataError
from scriptmode_local._data import recordio
from scriptmode_local._data.object_store import Buffer, Chunk

#: zlib's window for data with gzip's header and checksum.
_GZIP = 31
#: Bytes of input and of output of one call; input that is left over is copied.
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
    """Yield the bytes of a pipe; a buffer may be empty, and is valid until the next one is asked for.

    ``spool`` is a directory for a large object whose length is not known yet. Chunks of ``manifest``, an augmented
    manifest's URI, are attributes and never compressed. Closing the generator closes ``chunks``. Raises `DataError`
    naming the object.
    """
    with closing(chunks):
        decompressed = _decompress(chunks, manifest) if is_gzipped else chunks
        if is_wrapped:
            yield from recordio.wrap(decompressed, spool)
        else:
            for chunk in decompressed:
                yield chunk.data


def _decompress(chunks: Iterable[Chunk], manifest: str | None) -> Iterator[Chunk]:
    current: _GzipObject | None = None
    for chunk in chunks:
        if current is None and chunk.uri == manifest:
            yield chunk
            continue
        current = current or _GzipObject(chunk.uri)
        for data in current.decompress(chunk.data):
            yield Chunk(data, False, chunk.uri)  # noqa: FBT003 - a field of a tuple
        if chunk.ends:
            current.end()
            yield Chunk(b"", True, chunk.uri)  # noqa: FBT003
            current = None


class _GzipObject:
    """A gzip file that comes in chunks of any size: members one after another, then any number of zeros."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        #: None between members.
        self._member: zlib._Decompress | None = None

    def decompress(self, chunk: Buffer) -> Iterator[bytes]:
        """Yield the decompressed bytes of one more chunk."""
        view = memoryview(chunk)
        for start in range(0, len(view), _IN):
            rest: Buffer = view[start : start + _IN]
            while len(rest):
                if self._member is None:
                    # Files that are written in blocks are padded with zeros (gzip's manual, "Tapes").
                    rest = bytes(rest).lstrip(b"\0")
                    self._member = zlib.decompressobj(_GZIP) if rest else None
                    continue
                data, rest = self._step(self._member, rest)
                if data:
                    yield data

    def end(self) -> None:
        """Raise `DataError` unless the file may end here; an empty one may."""
        if self._member is not None:
            what = f"{self._uri}: the gzip data is incomplete, the object may be truncated"
            raise DataError(what, advice="upload it again, or leave CompressionType out")

    def _step(self, member: zlib._Decompress, rest: Buffer) -> tuple[bytes, bytes]:
        try:
            data = member.decompress(rest, _OUT)
        except zlib.error as error:
            what = f"{self._uri}: this is not gzip data, or it is damaged ({error})"
            raise DataError(what, advice="upload it again, or leave CompressionType out") from error
        if member.eof:
            self._member = None
            return data, member.unused_data
        return data, member.unconsumed_tail
