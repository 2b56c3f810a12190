"""A job's agent and the agents of its hosts: what they send each other, and what is made of a lost or broken agent."""

import json
import os
import signal
import time

import pytest
from fakes.processes import until

from scriptmode.platforms.base import ChannelProgress
from scriptmode.platforms.local.agent.host_link import HostLinks
from scriptmode.platforms.local.agent.host_messages import MessageReader, UnreadableMessageError, send
from scriptmode.platforms.local.hosts.started_agent import StartedAgent

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

    def write(self, line):
        os.write(self.events, line)

    def die(self, code):
        os.close(self.events)
        self.process.code = code


@pytest.fixture
def logged():
    return []


@pytest.fixture
def linked(logged):
    def link(*agents):
        links = HostLinks(lambda host, text: logged.append((host, text)))
        links.connect([agent.started for agent in agents])
        return links

    return link


def test_commands_reach_the_agent_of_the_host(linked):
    first, second = FakeAgent("algo-1", "algo-2"), FakeAgent("algo-3")
    links = linked(first, second)
    links.send("train")
    links.hosts[1].terminate()
    links.hosts[2].kill()
    assert first.commands.read() == [{"do": "train"}, {"do": "terminate", "host": "algo-2"}]
    assert second.commands.read() == [{"do": "train"}, {"do": "kill", "host": "algo-3"}]


def test_hosts_end_with_what_their_agents_tell(linked, logged):
    first, second = FakeAgent("algo-1"), FakeAgent("algo-2")
    links = linked(first, second)
    first.tell({"event": "staged"}, {"event": "log", "host": "algo-1", "text": "copied"})
    links.poll()
    assert (links.is_staged, logged) == (False, [("algo-1", "copied")])
    second.tell({"event": "staged"}, {**ENDED, "host": "algo-2", "code": -9, "machine_failure": "no memory"})
    links.poll()
    assert links.is_staged
    assert [host.poll() for host in links.hosts] == [None, -9]
    assert links.hosts[1].machine_failure == "no memory"
    assert links.failure() is None


def test_the_progress_of_a_channel_is_that_of_all_machines(linked):
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


def test_a_failure_is_that_of_the_first_agent_that_has_one(linked):
    agent = FakeAgent("algo-1")
    links = linked(agent)
    failure = {"cause": "Data download failed: gone", "host": "algo-1", "exit_code": None}
    rest = dict.fromkeys(("process", "signal", "exception", "hint", "traceback"), "")
    agent.tell({"event": "failed", "kind": "ClientError", "failure": {**failure, **rest}})
    agent.die(0)
    links.poll()
    assert links.failure().reason == "ClientError: Data download failed: gone"
    assert links.failure().failure.host == "algo-1"


@pytest.mark.parametrize(
    ("code", "how"),
    [(-signal.SIGKILL, "was killed by SIGKILL"), (1, "ended with exit code 1")],
    ids=["killed", "ended"],
)
def test_an_agent_that_is_lost_fails_the_job_and_ends_its_hosts(linked, code, how):
    agent, other = FakeAgent("algo-1", "algo-2"), FakeAgent("algo-3")
    links = linked(agent, other)
    agent.die(code)
    links.poll()
    text = f"InternalServerError: the agent of algo-1, algo-2 (process 4711) {how}, and so were its hosts"
    assert links.failure().reason == text
    assert [host.poll() for host in links.hosts] == [-9, -9, None]
    links.hosts[0].kill()


def test_what_an_agent_told_before_its_end_counts(linked):
    agent = FakeAgent("algo-1")
    links = linked(agent)
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
        b"\n",
        b"[]\n",
        b'{"event": "no such"}\n',
        b'{"event": ["staged"]}\n',
        b'{"event": "staged", "more": 1}\n',
        b'{"event": "ended", "host": "algo-1"}\n',
        b'{"event": "ended", "host": "algo-1", "code": "0", "machine_failure": ""}\n',
        b'{"event": "ended", "host": "algo-9", "code": 0, "machine_failure": ""}\n',
        b'{"event": "log", "host": "../agent", "text": "x"}\n',
        b'{"event": "started", "processes": {"agent": {"pid": 1, "started": 2, "boot": "b"}}}\n',
        b'{"event": "failed", "kind": "ClientError", "failure": {"cause": "x"}}\n',
        b'{"event": "progress", "channels": [{"channel": "a", "mode": "File", "done": 1, "more": 2}]}\n',
        b'{"event": "started", "processes": {"algo-1": {"pid": 1, "started": 2}}}\n',
        b"[" * 100_000 + b"\n",
    ],
    ids=lambda line: repr(line[:40]),
)
def test_a_line_that_is_not_an_event_fails_the_job(linked, line):
    agent = FakeAgent("algo-1")
    links = linked(agent)
    for start in range(0, len(line), 30_000):
        agent.write(line[start : start + 30_000])
        links.poll()
    assert links.failure().reason.startswith(
        "InternalServerError: the agent of algo-1 (process 4711) wrote a line that is not an event: "
    )
    assert len(links.failure().reason) < 400
    assert agent.process.is_killed
    assert not links.descriptors


