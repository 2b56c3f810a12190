"""The agents of a job's hosts as real processes: killed, asked to end, left alone, told something else."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from fakes.local_jobs import SLEEPS, channel
from fakes.processes import until

from scriptmode._core.request.parse import parse_request
from scriptmode_local._data import mounts
from scriptmode_local._hosts.process_fleet import ProcessFleet
from scriptmode_local._store.job_record import Job
from scriptmode_local._store.job_store import JobStore
from scriptmode_local._store.state import starting_state
from scriptmode_local._system.forked_tasks import Tasks

pytestmark = pytest.mark.slow


class Executed:
    """A host's agent that an engine started by a command; the test plays the job's agent."""

    def __init__(self, folder, host):
        argv = (sys.executable, "-m", "scriptmode_local._agent.host_agent", folder.path, host)
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, **command):
        print(json.dumps(command), file=self.process.stdin, flush=True)

    def event(self, kind):
        """Return the next event of a kind."""
        for line in self.process.stdout:
            event = json.loads(line)
            assert event["event"] in (kind, "progress", "log", "alive"), event
            if event["event"] == kind:
                return event
        raise AssertionError(f"no {kind}")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def prepared(jobs):
    """Return a function that makes the folder of a job with prepared hosts and no agent."""

    def prepare(script, **fields):
        request = parse_request(jobs.request(script, **fields))
        job = Job(request, "arn", "us-east-1", sys.executable, 5.0, {}, {})
        with JobStore(jobs.data_dir).create(job, starting_state(request.name, "arn", time.time())) as (folder, _):
            folder.channels.mkdir()
            fleets.append(ProcessFleet(folder, job, Tasks(), dict(os.environ)))
            fleets[-1].prepare()
            return folder

    fleets = []
    yield prepare
    for fleet in fleets:
        fleet.remove_hosts()


@pytest.fixture
def executed():
    agents = []

    def start(folder, host):
        agents.append(Executed(folder, host))
        return agents[-1]

    yield start
    for agent in agents:
        agent.close()


SHARD = """
    import os
    print(os.environ["SM_CURRENT_HOST"], sorted(os.listdir(os.environ["SM_CHANNEL_TRAIN"])), flush=True)
"""


def test_agents_that_are_started_by_a_command_stage_and_train_a_host_each(jobs, prepared, executed):
    (jobs.folder / "in").mkdir()
    for number in range(4):
        (jobs.folder / "in" / f"part-{number}").write_bytes(b"x")
    folder = prepared(SHARD, hosts=2, channels=[channel("train", f"file://{jobs.folder}/in", "ShardedByS3Key")])
    agents = [executed(folder, host) for host in ("algo-1", "algo-2")]
    for agent in agents:
        # A scheduler sends it to all processes of a host.
        agent.event("alive")
        agent.process.send_signal(signal.SIGTERM)
        agent.tell(do="stage")
    for agent in agents:
        agent.event("staged")
        agent.tell(do="train")
    for host, agent in zip(("algo-1", "algo-2"), agents):
        assert set(agent.event("started")["processes"]) == {f"agent of {host}", host}
        assert agent.event("ended") == {"event": "ended", "host": host, "code": 0, "machine_failure": ""}
        agent.tell(do="end")
        assert agent.event("finished") == {"event": "finished", "problems": [], "misplaced": ""}
        assert agent.process.wait(600) == 0
    assert "algo-1 ['part-0', 'part-2']" in folder.log("algo-1").read_text()
    assert "algo-2 ['part-1', 'part-3']" in folder.log("algo-2").read_text()
    names = {f"{host}{kind}.json" for host in ("algo-1", "algo-2") for kind in ("", ".history")}
    assert {path.name for path in (folder.path / "usage").iterdir()} <= names


@pytest.fixture
def training(jobs, prepared, executed):
    """An agent whose host trains, and the job's folder."""
    (jobs.folder / "in").mkdir()
    (jobs.folder / "in" / "part").write_bytes(bytes(100))
    folder = prepared(SLEEPS, channels=[channel("train", f"file://{jobs.folder}/in", InputMode="FastFile")])
    agent = executed(folder, "algo-1")
    for verb, event in (("stage", "staged"), ("train", "started")):
        agent.tell(do=verb)
        agent.event(event)
    until(lambda: "up" in folder.log("algo-1").read_text())
    return agent, folder


def test_the_end_of_its_input_ends_an_agent_with_all_that_it_runs(jobs, training):
    agent, folder = training
    os.kill(agent.process.pid, signal.SIGTERM)
    agent.process.stdin.close()
    assert agent.process.wait(600) == 0
    assert not jobs.processes()
    assert not mounts.mounted_below(folder.path)


def test_a_terminated_host_saves_and_its_agent_tells_how_it_ended(training):
    agent, _ = training
    agent.tell(do="terminate", host="algo-1")
    assert agent.event("ended")["code"] == 143


@pytest.mark.parametrize("line", ["scontrol: error", '{"do": "dance"}', '{"do": "kill"}'])
def test_a_line_that_is_not_a_command_ends_the_agent_with_the_line(prepared, executed, line):
    agent = executed(prepared("pass"), "algo-1")
    print(line, file=agent.process.stdin, flush=True)
    failed = agent.event("failed")
    assert failed["kind"] == "InternalServerError"
    assert line.split()[-1].strip('"}') in failed["failure"]["cause"]
    agent.event("finished")
    assert agent.process.wait(600) == 0


def test_an_agent_without_its_job_tells_why(jobs, executed):
    agent = executed(jobs.job_folder("gone"), "algo-1")
    cause = agent.event("failed")["failure"]["cause"]
    assert cause.startswith("algo-1 cannot be prepared: there is no training job 'gone'")
    assert agent.process.wait(600) == 1


def test_a_stop_is_obeyed_between_two_starts_of_hosts(jobs):
    request = jobs.request("import time; time.sleep(600)")
    request["ResourceConfig"]["InstanceCount"] = 100
    jobs.open(force=True, stop_grace=60.0).create(request)
    name = request["TrainingJobName"]
    logs = jobs.job_folder(name).log("algo-1").parent
    until((logs / "algo-3.log").exists)
    began = time.monotonic()
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"
    assert len(list(logs.iterdir())) < 50
    assert time.monotonic() - began < 30
