"""Pieces are prefetched in their order, in bounded memory, until one fails or the stream is closed."""

import itertools
import os
import random
import subprocess
import sys
import threading
import time

import pytest
from fakes.faulty_s3 import Fault, FaultyS3
from fakes.memory_objects import MemoryObjects
from fakes.processes import until

from scriptmode.errors import DataError
from scriptmode_local._data.object_store import CHUNK_BYTES, Literal, StoredObject
from scriptmode_local._data.prefetch import prefetch
from scriptmode_local._data.s3_store import S3Store

pytestmark = pytest.mark.slow


class Recorder:
    """A store whose objects' bytes tell where they are; it counts what is under way."""

    def __init__(self, *, wait=0.0, fail=()):
        self.wait, self.fail = wait, fail
        self.begun, self.under_way, self.most = [], 0, 0
        self._counting = threading.Lock()
        self.gate = threading.Event()
        self.gate.set()

    def of(self, uri):
        return self

    def read(self, item, start, end):
        with self._counting:
            self.begun.append((item.uri, start))
            self.under_way += end - start
            self.most = max(self.most, self.under_way)
        assert self.gate.wait(600)
        time.sleep(self.wait * random.random())
        if item.uri in self.fail:
            raise DataError(f"{item.uri}: gone")
        with self._counting:
            self.under_way -= end - start
        return [item.uri[-1:].encode() * (end - start)]


def stored(number, size=10):
    return StoredObject(f"s3://b/{number}", size)


def settled(measure, seconds=10):
    """Wait until a number stays what it is for a moment."""
    deadline, before, since = time.monotonic() + seconds, measure(), time.monotonic()
    while time.monotonic() - since < 0.3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
        if measure() != before:
            before, since = measure(), time.monotonic()
    return before


def test_pieces_come_whole_and_in_order_whatever_their_sizes():
    chance = random.Random(4)
    sizes = [0, 1, 7, 4096, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES + 5]
    contents = {f"s3://b/{number:03}": os.urandom(chance.choice(sizes)) for number in range(60)}
    pieces = [StoredObject(uri, len(content)) for uri, content in contents.items()]
    pieces.insert(20, Literal(b"known", "s3://b/manifest"))
    pieces.insert(30, Literal(b"", "s3://b/manifest"))
    store, got = MemoryObjects(contents), []
    for chunk in prefetch(store.of, iter(pieces)):
        if not got or got[-1][2]:
            got.append([chunk.uri, b"", False])
        assert got[-1][0] == chunk.uri
        got[-1][1:] = got[-1][1] + bytes(chunk.data), chunk.ends
    expected = [[each.uri, each.data if isinstance(each, Literal) else contents[each.uri], True] for each in pieces]
    assert got == expected


def test_order_is_kept_when_later_chunks_are_faster():
    uris = [chunk.uri for chunk in prefetch(Recorder(wait=0.005).of, [stored(number) for number in range(500)])]
    assert uris == [f"s3://b/{number}" for number in range(500)]


def test_memory_is_bounded_by_bytes():
    store = Recorder()
    stream = prefetch(store.of, (stored(number, 1_000_000) for number in itertools.count()), window_bytes=20_000_000)
    next(stream)
    begun = settled(lambda: len(store.begun))
    assert 19 <= begun <= 22
    next(stream)
    assert begun <= settled(lambda: len(store.begun)) <= begun + 2
    stream.close()


def test_an_object_larger_than_the_window_is_read():
    chunks = list(prefetch(Recorder().of, [stored(1, 3 * CHUNK_BYTES)], window_bytes=1000, workers=4))
    assert [(len(chunk.data), chunk.ends) for chunk in chunks] == [(CHUNK_BYTES, False)] * 2 + [(CHUNK_BYTES, True)]


def test_chunks_of_a_large_object_are_read_in_parallel():
    store = Recorder()
    store.gate.clear()
    stream = prefetch(store.of, [stored(1, 8 * CHUNK_BYTES)], workers=8)
    reader = threading.Thread(target=list, args=(stream,))
    reader.start()
    try:
        assert settled(lambda: len(store.begun)) == 8
    finally:
        store.gate.set()
        reader.join()


def test_empty_pieces_count_towards_the_window():
    taken = []
    pieces = (taken.append(number) or stored(number, 0) for number in itertools.count())
    stream = prefetch(Recorder().of, pieces)
    next(stream)
    assert settled(lambda: len(taken)) < 40_000
    stream.close()


