"""Write RecordIO as dmlc-core's and MXNet's readers expect it: each piece of a stream becomes one record.

A record is a magic number, 3 bits of flag and 29 bits of length, the data, and zeros up to a multiple of 4. Data that
contains the magic number at a multiple of 4 is split there: readers search for it. Each part is written as a record
(flag 1 first, 2 in the middle, 3 last, 0 for a whole one); the magic is left out, and the reader inserts it again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING

from scriptmode.errors import DataError

if TYPE_CHECKING:
    from scriptmode_local._data.object_store import Buffer, Chunk

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
            is_whole = record is None and chunk.ends and len(chunk.data) <= LONGEST
            if is_whole and _find_magic(data := _searchable(chunk.data)) < 0:
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
        #: A part, whose length is not known yet: first in memory, then in a file.
        self._part = self._new_part()
        self._length = 0
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
        self._add_to_part(self._word)
        yield from self._written(LAST if self._was_split else WHOLE)

    def close(self) -> None:
        """Remove the file of a part that was not yielded."""
        # What a full disk refused is still in its buffer, and would be written again.
        with suppress(OSError):
            self._part.close()

    def _words(self, data: bytes | bytearray, end: int = _WORD) -> Iterator[Buffer]:
        start = 0
        while (at := _find_magic(data, start)) >= 0:
            self._add_to_part(memoryview(data)[start:at])
            yield from self._written(MIDDLE if self._was_split else FIRST)
            self._part, self._length = self._new_part(), 0
            self._was_split = True
            start = at + _WORD
        self._add_to_part(memoryview(data)[start:end])

    def _new_part(self) -> tempfile.SpooledTemporaryFile[bytes]:
        return tempfile.SpooledTemporaryFile(IN_MEMORY, dir=str(self._spool))

    def _add_to_part(self, data: Buffer) -> None:
        self._length += len(data)
        if self._length > LONGEST:
            what = f"{self._uri}: a RecordIO record holds at most {LONGEST:,} bytes"
            raise DataError(what, advice="upload smaller objects, or leave RecordWrapperType out")
        with self._full():
            self._part.write(data)
            self._part.flush()

    def _written(self, flag: int) -> Iterator[Buffer]:
        """Yield the part as a record."""
        yield _HEADER.pack(int.from_bytes(MAGIC, "little"), flag << 29 | self._length)
        with self._full():
            self._part.seek(0)
            while block := self._part.read(_READ):
                yield block
        if padding := bytes(-self._length % _WORD):
            yield padding
        self.close()

    @contextmanager
    def _full(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what = f"{self._uri}: {str(self._spool)!r} cannot hold the object until its length is known"
            raise DataError(f"{what}: {error.strerror or error}", "free space there") from error
