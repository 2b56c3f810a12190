"""The agent of a job on Slurm: where it is, how it ends and runs again, by a fake cluster. Its hosts are processes."""

import os
import shlex
import signal
import sys
import time

import pytest
from fakes.local_jobs import LocalJobs
from fakes.processes import recorded, until
from fakes.slurm import FakeSlurm

from scriptmode import PlatformError
from scriptmode._core.spec.hosts import HostKind
from scriptmode_local._hosts.agent_control import AgentSignal, StopReason
from scriptmode_local._hosts.local_agent import LocalAgent
from scriptmode_local._store.job_store import ENGINE_RECORD
from scriptmode_slurm import SLURM
from scriptmode_slurm._engine import agent, commands
from scriptmode_slurm._engine.agent import SlurmAgent

CONTROL = ("locate", "why_terminated", "signal")
AGENT = f"""
import sys
from scriptmode._core.spec.hosts import HostKind
from scriptmode_local._agent import agent_process
from scriptmode_local._hosts.local_agent import LocalAgent
from scriptmode_slurm._engine.agent import SlurmAgent
for name in {CONTROL}:
    setattr(LocalAgent, name, getattr(SlurmAgent, name))
vars(HostKind.PROCESS)["pending_message"] = "Waiting in Slurm's queue"
sys.exit(agent_process.main(["--foreground", sys.argv[1]]))
"""
COUNTS = """
import os, pathlib, signal, sys, time
checkpoint = pathlib.Path(os.environ["CHECKPOINTS"]) / "step"
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
def save(*_):
    checkpoint.write_text(str(step + 1))
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
print("up at", step, flush=True)
if step < 1:
    time.sleep(600)
"""


class SlurmJobs(LocalJobs):
    """Jobs whose agent is the batch script of the fake cluster."""

    def __init__(self, folder, fake):
        super().__init__(folder)
        self.fake = fake
        self.agent_argv = ("sleep", "600")

    def launch(self, folder, _job, _lock):
        script = folder.path / "job.sh"
        options = (
            f"--job-name={folder.name}", f"--output={folder.path}/agent.log", "--open-mode=append", "--requeue",
        )  # fmt: skip
        command = shlex.join(self.agent_argv).replace("FOLDER", f"'{folder.path}'")
        script.write_text("\n".join(("#!/bin/sh", *(f'#SBATCH "{each}"' for each in options), f"exec {command}\n")))
        folder.write_record(ENGINE_RECORD, {"job": str(commands.submit(script))})

    def begin(self, *history, script="pass", **fields):
        """Start a job with a history; return its name."""
        if history:
            self.fake.play(*history)
        request = self.request(script, **fields)
        request["CheckpointConfig"] = {"S3Uri": f"file://{self.folder}/checkpoints"}
        request["Environment"] = {"CHECKPOINTS": "/opt/ml/checkpoints"}
        request["EnableManagedSpotTraining"] = True
        request["StoppingCondition"]["MaxWaitTimeInSeconds"] = 600
        self.platform.create(request)
        return request["TrainingJobName"]

    def until_up(self, name):
        """Wait until the script of a job that an agent runs is up; return its log."""
        log = self.job_folder(name).log("algo-1")
        until(lambda: log.exists() and "up at 0" in log.read_text())
        return log

    def last(self, name):
        """Return the last status of a job and its message."""
        last = self.platform.describe(name).response["SecondaryStatusTransitions"][-1]
        return last["Status"], last["StatusMessage"]


@pytest.fixture
def fake(tmp_path, monkeypatch, closed_after):
    cluster = closed_after(FakeSlurm(tmp_path / "slurm"))
    cluster.use(monkeypatch)
    return cluster


@pytest.fixture
def jobs(tmp_path, fake, monkeypatch):
    monkeypatch.setattr(commands, "STATUS_SECONDS", 0.0)
    monkeypatch.setattr(commands, "STATES", commands.StatusCache())
    for name in CONTROL:
        monkeypatch.setattr(LocalAgent, name, getattr(SlurmAgent, name))
    monkeypatch.setitem(vars(HostKind.PROCESS), "pending_message", SLURM.pending_message)
    found = SlurmJobs(tmp_path, fake)
    monkeypatch.setattr(LocalAgent, "launch", found.launch)
    return found


def enter(folder, *statuses):
    """Have a job go through statuses that an agent recorded, which has no heartbeat any more."""
    folder.write_processes({})
    state = folder.read_state()
    for number, status in enumerate(statuses, 1):
        state = state.with_status(status, state.created + number)
    folder.write_state(state)
    os.utime(folder.lock_file, (0, 0))


