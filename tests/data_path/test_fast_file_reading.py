"""Prefetching for files: far ahead of reads in sequence, little for others, never more than the budget."""

import random
import threading

import pytest
from fakes.processes import until
from hypothesis import given, strategies as st

from scriptmode_local._data.file_prefetch import (
    BUDGET_BYTES,
    LEAST_CHUNK_BYTES,
    MOST_AHEAD_BYTES,
    MOST_CHUNK_BYTES,
    Prefetcher,
)
from scriptmode_local._data.object_store import StoredObject

MIB = 1024 * 1024
KERNEL_READ = 128 * 1024


class Zeros:
    """An `ObjectStore` of endless zeros that notes what was read."""

    def __init__(self):
        self.reads = []
        self.failing = False
        self.free = threading.Event()
        self.free.set()

    def read(self, item, start, end):
        self.reads.append((start, end))
        assert self.free.wait(600)
        if self.failing:
            raise OSError("no route")
        return [bytes(end - start)]


def get(reading, start, size=KERNEL_READ):
    """Read and wait; give the number of bytes, or the error."""
    there, answers = threading.Event(), []

    def answer(content):
        answers.append(content if isinstance(content, Exception) else sum(len(part) for part in content))
        there.set()

    reading.read(start, size, answer)
    assert there.wait(600)
    assert len(answers) == 1
    return answers[0]


def sequence(reading, start, end):
    for at in range(start, end, KERNEL_READ):
        assert get(reading, at, min(KERNEL_READ, end - at)) == min(KERNEL_READ, end - at)


@pytest.fixture
def store():
    return Zeros()


@pytest.fixture
def prefetcher(store, closed_after):
    return closed_after(Prefetcher(lambda _: store))


def item(size, name="a"):
    return StoredObject(f"s3://b/{name}", size)


@given(
    size=st.integers(0, 300),
    reads=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 200), st.booleans()), max_size=12),
    budget=st.integers(0, 200),
)
def test_any_reads_in_any_order_return_their_bytes(size, reads, budget):
    content = random.Random(size).randbytes(size)

    class Small:
        def read(self, item, start, end):
            assert 0 <= start < end <= size
            middle = (start + end) // 2
            return [content[start:middle], content[middle:end]]

    prefetcher = Prefetcher(lambda _: Small(), budget)
    with pytest.MonkeyPatch.context() as patch:
        sizes = {"LEAST_CHUNK_BYTES": 8, "MOST_CHUNK_BYTES": 32, "WHOLE_BYTES": 20, "BEHIND_BYTES": 5}
        for name, value in sizes.items():
            patch.setattr(f"scriptmode_local._data.file_prefetch.{name}", value)
        reading, at, answers = prefetcher.open(item(size)), 0, []
        for start, length, goes_on in reads:
            at = at if goes_on else start
            reading.read(at, length, lambda parts, at=at, length=length: answers.append((at, length, b"".join(parts))))
            at += length
        until(lambda: len(answers) == len(reads))
    assert all(found == content[at : at + length] for at, length, found in answers)
    reading.close()
    prefetcher.close()


def test_a_small_file_is_one_chunk_those_of_a_large_one_grow_and_each_byte_is_read_once(store, prefetcher):
    sequence(prefetcher.open(item(3 * MIB)), 0, 3 * MIB)
    assert store.reads == [(0, 3 * MIB)]
    store.reads.clear()
    size = 200 * MIB
    sequence(prefetcher.open(item(size)), 0, size)
    reads = sorted(store.reads)
    assert [start for start, _ in reads] == [0, *(end for _, end in reads[:-1])]
    assert reads[-1][1] == size
    assert reads[0] == (0, LEAST_CHUNK_BYTES)
    assert max(end - start for start, end in reads) == MOST_CHUNK_BYTES
    assert len(reads) < 50


