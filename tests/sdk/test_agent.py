"""A job's agent: what its engine says of it, its heartbeats, log and steps; and what the agents of its hosts tell it."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from fakes.local_jobs import LocalJobs
from fakes.processes import until

from scriptmode._core.spec.host_values import ChannelProgress
from scriptmode._core.spec.hosts import HostKind
from scriptmode._core.spec.training_job import Limits, Output
from scriptmode.errors import PlatformError
from scriptmode_local._agent import log_stream
from scriptmode_local._agent.host_link import HostLinks
from scriptmode_local._agent.host_messages import MessageReader, send
from scriptmode_local._agent.interruption import describe_lost_time, why_not_again
from scriptmode_local._hosts.agent_control import AgentLocation, Presence
from scriptmode_local._hosts.fleet import StartedAgent
from scriptmode_local._hosts.local_agent import LocalAgent
from scriptmode_local._outputs.checkpoints import record_path
from scriptmode_local._store.heartbeat import silent_since
from scriptmode_local._store.job_store import JobFolder
from scriptmode_local._store.state import starting_state
from scriptmode_local._system.interrupts import deferred_interrupts
from scriptmode_runtime._processes.proc import boot_id

QUEUED = AgentLocation(Presence.WAITING, "Waiting in the queue: Priority", position=3)


class Scheduler:
    """An engine that never starts an agent, and says of it what a test sets."""

    def __init__(self):
        self.location = QUEUED


@pytest.fixture
def scheduler(monkeypatch):
    found = Scheduler()
    monkeypatch.setitem(vars(HostKind.PROCESS), "pending_message", "Submitted")
    monkeypatch.setattr(LocalAgent, "launch", lambda *_: None)
    monkeypatch.setattr(LocalAgent, "locate", lambda *_: found.location)
    return found


@pytest.fixture
def jobs(tmp_path, scheduler):
    return LocalJobs(tmp_path)


def statuses(description):
    return [each["Status"] for each in description["SecondaryStatusTransitions"]]


def test_a_waiting_job_has_the_message_and_position_of_the_engine(jobs):
    name = jobs.start("pass")
    description = jobs.platform.describe(name).response
    assert description["SecondaryStatus"] == "Pending"
    assert description["SecondaryStatusTransitions"][-1]["StatusMessage"] == QUEUED.message
    assert jobs.platform.queue_position(name) == 3
    assert [each["QueuePosition"] for each in jobs.platform.list()] == [3]
    recorded = jobs.job_folder(name).read_state()
    assert [each.message for each in recorded.transitions] == ["Submitted"]  # the agent alone writes the state


def test_a_trained_job_that_waits_again_is_interrupted(jobs, scheduler):
    name = jobs.start("pass")
    folder = jobs.job_folder(name)
    folder.write_processes({})
    state = folder.read_state()
    folder.write_state(state.with_status("Downloading", state.created + 1).with_status("Training", state.created + 2))
    description = jobs.platform.describe(name).response
    assert statuses(description)[-2:] == ["Training", "Interrupted"]
    assert description["TrainingJobStatus"] == "InProgress"
    assert jobs.platform.describe(name).response == description  # a client that follows it sees no change
    scheduler.location = AgentLocation(Presence.ALIVE)
    # Until its new agent records something.
    assert jobs.platform.describe(name).response["SecondaryStatus"] == "Training"


def test_a_stop_that_the_engine_refuses_is_an_error(jobs, monkeypatch):
    def refuse(*_):
        raise PlatformError("the scheduler does not answer")

    name = jobs.start("pass")
    monkeypatch.setattr(LocalAgent, "signal", refuse)
    with pytest.raises(PlatformError, match="does not answer"):
        jobs.platform.stop(name)
    assert jobs.platform.describe(name).response["SecondaryStatus"] == "Stopping"


@pytest.mark.parametrize(
    ("boot", "beat_age", "file_age", "is_silent"),
    [
        (boot_id(), 1000, 1000, True), (boot_id(), 1000, 0, False), (boot_id(), 0, 1000, False),
        (boot_id(), 0, -1000, False), ("another-boot", 1000, 1000, True), ("another-boot", 0, -2, False),
        ("another-boot", 0, -7200, True), ("boot soon", None, 1000, False), ("", None, 1000, False),
    ],
)  # fmt: skip
def test_an_agent_without_heartbeats_is_silent_since_its_last_one(tmp_path, boot, beat_age, file_age, is_silent):
    lock = tmp_path / "agent.lock"
    lock.write_text(boot if beat_age is None else f"{boot} {time.monotonic() - beat_age:.3f}")
    written = int(time.time() - file_age)
    os.utime(lock, (written, written))
    assert silent_since(lock) == (written if is_silent else None)


@pytest.mark.parametrize("is_closed", [False, True], ids=["full disk", "closed"])
def test_a_log_that_cannot_be_written_raises_nothing(is_closed):
    descriptor = os.open("/dev/full", os.O_WRONLY)
    stream = log_stream.open_log_stream(descriptor)
    if is_closed:
        os.close(descriptor)
    print("a line", file=stream, flush=True)
    if not is_closed:
        os.close(descriptor)


def test_another_thread_and_another_handler_are_left_alone():
    seen = []

    def look():
        with deferred_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        look()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert seen == [signal.default_int_handler, signal.SIG_IGN]


ENDED = {"event": "ended", "machine_failure": ""}


class FakeProcess:
    """The process of an agent that the test plays."""

    pid = 4711

    def __init__(self):
        self.code = None
        self.is_killed = False

    def poll(self):
        return self.code

    def kill(self):
        self.is_killed = True


class FakeAgent:
    """An agent of hosts that the test plays: it reads what it is told, and tells what the test wants."""

    def __init__(self, *hosts):
        theirs, commands = os.pipe()
        events, self.events = os.pipe()
        self.process = FakeProcess()
        self.commands = MessageReader(theirs, "do")
        self.started = StartedAgent(hosts, self.process, commands, events)

    def tell(self, *events):
        for event in events:
            send(self.events, **event)
            if event["event"] == "finished":
                self.process.code = 0

    def write(self, line):
        os.write(self.events, line)

    def die(self, code):
        os.close(self.events)
        self.process.code = code


def linked(*agents, log=lambda _host, _text: None):
    links = HostLinks(log)
    links.connect([agent.started for agent in agents])
    return links


@pytest.fixture
def agent():
    return FakeAgent("algo-1")


@pytest.fixture
def links(agent):
    return linked(agent)


def test_the_progress_of_a_channel_is_that_of_all_machines():
    first, second = FakeAgent("algo-1"), FakeAgent("algo-2")
    links = linked(first, second)
    piped = {"channel": "b", "mode": "Pipe", "total": None}
    first.tell({"event": "progress", "channels": [{"channel": "a", "mode": "File", "done": 1, "total": 4}]})
    first.tell({"event": "progress", "channels": [{"channel": "a", "mode": "File", "done": 2, "total": 4}]})
    second.tell({"event": "progress", "channels": [{"channel": "a", "mode": "File", "done": 3, "total": 5}]})
    links.poll()
    assert links.progress() == [ChannelProgress("a", "File", 5, 9)]
    first.tell({"event": "progress", "channels": [{**piped, "done": 7, "epoch": 1}]})
    second.tell({"event": "progress", "channels": [{**piped, "done": 8, "epoch": 0}]})
    links.poll()
    assert links.progress() == [ChannelProgress("b", "Pipe", 15, None, 1)]


def test_what_an_agent_told_before_its_end_counts(agent, links):
    agent.tell({**ENDED, "host": "algo-1", "code": 0})
    agent.die(-signal.SIGKILL)
    links.poll()
    assert links.failure() is None
    assert links.hosts[0].poll() == 0
    assert links.end(lambda _: links.poll()) == ["the agent of algo-1 (process 4711) was killed by SIGKILL"]


@pytest.mark.parametrize(
    "line",
    [
        b"srun: error: something\n",
        b"\xff\xfe\n",
        b'{"event": "no such"}\n',
        b'{"event": ["staged"]}\n',
        b'{"event": "ended", "host": "algo-9", "code": 0, "machine_failure": ""}\n',
        b'{"event": "log", "host": "../agent", "text": "x"}\n',
        b'{"event": "started", "processes": {"agent": {"pid": 1, "started": 2, "boot": "b"}}}\n',
        b'{"event": "failed", "kind": "ClientError", "failure": {"cause": "x"}}\n',
        b'{"event": "started", "processes": {"algo-1": {"pid": 1, "started": 2}}}\n',
        b'{"event": "progress", "channels": [{"channel": "a", "mode": "File", "done": 1, "total": "x"}]}\n',
        b'{"event": "progress", "channels": [{"channel": "a", "mode": "Pipe", "done": 1, "epoch": 0.5}]}\n',
        b"[" * 100_000 + b"\n",
    ],
    ids=lambda line: repr(line[:40]),
)
def test_a_line_that_is_not_an_event_fails_the_job(agent, links, line):
    for start in range(0, len(line), 30_000):
        agent.write(line[start : start + 30_000])
        links.poll()
    assert links.failure().reason.startswith(
        "InternalServerError: the agent of algo-1 (process 4711) wrote a line that is not an event: "
    )
    assert len(links.failure().reason) < 400
    assert agent.process.is_killed
    assert not links.descriptors


def test_a_line_that_does_not_end_is_not_read_for_ever(agent, links):
    failure = until(lambda: agent.write(bytes(50_000)) or links.poll() or links.failure())
    assert "does not end" in failure.reason


@pytest.fixture
def flooded(agent):
    """An agent whose process writes signs of life without pause."""
    line = b'{"event": "alive"}\n'
    write = f"import os\nwhile True: os.write({agent.events}, {line!r} * 1000)"
    words = (sys.executable, "-c", write)
    with subprocess.Popen(words, pass_fds=(agent.events,), stderr=subprocess.DEVNULL) as process:
        yield agent
        process.kill()


def test_an_agent_that_writes_without_pause_gives_no_sign_of_life(agent, links, request, monkeypatch):
    monkeypatch.setattr("scriptmode_local._agent.host_link.SILENT_SECONDS", 0.5)
    agent.tell({"event": "alive"})
    links.poll()
    request.getfixturevalue("flooded")  # a pipe that is full takes no sign of life
    until(lambda: links.poll() or links.is_lost(), 60)
    assert "algo-1 (process 4711) has written events without pause for 0.5 s, and was killed" in str(links.failure())


def test_an_end_is_bounded(agent, links, monkeypatch):
    monkeypatch.setattr("scriptmode_local._agent.host_link.END_SECONDS", 0.05)
    problem = "the agent of algo-1 (process 4711) did not end, nor answer for 0.05 s, and was killed"
    assert links.end(lambda _: links.poll()) == [problem]
    assert agent.process.is_killed


def test_an_end_that_takes_long_is_waited_for_while_the_agent_lives(agent, links, monkeypatch):
    monkeypatch.setattr("scriptmode_local._agent.host_link.END_SECONDS", 0.05)
    begun = time.monotonic()

    def wait(_):
        is_over = time.monotonic() - begun > 0.3
        agent.tell({"event": "finished", "problems": [], "misplaced": ""} if is_over else {"event": "alive"})
        links.poll()

    assert links.end(wait) == []
    assert not agent.process.is_killed


def test_an_agent_that_closes_its_output_and_stays_is_killed(agent, links, monkeypatch):
    monkeypatch.setattr("scriptmode_local._agent.host_link._ENDING_SECONDS", 0.0)
    os.close(agent.events)
    assert "closed its output, and was killed" in until(lambda: links.poll() or links.failure()).reason
    assert agent.process.is_killed


def test_an_agent_that_is_silent_is_lost_and_one_that_lives_is_not(monkeypatch):
    monkeypatch.setattr("scriptmode_local._agent.host_link.SILENT_SECONDS", 0.2)
    living, silent = FakeAgent("algo-1"), FakeAgent("algo-2")
    links = linked(living, silent)
    silent.tell({"event": "alive"})
    failure = until(lambda: living.tell({"event": "alive"}) or links.poll() or links.failure())
    assert failure.reason.startswith("InternalServerError: the agent of algo-2 (process 4711) has not answered")
    assert (living.process.is_killed, silent.process.is_killed) == (False, True)


def test_the_time_for_which_the_jobs_agent_itself_was_stopped_is_not_silence(agent, links, monkeypatch):
    monkeypatch.setattr("scriptmode_local._agent.host_link._LONGEST_POLL_SECONDS", 0.0)
    monkeypatch.setattr("scriptmode_local._agent.host_link.SILENT_SECONDS", 0.0)
    agent.tell({"event": "alive"})
    links.poll()
    links.poll()
    assert links.failure() is None


def test_an_agent_that_starts_slowly_is_not_lost(agent, links, monkeypatch):
    monkeypatch.setattr("scriptmode_local._agent.host_link.SILENT_SECONDS", 0.0)
    links.poll()
    links.poll()
    assert links.failure() is None
    agent.tell({"event": "alive"})
    links.poll()
    until(lambda: links.poll() or links.failure())


def interrupted_state(*runs):
    state = starting_state("job-1", "arn", 0.0)
    for run in runs:
        for status in run:
            state = state.with_status(status, state.modified + 1)
    return state


TRAINED, UNTRAINED = ("Starting", "Training", "Interrupted"), ("Starting", "Downloading", "Interrupted")


@pytest.mark.parametrize(
    ("limits", "runs", "age", "why"),
    [
        ({}, [], 1, "give it max_retry_attempts"),
        ({"max_retry_attempts": 2}, [TRAINED], 1, ""),
        ({"max_retry_attempts": 1}, [TRAINED], 1, "started again 1 time"),
        ({"max_retry_attempts": 9, "max_run": 10, "max_wait": 20}, [TRAINED], 21, "max_wait, 20 s"),
        ({"use_spot_instances": True, "max_run": 10, "max_wait": 20}, [TRAINED] * 9, 19, ""),
        ({"use_spot_instances": True, "max_run": 10, "max_wait": 20}, [TRAINED], 20, "max_wait, 20 s"),
        ({"use_spot_instances": True, "max_wait": 90_000}, [TRAINED, UNTRAINED, UNTRAINED], 1, "3 runs"),
        ({"use_spot_instances": True, "max_wait": 90_000}, [UNTRAINED, UNTRAINED, TRAINED], 1, ""),
    ],
)
def test_a_lost_job_runs_again_as_often_and_as_long_as_its_limits_allow(limits, runs, age, why):
    # The present run has begun, and did not come to train.
    found = why_not_again(Limits(**limits), interrupted_state(*runs, ("Starting",)), float(age))
    assert why in found if why else not found


@pytest.mark.parametrize(("log", "usage", "age"), [(0, 1, "4.0 s"), (3, 0, "4.0 s"), (3, None, "1.0 s")])
def test_the_log_tells_how_old_the_newest_checkpoint_was_when_the_hosts_ended(tmp_path, log, usage, age):
    """A quiet script has no line at its end; the status changes once the last checkpoints are copied."""
    folder, now = JobFolder(tmp_path), time.time()
    for name, seconds in (("step-50.index", 4), ("step-40.index", 9)):
        path = folder.host("algo-1") / "checkpoints" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (now - seconds, now - seconds))
    for record, seconds in ((folder.log("algo-1"), log), (folder.usage_file("algo-1"), usage)):
        if seconds is not None:
            record.parent.mkdir()
            record.write_text("{}")
            os.utime(record, (now - seconds, now - seconds))
    state, output = starting_state("job", "arn", now + 60), Output(checkpoint_uri="file:///kept")
    assert describe_lost_time(folder, state, output) == "from the checkpoints in file:///kept, if there are any"
    folder.channels.mkdir()
    record_path(folder).touch()
    told = describe_lost_time(folder, state, output)
    assert told == f"from its newest checkpoint, which was {age} old"
