"""Agents in the foreground, as batch steps of a cluster: jobs that it interrupts and runs again, locks and exit codes."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from fakes.local_jobs import SLEEPS, LocalJobs
from fakes.processes import recorded, until

from scriptmode import JobExistsError
from scriptmode_local._agent import recovery
from scriptmode_local._hosts.agent_control import AgentLocation, Presence
from scriptmode_local._hosts.local_agent import LocalAgent
from scriptmode_local._hosts.process_engine import ProcessEngine
from scriptmode_runtime._processes import proc

#: An agent whose engine ends it for a reason that the test gives, and queues it again unless it must not.
AGENT = """
import sys
from scriptmode.errors import PlatformError
from scriptmode_local._agent import agent_process
from scriptmode_local._hosts.agent_control import AgentSignal, StopReason, Termination
from scriptmode._core.spec.hosts import HostKind
from scriptmode._core.text.messages import Problem
from scriptmode_local._hosts.local_agent import LocalAgent
from scriptmode_local._hosts.process_fleet import ProcessFleet

folder, reason, text, requeues = sys.argv[1:]

def tell(self, folder, what):
    if what is AgentSignal.REQUEUE:
        if requeues != "yes":
            raise PlatformError("the scheduler refuses it")
        (folder.path / "requeued").touch()

vars(HostKind.PROCESS)["pending_message"] = "Waiting in the queue"
LOST = Problem("algo-1 was lost with its node")
ProcessFleet.find_disconnected = lambda fleet, code=None: LOST if (fleet._folder.path / "lost").exists() else None
LocalAgent.why_terminated = lambda self, folder, was_signalled: Termination(StopReason(reason), text)
LocalAgent.signal = tell
sys.exit(agent_process.main(["--foreground", folder]))
"""
#: Counts the interruptions in a checkpoint, and prints what it finds of an earlier run.
COUNTS = """
import os, pathlib, signal, sys, time
checkpoint = pathlib.Path("/opt/ml/checkpoints/step")
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
print("left", sorted(path.name for path in pathlib.Path(os.environ["SM_MODEL_DIR"]).iterdir()), flush=True)
(pathlib.Path(os.environ["SM_MODEL_DIR"]) / "weights").write_text("w")
def save(*_):
    checkpoint.write_text(str(step + 1))
    print("saved", flush=True)
    sys.exit({code})
signal.signal(signal.SIGTERM, save)
print("up at", step, flush=True)
if step < {steps}:
    time.sleep(600)
"""


class Runs:
    """One job, each of whose runs is an agent in the foreground."""

    def __init__(self, jobs, monkeypatch):
        self.jobs = jobs
        monkeypatch.setattr(LocalAgent, "launch", lambda *_: None)
        monkeypatch.setattr(LocalAgent, "locate", lambda *_: self.location)
        self.location = AgentLocation(Presence.WAITING, "Waiting in the queue")
        self.name = ""

    def create(self, *, spot=True, steps=1, code=143, more=None, **fields):
        """Create a job that trains until its checkpoint counts ``steps`` interruptions."""
        more = {"CheckpointConfig": {"S3Uri": f"file://{self.jobs.folder}/checkpoints"}, **(more or {})}
        request = self.jobs.request(COUNTS.format(steps=steps, code=code), more=more, **fields)
        if spot:
            request["EnableManagedSpotTraining"] = True
            request["StoppingCondition"]["MaxWaitTimeInSeconds"] = 600
        self.jobs.platform.create(request)
        self.name = request["TrainingJobName"]
        self.folder = self.jobs.job_folder(self.name)

    def start(self, reason="preempted", text="the scheduler preempted the job", *, requeues=True):
        (self.folder.path / "requeued").unlink(missing_ok=True)
        self.location = AgentLocation(Presence.ALIVE)
        argv = (sys.executable, "-c", AGENT, str(self.folder.path), reason, text, "yes" if requeues else "no")
        return subprocess.Popen(argv)

    def until_line(self, agent, text):
        until(lambda: agent.poll() is not None or text in self.log())
        assert text in self.log(), self.folder.agent_log_tail()

    def log(self):
        log = self.folder.log("algo-1")
        return log.read_text() if log.exists() else ""

    def is_requeued(self):
        return (self.folder.path / "requeued").exists()

    def interrupt(self, number=signal.SIGTERM, **agent):
        """Start a run, and send a signal to its agent when the script is up; return the agent's exit code."""
        with self.start(**agent) as process:
            self.until_line(process, "up at")
            process.send_signal(number)
            return process.wait(600)

    def describe(self):
        return self.jobs.platform.describe(self.name).response

    def statuses(self):
        return [each["Status"] for each in self.describe()["SecondaryStatusTransitions"]]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    return Runs(LocalJobs(tmp_path), monkeypatch)