def test_random_reads_prefetch_nothing_and_the_beginning_little(store, prefetcher):
    reading = prefetcher.open(item(1000 * MIB))
    wanted = [(500 * MIB, 4096), (3 * MIB, 100), (900 * MIB, KERNEL_READ), (1000 * MIB - 10, 4096)]
    assert [get(reading, start, size) for start, size in wanted] == [4096, 100, KERNEL_READ, 10]
    assert store.reads == [(start, min(start + size, 1000 * MIB)) for start, size in wanted]
    store.reads.clear()
    assert get(prefetcher.open(item(1000 * MIB)), 0, 4096) == 4096
    assert sum(end - start for start, end in store.reads) <= 2 * MIB


def test_a_read_elsewhere_does_not_end_a_sequence(store, prefetcher):
    reading = prefetcher.open(item(1000 * MIB))
    sequence(reading, 0, 16 * MIB)
    assert get(reading, 999 * MIB, 4096) == 4096
    before = len(store.reads)
    assert get(reading, 16 * MIB) == KERNEL_READ
    assert all(start > 16 * MIB for start, _ in store.reads[before:])


def test_prefetched_bytes_are_bounded_for_one_file_and_for_all(store, prefetcher):
    readings = [prefetcher.open(item(1000 * MIB, name)) for name in "abcd"]
    for reading in readings:
        sequence(reading, 0, 100 * MIB)
    held = [prefetcher.held(reading) for reading in readings]
    assert max(held) <= MOST_AHEAD_BYTES + 3 * MOST_CHUNK_BYTES
    assert sum(held) <= BUDGET_BYTES
    for reading in readings:
        reading.close()
    assert prefetcher.held() == 0


def test_an_active_file_gets_the_budget_of_an_idle_one(store):
    now = [0.0]
    prefetcher = Prefetcher(lambda _: store, budget=24 * MIB, clock=lambda: now[0])
    resting, *busy = (prefetcher.open(item(1000 * MIB, name)) for name in "abcdefghi")
    sequence(resting, 0, 12 * MIB)
    assert prefetcher.held(resting) > 8 * MIB
    now[0] += 2
    for reading in busy:
        sequence(reading, 0, 12 * MIB)
    assert prefetcher.held(resting) == 0
    assert prefetcher.held(busy[0]) > 0
    assert prefetcher.held() <= 24 * MIB
    sequence(resting, 12 * MIB, 14 * MIB)
    prefetcher.close()


def test_a_read_after_an_error_asks_the_store_again(store, prefetcher):
    reading = prefetcher.open(item(MIB))
    store.failing = True
    assert str(get(reading, 0)) == "no route"
    store.failing = False
    sequence(reading, 0, MIB)
    assert store.reads == [(0, MIB), (0, MIB)]


def test_a_waiting_read_is_not_queued_behind_prefetches(store, prefetcher):
    greedy, other = prefetcher.open(item(1000 * MIB, "a")), prefetcher.open(item(100, "b"))
    sequence(greedy, 0, 8 * MIB)
    store.free.clear()
    for at in range(8 * MIB, 40 * MIB, KERNEL_READ):
        greedy.read(at, KERNEL_READ, lambda _: None)
    before = len(store.reads)
    answered = threading.Event()
    other.read(0, 100, lambda _: answered.set())
    until(lambda: (0, 100) in store.reads[before:])
    store.free.set()
    assert answered.wait(600)


def test_closing_cancels_prefetches_without_a_reader(store):
    prefetcher = Prefetcher(lambda _: store, fetchers=1)
    reading = prefetcher.open(item(1000 * MIB))
    store.free.clear()
    answered = threading.Event()
    reading.read(0, 16 * MIB, lambda _: answered.set())
    assert prefetcher.held() >= 40 * MIB
    reading.close()
    store.free.set()
    assert answered.wait(600)
    prefetcher.close()
    ahead = [start for start, _ in store.reads if start >= 16 * MIB]
    assert len(ahead) <= 1
