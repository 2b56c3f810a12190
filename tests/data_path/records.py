"""Pieces in chunks for what frames them; and a reader of RecordIO, written from the format's description."""

import struct

from scriptmode_local._data.object_store import Chunk

MAGIC = b"\x0a\x23\xd7\xce"


def chunks_of(payload, sizes=(), *, kind=bytes, uri="s3://b/x"):
    """Give a piece in chunks of the given sizes, the rest in one."""
    start = 0
    for size in sizes:
        if start + size >= len(payload):
            break
        yield Chunk(kind(payload[start : start + size]), ends=False, uri=uri)
        start += size
    yield Chunk(kind(payload[start:]), ends=True, uri=uri)


def records(stream):
    """Give the payloads of a stream of records, parts rejoined; every rule of the format is asserted on the way."""
    found, parts, at = [], None, 0
    while at < len(stream):
        assert at % 4 == 0
        assert stream[at : at + 4] == MAGIC
        (word,) = struct.unpack_from("<I", stream, at + 4)
        flag, length = word >> 29, word & 0x1FFFFFFF
        data = stream[at + 8 : at + 8 + length]
        at += 8 + length
        assert len(data) == length
        assert all(data[word : word + 4] != MAGIC for word in range(0, length, 4))
        padding = -length % 4
        assert stream[at : at + padding] == bytes(padding)
        at += padding
        # 0 whole, 1 first, 2 middle, 3 last.
        assert (flag in (0, 1)) == (parts is None)
        parts = [*(parts or ()), data]
        if flag in (0, 3):
            found.append(MAGIC.join(parts))
            parts = None
    assert parts is None
    return found
