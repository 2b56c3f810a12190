"""The queue of the jobs that wait until fewer others run."""

import time
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from fakes.promptness import soon
from runtime.test_streams import largest_file

from scriptmode_local._store.job_queue import JobQueue
from scriptmode_local._store.job_record import FITTING
from scriptmode_local._system import memory
from scriptmode_runtime._host import machine as runtime_machine


@pytest.fixture
def store(tmp_path):
    """Jobs of a data directory, all with an agent."""
    jobs = {"first", "second", "third"}
    return SimpleNamespace(
        data_dir=tmp_path, jobs=jobs, exists=jobs.__contains__, folder=lambda _: SimpleNamespace(has_agent=lambda: True)
    )


@pytest.fixture
def queue(store):
    """A queue in which the first job runs and two others wait."""
    queue = JobQueue(store)
    assert queue.positions() == {}
    queue.enter("first", 1.0, 1)
    assert not queue.try_start("third", 3.0, 1, most=1)
    assert not queue.try_start("second", 2.0, 1, most=1)
    return queue


@pytest.mark.prompt
def test_an_entry_does_not_wait_for_the_lock_of_its_own_queue(store):
    began, queue = time.monotonic(), JobQueue(store)
    for name in ("first", "second", "third"):
        queue.enter(name, 1.0, 1)
    queue.leave("first")
    soon(time.monotonic() - began, 1.0)


def test_a_deleted_job_does_not_hold_up_the_others_nor_start(queue, store):
    store.jobs -= {"first", "second"}
    assert queue.positions() == {"third": 1}
    assert not queue.try_start("second", 2.0, 1, most=1)
    assert queue.try_start("third", 3.0, 1, most=1)


def test_a_job_that_waits_looks_at_the_earlier_jobs_alone(queue, store):
    store.exists = {"first": True, "second": True}.__getitem__
    assert not queue.try_start("third", 3.0, 1, most=1)


def test_a_job_has_one_position_also_under_a_name_used_before(queue):
    queue.enter("second", 9.0, 1)
    assert queue.positions() == {"third": 1}
    queue.leave("second")
    queue.leave("first")
    assert queue.try_start("third", 3.0, 1, most=1)


GIB = 1024**3


class Machine(NamedTuple):
    """A machine as the runtime counts it."""

    cpus: int


@pytest.fixture
def machine(monkeypatch):
    """A function that changes what the machine has; at first eight processors and more memory than they need."""

    def change(cpus=8, total=64 * GIB, free=64 * GIB):
        monkeypatch.setattr(runtime_machine, "inspect", lambda: Machine(cpus))
        monkeypatch.setattr(memory, "read_memory", lambda: memory.Memory(total, free, 0))

    change()
    return change


#: How many processors a machine has, and which jobs of so many processes start while the first one runs, and after it.
ROUNDS = {
    # A later job does not overtake one that waits.
    "enough for all": (8, [("first", 6, True), ("second", 3, False), ("third", 1, False)], [("second", 3, True), ("third", 5, True)]),
    "a job larger than the machine runs alone": (8, [("first", 1, True), ("second", 100, False)], [("second", 100, True), ("third", 1, False)]),
    "a small machine runs four processes": (1, [("first", 3, True), ("second", 1, True), ("third", 1, False)], []),
}  # fmt: skip


@pytest.mark.parametrize(("cpus", "before", "after"), ROUNDS.values(), ids=ROUNDS)
def test_a_job_waits_until_there_are_processors_for_all_its_processes(store, machine, cpus, before, after):
    machine(cpus=cpus)
    queue = JobQueue(store)
    for jobs in (before, after):
        for name, processes, starts in jobs:
            moment = float(("first", "second", "third").index(name))
            assert queue.try_start(name, moment, processes, most=FITTING) == starts, name
        queue.leave("first")


@pytest.mark.parametrize("has", [{"free": GIB}, {"total": 2 * GIB}])
def test_a_job_waits_for_the_memory_of_its_processes(store, machine, has):
    queue = JobQueue(store)
    assert queue.try_start("first", 1.0, 2, most=FITTING)
    machine(**has)
    assert not queue.try_start("second", 2.0, 3, most=FITTING)
    machine()
    assert queue.try_start("second", 2.0, 3, most=FITTING)


@pytest.mark.parametrize("content", [b"", b"\xff\0", b"runs x"])
def test_a_damaged_record_stops_no_other_job(store, content):
    queue = JobQueue(store)
    queue.enter("third", 3.0, 1)
    (entry,) = (store.data_dir / "queue").iterdir()
    entry.write_bytes(content)
    assert queue.try_start("second", 2.0, 1, most=2)


def test_a_full_disk_leaves_no_draft_in_the_queue(queue, store):
    with largest_file(0), pytest.raises(OSError, match="File too large"):
        queue.enter("second", 2.0, 2)
    assert [entry.name for entry in (store.data_dir / "queue").glob(".*")] == []
