"""Reconciling a job with what its engine says of the agent: one that waits, is gone, or cannot be located."""

import pytest
from fakes.local_jobs import LocalJobs

from scriptmode.errors import PlatformError, UnreadableJobError
from scriptmode.platforms.local.hosts.agent_control import AgentLocation, Presence, StopReason, Termination
from scriptmode.platforms.local.hosts.local_agent import LocalAgent
from scriptmode.platforms.local.store.engine_record import read_engine_record, write_engine_record

QUEUED = AgentLocation(Presence.WAITING, "Waiting in the queue: Priority", position=3)


class Scheduler:
    """An engine that has a queue: it never starts an agent, and says of it what a test sets."""

    def __init__(self):
        self.location = QUEUED
        self.withdrawn = []

    def withdraw(self, folder):
        self.withdrawn.append(folder.name)
        self.location = AgentLocation(Presence.GONE, termination=Termination(StopReason.USER))


@pytest.fixture
def scheduler(monkeypatch):
    found = Scheduler()
    monkeypatch.setattr(LocalAgent, "pending_message", "Submitted")
    monkeypatch.setattr(LocalAgent, "launch", lambda *_: None)
    monkeypatch.setattr(LocalAgent, "locate", lambda *_: found.location)
    monkeypatch.setattr(LocalAgent, "withdraw", lambda _, folder: found.withdraw(folder))
    return found


@pytest.fixture
def jobs(tmp_path, scheduler):
    return LocalJobs(tmp_path)


def statuses(description):
    return [each["Status"] for each in description["SecondaryStatusTransitions"]]


def enter(folder, *statuses):
    """Have a job go through statuses, as the agent of a first run recorded them."""
    folder.write_processes({})
    state = folder.read_state()
    for number, status in enumerate(statuses, 1):
        state = state.with_status(status, state.created + number)
    folder.write_state(state)


def test_a_waiting_job_has_the_message_and_position_of_the_engine(jobs):
    name = jobs.start("pass")
    description = jobs.platform.describe(name)
    assert description["SecondaryStatus"] == "Pending"
    assert description["SecondaryStatusTransitions"][-1]["StatusMessage"] == QUEUED.message
    assert jobs.platform.queue_position(name) == 3
    assert [each["QueuePosition"] for each in jobs.platform.list()] == [3]
    recorded = jobs.job_folder(name).read_state()
    assert [each.message for each in recorded.transitions] == ["Submitted"]  # the agent alone writes the state


def test_a_trained_job_that_waits_again_is_interrupted(jobs, scheduler):
    name = jobs.start("pass")
    enter(jobs.job_folder(name), "Downloading", "Training")
    description = jobs.platform.describe(name)
    assert statuses(description)[-2:] == ["Training", "Interrupted"]
    assert description["TrainingJobStatus"] == "InProgress"
    assert jobs.platform.describe(name) == description  # a client that follows it sees no change
    scheduler.location = AgentLocation(Presence.ALIVE)
    assert jobs.platform.describe(name)["SecondaryStatus"] == "Training"  # until its new agent records something


def test_a_waiting_job_is_stopped_at_once(jobs, scheduler):
    name = jobs.start("pass")
    jobs.platform.stop(name)
    assert scheduler.withdrawn == [name]
    description = jobs.platform.describe(name)
    assert statuses(description) == ["Pending", "Stopping", "Stopped"]
    assert "FailureReason" not in description


def test_a_job_that_would_wait_for_ever_fails_and_is_withdrawn(jobs, scheduler):
    name = jobs.start("pass")
    scheduler.location = AgentLocation(Presence.WAITING, "partition 'gpu' has no node with 9 GPUs", never_starts=True)
    description = jobs.platform.describe(name)
    assert description["FailureReason"] == "ClientError: partition 'gpu' has no node with 9 GPUs"
    assert scheduler.withdrawn == [name]


@pytest.mark.parametrize(
    ("termination", "secondary", "reason"),
    [
        (Termination(StopReason.USER), "Stopped", None),
        (Termination(StopReason.TIME_LIMIT), "MaxRuntimeExceeded", None),
        (Termination(StopReason.NODE_LOST, "node n1 failed"), "Failed", "InternalServerError: node n1 failed; "),
        (Termination(StopReason.OUT_OF_MEMORY, "node n1 ran out of memory"), "Failed", "ClientError: node n1 ran out"),
        (Termination(), "Failed", "InternalServerError: the job's agent was killed or crashed in Training; "),
    ],
)
def test_the_engine_knows_how_the_agent_ended(jobs, scheduler, termination, secondary, reason):
    name = jobs.start("pass")
    enter(jobs.job_folder(name), "Downloading", "Training")
    scheduler.location = AgentLocation(Presence.GONE, termination=termination)
    description = jobs.platform.describe(name)
    assert description["SecondaryStatus"] == secondary
    assert description.get("FailureReason", "").startswith(reason or "")
    assert ("FailureReason" in description) == (reason is not None)
    assert jobs.job_folder(name).read_state().ended


def test_an_engine_that_does_not_answer_ends_nothing(jobs, scheduler):
    name = jobs.start("pass")
    scheduler.location = AgentLocation(Presence.UNKNOWN, "the scheduler does not answer")
    description = jobs.platform.describe(name)
    assert description["TrainingJobStatus"] == "InProgress"
    assert "; the scheduler does not answer" in description["SecondaryStatusTransitions"][-1]["StatusMessage"]


def test_a_stop_that_the_engine_refuses_is_told(jobs, monkeypatch):
    def refuse(*_):
        raise PlatformError("the scheduler does not answer")

    name = jobs.start("pass")
    monkeypatch.setattr(LocalAgent, "withdraw", refuse)
    with pytest.raises(PlatformError, match="does not answer"):
        jobs.platform.stop(name)
    assert jobs.platform.describe(name)["SecondaryStatus"] == "Stopping"


def test_the_record_of_an_engine(jobs):
    folder = jobs.job_folder(jobs.start("pass"))
    assert read_engine_record(folder) == {}
    write_engine_record(folder, {"job": "17"})
    assert read_engine_record(folder) == {"job": "17"}
    (folder.path / "engine.json").write_text('{"job": 17}')
    with pytest.raises(UnreadableJobError, match="engine.json"):
        read_engine_record(folder)
