"""A pipe has the bytes of its pieces, decompressed and wrapped: each piece is a record that an independent reader parses."""

import gc
import gzip
import os
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
from data_path.records import MAGIC, chunks_of, records
from hypothesis import given, strategies as st

from scriptmode.errors import DataError
from scriptmode_local._data import framing, recordio
from scriptmode_local._data.object_store import Chunk

MANIFEST = "s3://b/manifest"


def framed(chunks, spool, *, is_gzipped=True, is_wrapped=False):
    buffers = framing.frame(
        (chunk for chunk in chunks), is_gzipped=is_gzipped, is_wrapped=is_wrapped, spool=spool, manifest=MANIFEST
    )
    return b"".join(bytes(buffer) for buffer in buffers)


def test_without_framing_buffers_pass_unchanged(tmp_path):
    given_ones = [bytearray(b"one"), memoryview(b"two"), b""]
    chunks = (Chunk(data, ends=True, uri="s3://b/x") for data in given_ones)
    passed = list(framing.frame(chunks, is_gzipped=False, is_wrapped=False, spool=tmp_path))
    assert all(one is other for one, other in zip(passed, given_ones))


MEMBERS = st.lists(st.binary(max_size=300), max_size=3)
SIZES = st.lists(st.integers(0, 30), max_size=30)


@given(
    objects=st.lists(st.tuples(MEMBERS, st.integers(0, 9), SIZES), max_size=3),
    kind=st.sampled_from([bytes, bytearray, memoryview]),
    out=st.integers(1, 50),
    is_wrapped=st.booleans(),
)
def test_gzip_of_any_members_in_any_chunks_is_decompressed(tmp_path_factory, objects, kind, out, is_wrapped):
    chunks = []
    for members, zeros, sizes in objects:
        data = b"".join(map(gzip.compress, members)) + bytes(zeros)
        chunks += chunks_of(data, sizes, kind=kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "_IN", 7)
        patch.setattr(framing, "_OUT", out)
        found = framed(chunks, tmp_path_factory.getbasetemp(), is_wrapped=is_wrapped)
    contents = [b"".join(members) for members, _, _ in objects]
    assert (records(found) if is_wrapped else [found]) == (contents if is_wrapped else [b"".join(contents)])


@pytest.mark.slow
def test_a_high_compression_ratio_gives_small_buffers(tmp_path):
    data = gzip.compress(bytes(100_000_000))
    assert len(data) < 200_000
    tracemalloc.start()
    try:
        buffers = framing.frame(chunks_of(data), is_gzipped=True, is_wrapped=False, spool=tmp_path)
        assert sum(map(len, buffers)) == 100_000_000
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


CONTENT = gzip.compress(b"some text that has a few bytes", mtime=0)


@pytest.mark.parametrize("length", range(1, len(CONTENT)))
@pytest.mark.parametrize("sizes", [(), (5, 5, 5)], ids=["at once", "in chunks"])
def test_truncated_gzip_data_is_an_error_at_any_byte(tmp_path, length, sizes):
    with pytest.raises(DataError, match="s3://b/x: the gzip data is incomplete, the object may be truncated; upload i"):
        framed(chunks_of(CONTENT[:length], sizes), tmp_path)


def spoiled(content, at):
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"plain text", id="no gzip"),
        pytest.param(CONTENT + b"more", id="something after it"),
        pytest.param(spoiled(CONTENT, len(CONTENT) - 6), id="wrong checksum"),
        pytest.param(spoiled(CONTENT, len(CONTENT) - 2), id="wrong length"),
        pytest.param(zlib.compress(b"x"), id="zlib"),
    ],
)
def test_data_that_is_not_gzip_is_an_error(tmp_path, data):
    with pytest.raises(DataError, match=r"s3://b/x: this is not gzip data, or it is damaged \(.*leave CompressionType"):
        framed(chunks_of(data), tmp_path)


def test_the_objects_before_a_damaged_one_are_sent(tmp_path):
    chunks = [*chunks_of(CONTENT), *chunks_of(b"broken", uri="s3://b/y")]
    buffers = framing.frame((chunk for chunk in chunks), is_gzipped=True, is_wrapped=False, spool=tmp_path)
    assert next(buffers) == b"some text that has a few bytes"
    with pytest.raises(DataError, match="s3://b/y"):
        list(buffers)


def test_a_manifests_attributes_are_sent_unchanged(tmp_path):
    chunks = [*chunks_of(CONTENT), *chunks_of(b'"label"', uri=MANIFEST), *chunks_of(CONTENT)]
    text = b"some text that has a few bytes"
    assert records(framed(chunks, tmp_path, is_wrapped=True)) == [text, b'"label"', text]


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


@pytest.mark.parametrize("sizes", [(), (1000,)], ids=["at once", "in chunks"])
def test_a_part_longer_than_the_format_allows_is_an_error(tmp_path, monkeypatch, sizes):
    assert recordio.LONGEST == 0x1FFFFFFF  # what 29 bits hold
    monkeypatch.setattr(recordio, "LONGEST", 2000)
    assert len(records(wrapped(chunks_of(bytes(2000), sizes), tmp_path))[0]) == 2000
    assert len(records(wrapped(chunks_of(bytes(2000) + MAGIC + bytes(2000), sizes), tmp_path))[0]) == 4004
    with pytest.raises(DataError, match="s3://b/x: a RecordIO record holds at most 2,000 bytes; upload smaller object"):
        wrapped(chunks_of(bytes(2001), sizes), tmp_path)


def test_a_directory_without_space_for_the_object_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(recordio, "IN_MEMORY", 10)
    with pytest.raises(DataError, match="s3://b/x: .*gone' cannot hold the object until .*; free space there"):
        wrapped(chunks_of(bytes(100), (50,)), tmp_path / "gone")


def test_a_disk_that_fills_up_while_the_object_waits_is_named(tmp_path):
    program = (
        "import pathlib, resource, sys\n"
        "from scriptmode_local._data import recordio\n"
        "from scriptmode_local._data.object_store import Chunk\n"
        "from scriptmode.errors import DataError\n"
        "recordio.IN_MEMORY = 10\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n"
        "chunks = (Chunk(bytes(1000), ends=False, uri='s3://b/x') for _ in range(100))\n"
        "try:\n"
        "    list(recordio.wrap(chunks, pathlib.Path(sys.argv[1])))\n"
        "except DataError as error:\n"
        "    print(error)\n"
    )
    # In a process of its own, because the limit is one of a process.
    done = subprocess.run([sys.executable, "-c", program, tmp_path], check=True, capture_output=True, text=True)
    assert "s3://b/x: " in done.stdout
    assert "cannot hold the object until its length is known: File too large" in done.stdout


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