def test_an_interrupted_job_goes_on_from_its_checkpoints(runs):
    runs.create()
    seen = []
    following = threading.Thread(
        target=lambda: seen.extend(event.message for event in runs.jobs.platform.log_events(runs.name, follow=True))
    )
    following.start()
    assert runs.interrupt(signal.SIGUSR1) == 1  # a scheduler's notice
    assert runs.is_requeued()
    runs.location = AgentLocation(Presence.WAITING, "Waiting in the queue: BeginTime", position=2)
    description = runs.describe()
    assert (description["TrainingJobStatus"], description["SecondaryStatus"]) == ("InProgress", "Interrupted")
    message = description["SecondaryStatusTransitions"][-1]["StatusMessage"]
    assert message == "the scheduler preempted the job. Waiting in the queue: BeginTime"
    assert not (runs.jobs.data_dir / "jobs" / runs.name / "output" / "model.tar.gz").exists()
    with runs.start() as agent:
        assert agent.wait(600) == 0, runs.folder.agent_log_tail()
    following.join(600)
    assert runs.statuses() == [
        "Starting", "Downloading", "Training", "Interrupted",
        "Starting", "Downloading", "Training", "Uploading", "Completed",
    ]  # fmt: skip
    log = re.sub(r"\d+\.\d s old", "1.0 s old", runs.log())
    lines = [line for line in log.splitlines() if line.startswith(("left", "up at", "saved", "scriptmode: the"))]
    assert lines == [
        "left []", "up at 0", "saved",
        "scriptmode: the job starts again, as it was interrupted, from its newest checkpoint, which was 1.0 s old",
        "left []", "up at 1",
    ]  # fmt: skip
    assert [line for line in seen if line in runs.log().splitlines() and line.startswith(("left", "up at"))] == [
        "left []", "up at 0", "left []", "up at 1",
    ]  # fmt: skip


