"""Write RecordIO as dmlc-core's and MXNet's readers expect it: each piece of a stream becomes one record.

A record is a magic number, 3 bits of flag and 29 bits of length, the data, and zeros up to a multiple of 4. Data that
contains the magic number at a multiple of 4 is split there: readers search for it. Each part is written as a record
(flag 1 first, 2 in the middle, 3 last, 0 for a whole one); the magic is left out, and the reader inserts it again.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from struct import Struct
from typing import IO, TYPE_CHECKING

from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from scriptmode.data.object_store import Buffer, Chunk

MAGIC = 0xCED7230A.to_bytes(4, "little")
#: The length field has 29 bits.
LONGEST = 2**29 - 1
#: A longer part is spooled to a file until its end is known.
IN_MEMORY = 32 * 1024 * 1024
#: A shorter record is yielded as one buffer: one more write costs more than a copy.
JOINED = 256 * 1024
WHOLE, FIRST, MIDDLE, LAST = 0, 1, 2, 3
_HEADER = Struct("<II")
_WORD = 4
_READ = 1024 * 1024


def wrap(chunks: Iterable[Chunk], spool: Path) -> Iterator[Buffer]:
    """Yield the records of a stream's pieces; each part of a record is yielded when its end is known.

    At most `IN_MEMORY` bytes of a part are in memory, the rest is in an unnamed file in the directory ``spool``. Raises
    `DataError` naming the object for a part longer than the format allows, or when the disk is full.
    """
    record: _Record | None = None
    try:
        for chunk in chunks:
            if record is None and chunk.ends and _is_one_part(data := _searchable(chunk.data)):
                yield from _record_of_one(data)
                continue
            record = record or _Record(chunk.uri, spool)
            yield from record.add(chunk.data)
            if chunk.ends:
                yield from record.end()
                record = None
    finally:
        if record is not None:
            record.close()


def _record_of_one(data: bytes | bytearray) -> Iterator[Buffer]:
    header, padding = _HEADER.pack(int.from_bytes(MAGIC, "little"), len(data)), bytes(-len(data) % _WORD)
    if len(data) <= JOINED:
        yield b"".join((header, data, padding))
        return
    yield header
    yield data
    if padding:
        yield padding


def _is_one_part(data: bytes | bytearray) -> bool:
    return len(data) <= LONGEST and _find_magic(data) < 0


def _searchable(data: Buffer) -> bytes | bytearray:
    return bytes(data) if isinstance(data, memoryview) or not hasattr(data, "find") else data


def _find_magic(data: bytes | bytearray, start: int = 0) -> int:
    """Return the offset of the magic number at a multiple of 4 from ``start`` on; -1 without one."""
    at = data.find(MAGIC, start)
    while at % _WORD and at >= 0:
        at = data.find(MAGIC, at + 1)
    return at


class _Record:
    """A record whose data comes in chunks of any size."""

    def __init__(self, uri: str, spool: Path) -> None:
        self._uri = uri
        self._spool = spool
        self._part = _Part(uri, spool)
        #: The incomplete word at the end of the last chunk: the magic may lie across two chunks.
        self._word = b""
        self._was_split = False

    def add(self, chunk: Buffer) -> Iterator[Buffer]:
        """Add data; yield the parts that end with it."""
        missing = -len(self._word) % _WORD
        if missing:
            self._word += bytes(chunk[:missing])
            if len(self._word) < _WORD:
                return
            yield from self._words(self._word)
        data = _searchable(chunk[missing:] if missing else chunk)
        end = len(data) - len(data) % _WORD
        self._word = bytes(data[end:])
        yield from self._words(data, end)

    def end(self) -> Iterator[Buffer]:
        """Yield the last part."""
        self._part.add(self._word)
        yield from self._part.written(LAST if self._was_split else WHOLE)
        self.close()

    def close(self) -> None:
        """Remove the file of a part that was not yielded."""
        self._part.close()

    def _words(self, data: bytes | bytearray, end: int = _WORD) -> Iterator[Buffer]:
        start = 0
        while (at := _find_magic(data, start)) >= 0:
            self._part.add(memoryview(data)[start:at])
            yield from self._part.written(MIDDLE if self._was_split else FIRST)
            self.close()
            self._part = _Part(self._uri, self._spool)
            self._was_split = True
            start = at + _WORD
        self._part.add(memoryview(data)[start:end])


class _Part:
    """Data whose length is not known yet: first in memory, then in a file."""

    def __init__(self, uri: str, spool: Path) -> None:
        self._uri = uri
        self._spool = spool
        self._length = 0
        self._memory = bytearray()
        self._file: IO[bytes] | None = None

    def add(self, data: Buffer) -> None:
        """Add data."""
        self._length += len(data)
        if self._length > LONGEST:
            raise DataError(
                f"{self._uri}: a RecordIO record holds at most {LONGEST:,} bytes",
                advice="upload smaller objects, or leave RecordWrapperType out",
            )
        if len(self._memory) + len(data) > IN_MEMORY:
            self._spill()
        self._memory += data

    def written(self, flag: int) -> Iterator[Buffer]:
        """Yield the part as a record."""
        yield _HEADER.pack(int.from_bytes(MAGIC, "little"), flag << 29 | self._length)
        if self._file is not None:
            self._file.seek(0)
            while block := self._read(self._file):
                yield block
        if self._memory:
            yield self._memory
        if padding := bytes(-self._length % _WORD):
            yield padding

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()

    def _read(self, file: IO[bytes]) -> bytes:
        with self._full():
            return file.read(_READ)

    def _spill(self) -> None:
        with self._full():
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._spool, buffering=0)  # noqa: SIM115 - close() does
            view = memoryview(self._memory)
            while view:
                view = view[self._file.write(view) :]
        self._memory = bytearray()

    @contextmanager
    def _full(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(
                f"{self._uri}: {str(self._spool)!r} cannot hold the object until its length is known: "
                f"{error.strerror or error}",
                advice="free space there",
            ) from error