def test_a_pending_job_shows_its_reason_position_and_expected_start(jobs, fake):
    fake.play({"state": "PENDING", "reason": "Resources"})
    first = jobs.begin()
    second = jobs.begin({"state": "PENDING", "reason": "Priority", "start": 7200})
    queue = "Waiting in Slurm's queue: number"
    assert jobs.last(first) == ("Pending", f"{queue} 1 in partition batch; Resources")
    start = time.strftime("%H:%M", time.localtime(fake.job(2)["expected"]))
    assert jobs.last(second) == ("Pending", f"{queue} 2 in partition batch; expected start {start}; Priority")
    assert jobs.platform.queue_position(second) == 2


def test_a_job_that_slurm_never_starts_fails_and_is_cancelled(jobs, fake):
    name = jobs.begin({"state": "PENDING", "reason": "PartitionTimeLimit"})
    reason = jobs.platform.describe(name).response["FailureReason"]
    assert reason.startswith("ClientError: Slurm never starts job 1 (PartitionTimeLimit); ")
    assert fake.job(1)["state"] == "CANCELLED"


@pytest.mark.parametrize(
    ("end", "secondary", "message"),
    [
        ({"state": "NODE_FAIL"}, "Failed", "InternalServerError: a node of Slurm job 1 failed; "),
        ({"state": "PREEMPTED"}, "Failed", "InternalServerError: Slurm job 1 was preempted by another job; "),
        ({"state": "OUT_OF_MEMORY"}, "Failed", "ClientError: Slurm job 1 needed more memory than it asked for"),
        ({"state": "FAILED", "exit_code": 0, "signal": 9}, "Interrupted", "crashed: Slurm job 1 is FAILED, signal 9"),
        ({"state": "TIMEOUT"}, "MaxRuntimeExceeded", "Slurm job 1 reached its time limit"),
        ({"state": "CANCELLED", "by": 0}, "Stopped", "Slurm job 1 was cancelled by the user root"),
    ],
    ids=lambda each: each["state"] if isinstance(each, dict) else "",
)
@pytest.mark.parametrize("is_purged", [False, True], ids=["", "purged"])
def test_slurm_knows_how_the_agent_ended(jobs, fake, end, secondary, message, is_purged):
    name = jobs.begin({"state": "RUNNING"})
    enter(jobs.job_folder(name), "Downloading", "Training")
    assert jobs.last(name)[0] == "Training"
    fake.continue_with(1, end)
    if is_purged:
        fake.purge(1)
    description = jobs.platform.describe(name).response
    assert description["SecondaryStatus"] == secondary
    assert message in description.get("FailureReason", description["SecondaryStatusTransitions"][-1]["StatusMessage"])


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("RUNNING", "Slurm starts the job on n[1-2]"),
        ("CONFIGURING", "Slurm starts the job on n[1-2]"),
        ("COMPLETING", "Waiting in Slurm's queue"),
    ],
)
def test_a_job_whose_agent_has_not_begun_is_shown_as_starting_and_not_as_silent(jobs, monkeypatch, state, message):
    name = jobs.begin({"state": "RUNNING"})
    status = commands.JobStatus(1, state, nodes="n[1-2]")
    monkeypatch.setattr(commands.STATES, "status", lambda _, **_how: status)
    if state != "COMPLETING":
        os.utime(jobs.job_folder(name).lock_file, (0, 0))  # its nodes boot for minutes
    assert jobs.last(name) == ("Pending", message)


def test_a_controller_that_is_down_ends_nothing_and_delays_no_list(jobs, fake):
    name = jobs.begin({"state": "PENDING", "reason": "Resources"})
    fake.set_reachable(False)
    before = time.monotonic()
    assert "; Slurm does not answer: squeue: " in jobs.last(name)[1]
    assert [each["TrainingJobStatus"] for each in jobs.platform.list()] == ["InProgress"]
    assert time.monotonic() - before < commands.RETRY_SECONDS / 2
    fake.set_reachable(True)
    assert jobs.last(name)[1].endswith("; Resources")


