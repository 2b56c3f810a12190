"""Each piece becomes one record that an independent reader parses, for any bytes in any chunks."""

import gc
import os
import tracemalloc
from pathlib import Path

import pytest
from data_path.records import MAGIC, chunks_of, records
from hypothesis import given
from hypothesis import strategies as st

from scriptmode.data import framing, recordio
from scriptmode.data.object_store import Chunk
from scriptmode.errors import DataError

#: Bytes in which the magic number stands at every place, whole and in part.
BYTES = st.lists(
    st.binary(max_size=5) | st.sampled_from([MAGIC, MAGIC[:1], MAGIC[:3], MAGIC[1:], MAGIC * 2]), max_size=12
).map(b"".join)
KINDS = st.sampled_from([bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data))])


def wrapped(chunks, spool):
    buffers = framing.frame((chunk for chunk in chunks), is_gzipped=False, is_wrapped=True, spool=spool)
    return b"".join(bytes(buffer) for buffer in buffers)


@given(payloads=st.lists(st.tuples(BYTES, st.lists(st.integers(0, 7), max_size=12), KINDS), max_size=4))
def test_any_bytes_in_any_chunks_come_back(tmp_path_factory, payloads):
    chunks = [chunk for payload, sizes, kind in payloads for chunk in chunks_of(payload, sizes, kind=kind)]
    assert records(wrapped(chunks, tmp_path_factory.getbasetemp())) == [payload for payload, _, _ in payloads]


@pytest.mark.slow
@given(payload=BYTES, sizes=st.lists(st.integers(0, 7), max_size=12), memory=st.integers(0, 9))
def test_a_part_that_is_spooled_to_a_file_comes_back(tmp_path_factory, payload, sizes, memory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recordio, "IN_MEMORY", memory)
        patch.setattr(recordio, "_READ", 3)
        assert records(wrapped(chunks_of(payload, sizes), tmp_path_factory.getbasetemp())) == [payload]


@pytest.mark.parametrize("size", [recordio.JOINED - 1, recordio.JOINED, recordio.JOINED + 1, 1_000_003])
def test_a_record_is_the_same_joined_or_not(tmp_path, size):
    payload = os.urandom(size)
    assert records(wrapped(chunks_of(payload), tmp_path)) == [payload]


@pytest.mark.parametrize(
    ("payload", "stream"),
    [
        (b"", MAGIC + b"\0\0\0\0"),
        (b"abcde", MAGIC + b"\5\0\0\0abcde\0\0\0"),
        (MAGIC, MAGIC + b"\0\0\0\x20" + MAGIC + b"\0\0\0\x60"),
        (b"x" + MAGIC, MAGIC + b"\5\0\0\0x" + MAGIC + b"\0\0\0"),
        (
            b"abcd" + MAGIC + MAGIC + b"e",
            MAGIC + b"\4\0\0\x20abcd" + MAGIC + b"\0\0\0\x40" + MAGIC + b"\1\0\0\x60e\0\0\0",
        ),
    ],
    ids=["nothing", "five bytes", "the magic alone", "the magic beside the boundary", "the magic twice"],
)
@pytest.mark.parametrize("sizes", [(), (3,), (5, 1)], ids=str)
def test_a_record_is_written_like_this(tmp_path, payload, stream, sizes):
    assert wrapped(chunks_of(payload, sizes), tmp_path) == stream


@pytest.mark.parametrize("sizes", [(), (1000,)], ids=["at once", "in chunks"])
def test_a_part_longer_than_the_format_allows_is_an_error(tmp_path, monkeypatch, sizes):
    monkeypatch.setattr(recordio, "LONGEST", 2000)
    assert len(records(wrapped(chunks_of(bytes(2000), sizes), tmp_path))[0]) == 2000
    assert len(records(wrapped(chunks_of(bytes(2000) + MAGIC + bytes(2000), sizes), tmp_path))[0]) == 4004
    with pytest.raises(
        DataError, match="s3://b/x: a RecordIO record holds at most 2,000 bytes; upload smaller objects"
    ):
        wrapped(chunks_of(bytes(2001), sizes), tmp_path)


def test_the_longest_part_is_what_29_bits_hold():
    assert recordio.LONGEST == 0x1FFFFFFF


@pytest.mark.slow
def test_a_large_object_is_spooled_to_a_file_with_little_memory(tmp_path):
    block = os.urandom(4 * 1024 * 1024 - 1)
    chunks = (Chunk(block, number == 49, "s3://b/x") for number in range(50))
    tracemalloc.start()
    try:
        size = sum(len(b) for b in framing.frame(chunks, is_gzipped=False, is_wrapped=True, spool=tmp_path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size == 8 + 50 * len(block) + -50 * len(block) % 4
    # The bytes that wait and a copy of the chunk that comes, twice as it grows.
    assert peak < 2 * recordio.IN_MEMORY + 4 * len(block)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_space_for_the_object_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(recordio, "IN_MEMORY", 10)
    with pytest.raises(DataError, match="s3://b/x: .*gone' cannot hold the object until .*; free space there"):
        wrapped(chunks_of(bytes(100), (50,)), tmp_path / "gone")


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.slow
def test_closing_the_stream_closes_the_chunks_and_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(recordio, "IN_MEMORY", 10)
    closed = []

    def chunks():
        try:
            yield from chunks_of(bytes(100), (50,))
        finally:
            closed.append(True)

    descriptors = open_files()
    buffers = framing.frame(chunks(), is_gzipped=False, is_wrapped=True, spool=tmp_path)
    next(buffers)
    assert open_files() == descriptors + 1
    buffers.close()
    assert closed == [True]
    gc.collect()
    assert open_files() == descriptors
