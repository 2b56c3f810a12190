"""The queue of the jobs that wait until fewer others run."""

from types import SimpleNamespace

import pytest

from scriptmode.platforms.local.store.job_queue import JobQueue


@pytest.fixture
def store(tmp_path):
    """Jobs of a data directory, all with an agent."""
    jobs = {"first", "second", "third"}
    return SimpleNamespace(
        data_dir=tmp_path,
        jobs=jobs,
        exists=jobs.__contains__,
        folder=lambda _: SimpleNamespace(has_agent=lambda: True),
    )


@pytest.fixture
def queue(store):
    """A queue in which the first job runs and two others wait."""
    queue = JobQueue(store)
    assert queue.positions() == {}
    queue.enter("first", 1.0)
    assert not queue.try_start("third", 3.0, most=1)
    assert not queue.try_start("second", 2.0, most=1)
    return queue


def test_jobs_start_in_the_order_of_their_creation_and_no_more_than_the_given_number(queue):
    assert queue.positions() == {"second": 1, "third": 2}
    queue.leave("first")
    assert not queue.try_start("third", 3.0, most=1)
    assert queue.try_start("second", 2.0, most=1)
    assert queue.positions() == {"third": 1}
    assert queue.try_start("third", 3.0, most=2)


def test_a_deleted_job_does_not_hold_up_the_others_nor_start(queue, store):
    store.jobs -= {"first", "second"}
    assert queue.positions() == {"third": 1}
    assert not queue.try_start("second", 2.0, most=1)
    assert queue.try_start("third", 3.0, most=1)


def test_a_job_has_one_position_also_under_a_name_used_before(queue):
    queue.enter("second", 9.0)
    assert queue.positions() == {"third": 1}
    queue.leave("second")
    queue.leave("first")
    assert queue.try_start("third", 3.0, most=1)