def test_a_job_that_is_preempted_while_it_trains_goes_on_by_itself(jobs, fake, monkeypatch):
    monkeypatch.setattr(agent, "_HEARTBEAT_SECONDS", 600.0)  # the machine may be busy
    jobs.agent_argv = (sys.executable, "-c", AGENT, "FOLDER")
    name = jobs.begin(script=COUNTS)
    folder = jobs.job_folder(name)
    log = jobs.until_up(name)
    asked = time.time()
    until(lambda: jobs.last(name)[0] == "Training")
    assert not fake.asks(since=asked)  # the heartbeat of a running agent is enough
    fake.continue_with(1, {"state": "PREEMPTING"})
    os.kill(recorded(folder)["algo-1"].pid, signal.SIGTERM)
    until(lambda: jobs.last(name)[0] == "Interrupted")
    assert jobs.platform.activity(name) == {}
    jobs.wait(name)
    assert jobs.statuses(name) == [
        "Pending", "Starting", "Downloading", "Training", "Interrupted",
        "Starting", "Downloading", "Training", "Uploading", "Completed",
    ]  # fmt: skip
    assert "up at 1" in log.read_text()
    assert "starts again, as it was interrupted, from its newest checkpoint, which was " in log.read_text()
    assert (fake.job(1)["restarts"], fake.reaches(1, "COMPLETED")["exit_code"]) == (1, 0)
    first = "Slurm job 1 was preempted by another job; the failure before that: AlgorithmError: algo-1: "
    assert first in folder.agent_log.read_text()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" DUE TO TIME LIMIT", StopReason.TIME_LIMIT),
        (" DUE TO PREEMPTION", StopReason.PREEMPTED),
        (" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", StopReason.NODE_LOST),
        (" DUE TO JOB REQUEUE", StopReason.REQUEUED),
        (" DUE TO JOB NOT RUNNING", StopReason.UNKNOWN),
        ("", StopReason.USER),
    ],
)
def test_without_accounting_the_reason_is_what_slurmstepd_wrote(jobs, monkeypatch, text, reason):
    folder = jobs.job_folder(jobs.begin({"state": "RUNNING"}))
    folder.agent_log.write_text(f"slurmstepd-n: error: *** JOB 1 ON n CANCELLED AT 2026-11-23T02:29:18{text} ***\n")
    monkeypatch.setattr(commands, "find_details", lambda _: commands.JobStatus(1, "COMPLETING"))
    monkeypatch.setattr(commands, "find_record", lambda _: None)
    assert SlurmAgent().why_terminated(folder, was_signalled=True).reason is reason


@pytest.mark.parametrize(
    "text",
    [
        "slurmstepd-n: error: StepId=1.0 exceeded memory limit (429232128 > 419430400), being killed",
        "slurmstepd-n: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM Killed.",
        "srun: error: n: task 0: Out Of Memory",
    ],
)
def test_a_step_that_needed_too_much_memory_is_found_unless_slurm_has_another_reason(jobs, monkeypatch, text):
    folder = jobs.job_folder(jobs.begin({"state": "RUNNING"}))
    folder.agent_log.write_text(f"{text}\n")
    monkeypatch.setattr(commands, "find_details", lambda _: commands.JobStatus(1, "RUNNING"))
    assert SlurmAgent().why_terminated(folder, was_signalled=False).reason is StopReason.OUT_OF_MEMORY
    monkeypatch.setattr(commands, "find_details", lambda _: commands.JobStatus(1, "RUNNING", preempted=1.0))
    assert SlurmAgent().why_terminated(folder, was_signalled=False).reason is StopReason.PREEMPTED


def test_the_end_of_a_failed_host_is_not_taken_for_the_time_limit(jobs, monkeypatch):
    folder = jobs.job_folder(jobs.begin({"state": "RUNNING"}))
    late = commands.JobStatus(1, "RUNNING", end=time.time() + 30)
    monkeypatch.setattr(commands, "find_details", lambda _: late)
    assert SlurmAgent().why_terminated(folder, was_signalled=False) is None
    assert SlurmAgent().why_terminated(folder, was_signalled=True).reason is StopReason.TIME_LIMIT


def test_a_job_of_another_cluster_is_left_alone(jobs, fake):
    name = jobs.begin({"state": "PENDING", "reason": "Resources"})
    folder = jobs.job_folder(name)
    folder.write_record(ENGINE_RECORD, {"job": "1", "cluster": "elsewhere", "nodes": "node1"})
    assert "is on the Slurm cluster 'elsewhere', and this machine belongs to " in jobs.last(name)[1]
    with pytest.raises(PlatformError, match="is on the Slurm cluster 'elsewhere'"):
        SlurmAgent().signal(folder, AgentSignal.WITHDRAW)
    assert fake.job(1)["state"] == "PENDING"
    assert jobs.platform.describe(name).response["TrainingJobStatus"] == "InProgress"


def test_a_job_that_got_the_number_later_is_left_alone(jobs, fake):
    name = jobs.begin({"state": "RUNNING"})
    folder = jobs.job_folder(name)
    (folder.path / "other.sh").write_text("#!/bin/sh\n#SBATCH --job-name=other\nsleep 600\n")
    folder.write_record(ENGINE_RECORD, {"job": str(commands.submit(folder.path / "other.sh"))})
    assert "Slurm does not know job 2 any more" in jobs.platform.describe(name).response["FailureReason"]
    jobs.platform.delete(name)
    assert fake.job(2)["state"] == "RUNNING"


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_a_job_whose_request_is_damaged_is_deleted_and_cancelled(jobs, fake, state):
    name = jobs.begin({"state": state})
    (jobs.job_folder(name).path / "job.json").write_text('{"x')
    (jobs.job_folder(name).path / "hosts.json").write_text('{"types": ["slurm"], "engine": {}}')
    jobs.platform.delete(name)
    assert not jobs.exists(name)
    assert fake.job(1)["state"] == "CANCELLED"