def test_an_error_is_raised_after_everything_before_it():
    store, got = Recorder(wait=0.002, fail={"s3://b/300"}), []
    with pytest.raises(DataError, match=r"s3://b/300: gone"):
        got.extend(chunk.uri for chunk in prefetch(store.of, (stored(number) for number in itertools.count())))
    assert got == [f"s3://b/{number}" for number in range(300)]
    assert len(store.begun) < 20_000


def test_a_listings_error_is_raised_after_its_objects():
    def pieces():
        yield from (stored(number) for number in range(5))
        raise DataError("s3://b: access denied")

    got = []
    with pytest.raises(DataError, match="access denied"):
        got.extend(chunk.uri for chunk in prefetch(Recorder(wait=0.01).of, pieces()))
    assert len(got) == 5


def test_closing_stops_the_requests_and_the_listing():
    closed = threading.Event()

    def pieces():
        try:
            yield from (stored(number, 1_000_000) for number in itertools.count())
        finally:
            closed.set()

    store = Recorder(wait=0.002)
    stream = prefetch(store.of, pieces())
    for _ in range(50):
        next(stream)
    stream.close()
    begun = len(store.begun)
    assert closed.wait(600)
    assert settled(lambda: len(store.begun)) <= begun + 16
    assert no_thread_is_left()


def test_closing_while_the_listing_is_busy_closes_it_when_it_returns():
    going_on, closed = threading.Event(), threading.Event()

    def pieces():
        try:
            yield stored(1)
            assert going_on.wait(600)
            yield stored(2)
        finally:
            closed.set()

    stream = prefetch(Recorder().of, pieces())
    next(stream)
    stream.close()
    assert not closed.is_set()
    going_on.set()
    assert closed.wait(600)


def no_thread_is_left():
    return not [thread for thread in threading.enumerate() if thread.name.startswith("prefetch-")]


def test_an_early_close_aborts_the_requests_in_progress(monkeypatch, no_credentials):
    with FaultyS3({"first": b"1", "second": b"x" * CHUNK_BYTES}) as server:
        server.use(monkeypatch)
        server.fault = lambda request: Fault(rate=1_000_000) if request.key == "second" else None
        store = S3Store()
        stream = prefetch(lambda _: store, store.objects("s3://bkt/"), workers=2)
        next(stream)
        stream.close()
        until(no_thread_is_left, 3)


def test_an_early_close_stops_the_retries_too(monkeypatch, no_credentials):
    with FaultyS3({f"{number:02}": b"x" * 1_000 for number in range(40)}) as server:
        server.use(monkeypatch)
        server.fault = lambda request: Fault(status=503, code="SlowDown") if request.key > "00" else None
        store = S3Store()
        stream = prefetch(lambda _: store, store.objects("s3://bkt/"))
        next(stream)
        until(lambda: len(server.asked) >= 60)
        stream.close()
        begun = len(server.asked)
        until(no_thread_is_left, 3)
        # What was under way then; nothing is begun afterwards.
        assert len(server.asked) <= begun + 16


#: Reads as a producer does, slower than it is fetched, and wraps each object so that framing holds its share, too.
PRODUCE = """
import sys, time; from pathlib import Path
from scriptmode_local._data import framing, prefetch; from scriptmode_local._data.stores import Stores
stores, got = Stores(), 0
chunks = prefetch.prefetch(stores.store_of, stores.store_of(sys.argv[1]).objects(sys.argv[1]))
for data in framing.frame(chunks, is_gzipped=False, is_wrapped=True, spool=Path(sys.argv[2])):
    got += len(data)
    time.sleep(len(data) / 500e6)
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(got, peak)
"""
MIB = 1024 * 1024
MIXES = {
    "the largest, then half of it": [8 * MIB] * 25 + [4 * MIB + 1] * 40,
    "each time less": [size for size in (8 * MIB, 7 * MIB, 5 * MIB, 3 * MIB, MIB, 300_000) for _ in range(150 * MIB // size)],
    "at random": [random.Random(9).randrange(1, 12 * MIB) for _ in range(100)],
    "hardly any bytes": [4_096] * 20_000,
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("sizes", MIXES.values(), ids=MIXES)
def test_a_producer_stays_below_its_bound_whatever_the_sizes_of_its_objects(
    tmp_path, monkeypatch, no_credentials, sizes
):
    content = memoryview(bytes(max(sizes)))
    with FaultyS3({f"{number:06}": content[:size] for number, size in enumerate(sizes)}) as server:
        server.use(monkeypatch)
        command = [sys.executable, "-c", PRODUCE, "s3://bkt/", tmp_path]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    got, peak = map(int, done.stdout.split())
    assert got >= sum(sizes)
    assert peak < 256 * 1024
