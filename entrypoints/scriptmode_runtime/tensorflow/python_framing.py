"""How a stream is cut into records, in Python: what ``native/*record*.h`` and ``native/framing.h`` do, byte by byte."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    #: Yields a record, or None where it needs more bytes.
    Records = Generator["bytes | None", None, None]

_MAGIC = 0xCED7230A
_MAGIC_BYTES = struct.pack("<I", _MAGIC)
_TF_HEADER, _PART_HEADER = 12, 8
_ONLY, _FIRST, _MIDDLE, _LAST = range(4)


class DamageError(Exception):
    """A record too many is damaged; the text says which, where and how."""


class Stream:
    """The bytes that were read and belong to no record yet; counts records, and damage."""

    def __init__(self, may_skip: int) -> None:
        self.buffer = bytearray()
        self.ended = False
        self.count = 0
        self.position = 0
        self._may_skip = may_skip
        self._in_a_row = self._skipped = 0

    def skip(self, count: int) -> None:
        """Pass over bytes."""
        del self.buffer[:count]
        self.position += count

    def good(self) -> None:
        """Count a whole record."""
        self.count += 1
        self._in_a_row = 0

    def damage(self, what: str) -> None:
        """Count a damaged record; raises `DamageError` where one more is too many."""
        if self._in_a_row >= self._may_skip:
            record = self.count + self._skipped
            raise DamageError(f"record {record}, at byte {self.position} of the stream, {what}")
        self._in_a_row += 1
        self._skipped += 1

    def needs(self, size: int) -> Iterator[None]:
        """Wait, for a generator of records, until so many bytes are there or the stream ended."""
        while len(self.buffer) < size and not self.ended:
            yield None

    def search(self, size: int, is_header: Callable[[bytes | bytearray], bool]) -> Iterator[None]:
        """Pass over a byte, and on to what may be a header of ``size`` bytes; to the end if there is none."""
        at = 1
        while True:
            while at + size <= len(self.buffer):
                if is_header(self.buffer[at : at + size]):
                    self.skip(at)
                    return
                at += 1
            if self.ended:
                self.skip(len(self.buffer))
                return
            yield None


def text_lines(stream: Stream) -> Records:
    r"""Cut lines; what ends them, ``\n`` or ``\r\n``, is no part of them."""
    searched = 0
    while True:
        end = stream.buffer.find(b"\n", searched)
        if end < 0 and not stream.ended:
            searched = len(stream.buffer)
            yield None
            continue
        if end < 0 and not stream.buffer:
            return
        line = bytes(stream.buffer) if end < 0 else bytes(stream.buffer[:end]).removesuffix(b"\r")
        stream.skip(len(stream.buffer) if end < 0 else end + 1)
        searched = 0
        stream.good()
        yield line


def tf_records(stream: Stream) -> Records:
    """Cut TFRecord: uint64 length, its checksum, the bytes, their checksum."""
    while True:
        yield from stream.needs(_TF_HEADER)
        if not stream.buffer:
            return
        if not _is_header(stream.buffer[:_TF_HEADER]):
            what = (
                "is cut: the stream ends within its length"
                if len(stream.buffer) < _TF_HEADER
                else _wrong_length(stream)
            )
            stream.damage(what)
            yield from stream.search(_TF_HEADER, _is_header)
            continue
        (length,) = struct.unpack_from("<Q", stream.buffer)
        total = length + 16
        yield from stream.needs(total)
        if len(stream.buffer) < total:
            there = len(stream.buffer) - _TF_HEADER
            stream.damage(f"is cut: the stream ends after {there} of its {length} bytes and checksum")
            yield from stream.search(_TF_HEADER, _is_header)
            continue
        record = bytes(stream.buffer[12 : total - 4])
        if masked_crc32c(record) == _uint32(stream.buffer, total - 4):
            stream.skip(total)
            stream.good()
            yield record
            continue
        yield from stream.needs(total + _TF_HEADER)
        stream.damage("has a wrong checksum")
        # Its length may have taken the records after it in, unless one follows where it says.
        if len(stream.buffer) == total or _is_header(stream.buffer[total : total + _TF_HEADER]):
            stream.skip(total)
        else:
            yield from stream.search(_TF_HEADER, _is_header)


def record_io(stream: Stream) -> Records:
    """Cut RecordIO: magic, part and length, the bytes, zeros up to a multiple of 4."""
    parts: list[bytes] = []
    is_lost = False
    while True:
        yield from stream.needs(_PART_HEADER)
        if len(stream.buffer) < _PART_HEADER:
            if stream.buffer or parts:
                stream.damage(
                    f"is cut: the stream ends {'within its header' if stream.buffer else 'between its parts'}"
                )
            return
        if not _begins_part(stream.buffer[:_PART_HEADER]):
            stream.damage("does not begin with RecordIO's magic number, or is no part that RecordIO knows")
            parts = []
            yield from stream.search(_PART_HEADER, _begins_part)
            continue
        word = _uint32(stream.buffer, 4)
        part, length = word >> 29, word & (1 << 29) - 1
        goes_on = part in (_MIDDLE, _LAST)
        if goes_on != bool(parts) and not (goes_on and is_lost):
            stream.damage("has no first part" if goes_on else "follows one whose last part is missing")
            parts = []
        is_lost = goes_on and not parts
        padded = length + -length % 4
        yield from stream.needs(8 + padded)
        if len(stream.buffer) < 8 + padded:
            there = min(len(stream.buffer) - 8, length)
            stream.damage(f"is cut: the stream ends after {there} of the {length} bytes of a part and its padding")
            parts = []
            yield from stream.search(_PART_HEADER, _begins_part)
            continue
        parts.append(bytes(stream.buffer[8 : 8 + length]))
        stream.skip(8 + padded)
        if part in (_ONLY, _LAST) and not is_lost:
            stream.good()
            yield _MAGIC_BYTES.join(parts)
        if part in (_ONLY, _LAST) or is_lost:
            parts = []


FRAMINGS = {"RecordIO": record_io, "TFRecord": tf_records, "TextLine": text_lines}


def _wrong_length(stream: Stream) -> str:
    what = "has a wrong checksum of its length"
    if stream.position == 0:
        what += ": is the stream TFRecord? record_format says what it is"
    return what


def _is_header(header: bytes | bytearray) -> bool:
    return len(header) == _TF_HEADER and masked_crc32c(header[:8]) == _uint32(header, 8)


def _begins_part(header: bytes | bytearray) -> bool:
    return header[:4] == _MAGIC_BYTES and _uint32(header, 4) >> 29 <= _LAST


def _uint32(buffer: bytes | bytearray, at: int) -> int:
    number: int = struct.unpack_from("<I", buffer, at)[0]
    return number


def _table() -> list[int]:
    table = []
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _table()


def masked_crc32c(data: bytes | bytearray) -> int:
    """Give the checksum that TFRecord writes."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