def test_a_line_that_does_not_end_is_not_read_for_ever(linked):
    agent = FakeAgent("algo-1")
    links = linked(agent)

    def fails():
        agent.write(bytes(50_000))
        links.poll()
        return links.failure()

    assert "does not end" in until(fails).reason


def test_a_message_may_arrive_in_parts():
    reading, writing = os.pipe()
    reader = MessageReader(reading, "event")
    os.write(writing, b'{"event": "sta')
    assert reader.read() == []
    os.write(writing, b'ged"}\n{"event"')
    assert reader.read() == [{"event": "staged"}]
    os.close(writing)
    assert (reader.read(), reader.is_closed) == ([], True)


def test_a_command_has_its_shape():
    reading, writing = os.pipe()
    reader = MessageReader(reading, "do")
    os.write(writing, json.dumps({"do": "kill"}).encode() + b"\n")
    with pytest.raises(UnreadableMessageError, match="it has no 'host'"):
        reader.read()


def test_an_end_is_bounded(linked, monkeypatch):
    monkeypatch.setattr("scriptmode.platforms.local.agent.host_link.END_SECONDS", 0.05)
    agent = FakeAgent("algo-1")
    links = linked(agent)
    problem = "the agent of algo-1 (process 4711) did not end, nor answer for 0.05 s, and was killed"
    assert links.end(lambda _: links.poll()) == [problem]
    assert agent.process.is_killed


def test_an_end_that_takes_long_is_waited_for_while_the_agent_lives(linked, monkeypatch):
    monkeypatch.setattr("scriptmode.platforms.local.agent.host_link.END_SECONDS", 0.05)
    agent = FakeAgent("algo-1")
    links = linked(agent)
    begun = time.monotonic()

    def wait(_):
        is_over = time.monotonic() - begun > 0.3
        agent.tell({"event": "finished", "problems": [], "misplaced": ""} if is_over else {"event": "alive"})
        links.poll()

    assert links.end(wait) == []
    assert not agent.process.is_killed


def test_an_end_returns_what_was_found(linked):
    agent = FakeAgent("algo-1")
    links = linked(agent)
    agent.tell({"event": "finished", "problems": ["it stays"], "misplaced": "there is a file"})
    assert links.end(lambda _: links.poll()) == ["it stays"]
    assert links.misplaced() == "there is a file"
    assert agent.commands.read() == [{"do": "end"}]


def test_an_agent_that_closes_its_output_and_stays_is_killed(linked, monkeypatch):
    monkeypatch.setattr("scriptmode.platforms.local.agent.host_link._ENDING_SECONDS", 0.0)
    agent = FakeAgent("algo-1")
    links = linked(agent)
    os.close(agent.events)

    def fails():
        links.poll()
        return links.failure()

    assert "closed its output, and was killed" in until(fails).reason
    assert agent.process.is_killed


def test_an_agent_that_is_silent_is_lost_and_one_that_lives_is_not(linked, monkeypatch):
    monkeypatch.setattr("scriptmode.platforms.local.agent.host_link.SILENT_SECONDS", 0.2)
    living, silent = FakeAgent("algo-1"), FakeAgent("algo-2")
    links = linked(living, silent)
    silent.tell({"event": "alive"})

    def fails():
        living.tell({"event": "alive"})
        links.poll()
        return links.failure()

    assert until(fails).reason.startswith("InternalServerError: the agent of algo-2 (process 4711) has not answered")
    assert (living.process.is_killed, silent.process.is_killed) == (False, True)


def test_the_time_for_which_the_jobs_agent_itself_was_stopped_is_not_silence(linked, monkeypatch):
    monkeypatch.setattr("scriptmode.platforms.local.agent.host_link._LONGEST_POLL_SECONDS", 0.0)
    monkeypatch.setattr("scriptmode.platforms.local.agent.host_link.SILENT_SECONDS", 0.0)
    agent = FakeAgent("algo-1")
    links = linked(agent)
    agent.tell({"event": "alive"})
    links.poll()
    links.poll()
    assert links.failure() is None


def test_an_agent_that_starts_slowly_is_not_lost(linked, monkeypatch):
    monkeypatch.setattr("scriptmode.platforms.local.agent.host_link.SILENT_SECONDS", 0.0)
    agent = FakeAgent("algo-1")
    links = linked(agent)
    links.poll()
    links.poll()
    assert links.failure() is None
    agent.tell({"event": "alive"})
    links.poll()
    until(lambda: links.poll() or links.failure())