def test_a_copy_of_checkpoints_that_was_cut_short_is_not_copied_back(runs):
    runs.create(steps=0)
    state = runs.folder.read_state()
    runs.folder.write_state(state.with_status("Downloading", state.created))
    runs.folder.write_processes({})
    kept = runs.jobs.folder / "checkpoints" / "step"
    restored = runs.folder.host("algo-1") / "checkpoints" / "step"
    for path, content in ((kept, "123"), (restored, "1")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    with runs.start() as agent:
        assert agent.wait(600) == 0, runs.folder.agent_log_tail()
    assert "up at 123" in runs.log()
    assert kept.read_text() == "123"


def test_a_checkpoint_that_an_interruption_leaves_out_is_an_event(runs):
    runs.create(hosts=2)
    second = runs.folder.log("algo-2")
    with runs.start() as agent:
        runs.until_line(agent, "up at")
        until(lambda: second.exists() and "up at" in second.read_text())
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(600) == 1
    (event,) = [each for each in runs.jobs.platform.events(runs.name) if each.is_loss]
    assert event.reason == "OutputLeftOut"
    assert event.message == "checkpoints: algo-2's 'step' is left out: algo-1 has 'step' too"


@pytest.mark.parametrize("is_mended", [False, True])
def test_checkpoints_that_an_interruption_cannot_copy_are_an_event_and_are_kept(runs, is_mended):
    runs.create()
    with runs.start() as agent:
        runs.until_line(agent, "up at")
        checkpoints = runs.jobs.folder / "checkpoints"
        shutil.rmtree(checkpoints, ignore_errors=True)
        checkpoints.write_text("a file")
        agent.send_signal(signal.SIGTERM)
        agent.wait(600)
    (event,) = [each for each in runs.jobs.platform.events(runs.name) if each.is_loss]
    assert event.reason == "CheckpointsNotCopied"
    assert event.message.startswith("the last checkpoints were not copied: ")
    newest = (runs.folder.host("algo-1") / "checkpoints" / "step").read_text()
    if is_mended:
        checkpoints.unlink()
    with runs.start() as agent:
        agent.wait(600)
    if is_mended:
        assert f"up at {newest}" in runs.log()
        assert not any(each.is_loss for each in runs.jobs.platform.events(runs.name))
    else:
        assert runs.describe()["FailureReason"].endswith(f"they are kept in {runs.folder.hosts}")
        assert (runs.folder.host("algo-1") / "checkpoints" / "step").read_text() == newest


@pytest.mark.parametrize("process", ["agent of algo-1", "algo-1"])
def test_a_host_whose_machine_is_lost_interrupts_the_job_before_the_engine_knows(runs, process):
    runs.create()
    with runs.start(reason="unknown", text="") as agent:
        runs.until_line(agent, "up at")
        (runs.folder.path / "lost").touch()
        os.kill(recorded(runs.folder)[process].pid, signal.SIGKILL)
        assert agent.wait(600) == 1
    assert runs.is_requeued()
    message = runs.describe()["SecondaryStatusTransitions"][-1]["StatusMessage"]
    assert message.startswith("algo-1 was lost with its node")


def test_a_script_that_fails_is_not_an_interruption(runs):
    runs.create(code=3)
    with runs.start() as agent:
        runs.until_line(agent, "up at")
        [script] = [pid for pid in runs.jobs.processes() if pid != recorded(runs.folder)["algo-1"].pid][-1:]
        os.kill(script, signal.SIGTERM)
        assert agent.wait(600) == 1
    assert runs.describe()["FailureReason"].startswith("AlgorithmError: ")
    assert not runs.is_requeued()


@pytest.mark.parametrize(
    ("agent", "spot", "secondary", "reason"),
    [
        ({"reason": "node lost", "text": "node n1 failed"}, False, "Failed", "InternalServerError: node n1 failed; to have"),
        ({"reason": "unknown", "text": ""}, True, "Failed", "InternalServerError: the job's agent got SIGTERM, and its"),
        ({"requeues": False}, True, "Failed", "the job cannot be queued again: the scheduler refuses it"),
    ],
    ids=["not spot", "unknown", "refused"],
)  # fmt: skip
def test_the_reason_of_a_signal_decides_how_the_job_ends(runs, agent, spot, secondary, reason):
    runs.create(spot=spot)
    assert runs.interrupt(**agent) == 1
    description = runs.describe()
    assert description["SecondaryStatus"] == secondary
    assert reason in description.get("FailureReason", "")
    assert not runs.is_requeued()


def test_a_run_without_an_end_is_interrupted_since_its_last_heartbeat(runs):
    runs.create(steps=0)
    state = runs.folder.read_state()
    runs.folder.write_state(state.with_status("Downloading", state.created).with_status("Training", state.created))
    runs.folder.write_processes({})
    (runs.folder.channels / "spool").mkdir(parents=True)
    os.utime(runs.folder.lock_file, (state.created + 7, state.created + 7))
    with runs.start() as agent:
        assert agent.wait(600) == 0, runs.folder.agent_log_tail()
    interrupted = next(each for each in runs.folder.read_state().transitions if each.status == "Interrupted")
    assert interrupted.started == pytest.approx(state.created + 7, abs=0.01)


def test_the_time_limit_is_that_of_all_runs(runs):
    runs.create(max_run=60)
    state = runs.folder.read_state()
    trained = state.with_status("Training", state.created - 100).with_status("Interrupted", state.created - 41)
    runs.folder.write_state(trained)
    runs.folder.write_processes({})
    with runs.start() as agent:
        assert agent.wait(600) == 1
    assert runs.describe()["SecondaryStatus"] == "MaxRuntimeExceeded"
    assert recovery.reconcile(runs.folder).seconds_in("Training") < 65


def test_jobs_of_this_machine_do_not_wait_for_one_that_a_scheduler_queued(runs):
    runs.create()
    with runs.start() as process:
        runs.until_line(process, "up at")
        queue = runs.jobs.data_dir / "queue"
        assert not queue.exists() or not list(queue.iterdir())
        runs.jobs.platform.stop(runs.name)
        process.wait(600)


def foreground(folder):
    return (sys.executable, "-m", "scriptmode_local._agent.agent_process", "--foreground", str(folder.path))


@pytest.fixture
def pending(tmp_path, monkeypatch):
    """Jobs whose engine starts no agent: what ``sbatch`` leaves of a job that is pending."""
    monkeypatch.setattr(ProcessEngine, "launch", lambda *_: None)
    return LocalJobs(tmp_path)


@pytest.mark.parametrize(
    ("script", "code", "status"), [("print('trained')", 0, "Completed"), ("raise OSError", 1, "Failed")]
)
def test_the_exit_code_is_that_of_the_job(pending, script, code, status):
    folder = pending.job_folder(pending.start(script))
    agent = subprocess.run(foreground(folder), timeout=600, check=False, capture_output=True, text=True)
    assert (agent.returncode, folder.read_state().status) == (code, status), agent.stderr
    assert subprocess.run(foreground(folder), timeout=600, check=False).returncode == code  # the job ended already


def test_a_stopped_job_does_not_end_with_0(pending):
    name = pending.start(SLEEPS)
    with subprocess.Popen(foreground(pending.job_folder(name))) as agent:
        log = pending.job_folder(name).log("algo-1")
        until(lambda: agent.poll() is not None or (log.exists() and "up" in log.read_text()))
        assert pending.platform.describe(name).response["SecondaryStatus"] == "Training"
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(600) == 1
    assert pending.platform.describe(name).response["TrainingJobStatus"] == "Stopped"


def test_a_job_that_trained_is_not_created_again_though_its_next_agent_never_began(pending):
    request = pending.request(SLEEPS, more={"RetryStrategy": {"MaximumRetryAttempts": 1}})
    pending.platform.create(request)
    folder = pending.job_folder(request["TrainingJobName"])
    folder.write_state(folder.read_state().with_status("Training", time.time()))
    folder.write_processes({"agent": proc.identify(os.getpid())._replace(started=1)})
    beat = time.time() - 3600
    os.utime(folder.lock_file, (beat, beat))
    assert pending.platform.describe(folder.name).response["SecondaryStatus"] == "Interrupted"
    # The agent has some time to begin.
    assert folder.silent_since() is None
    reason = pending.platform.describe(folder.name).response["FailureReason"]
    assert "the agent that was to start the job again was killed or crashed before it began" in reason, reason
    with pytest.raises(JobExistsError):
        pending.platform.create(request)


def test_the_agent_waits_for_a_client_that_reads_the_state(pending):
    folder = pending.job_folder(pending.start("print('trained')"))
    with folder.lock_file.open("r+") as client:
        fcntl.flock(client, fcntl.LOCK_EX)
        with subprocess.Popen(foreground(folder)) as agent:
            with pytest.raises(subprocess.TimeoutExpired):
                agent.wait(0.5)
            assert folder.read_state().secondary == "Starting"
            fcntl.flock(client, fcntl.LOCK_UN)
            assert agent.wait(600) == 0


def test_a_deleted_job_is_not_run(pending):
    folder = pending.job_folder(pending.start("print('trained')"))
    folder.path.rename(pending.folder / "away")
    agent = subprocess.run(foreground(folder), timeout=600, check=False, capture_output=True, text=True)
    assert agent.returncode == 1
    assert f"scriptmode: the agent of training job {folder.name} cannot start: " in agent.stderr
    assert "Traceback" not in agent.stderr
