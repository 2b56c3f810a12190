"""What ends a job on a cluster otherwise than its script does: told apart, at once, and on all nodes."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from fakes.processes import until
from fakes.promptness import soon

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.timeout(600)]
thorough = pytest.mark.thorough

SLEEPS = """
import os, time
print("up on", os.uname().nodename, flush=True)
time.sleep(600)
"""
#: Seconds in which every step of a failed job has ended.
GONE_SECONDS = 3


def find(cluster, node, *words):
    """The first process of a node whose command line has all the words."""

    def command_line(pid):
        try:
            return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        except OSError:
            return ""

    return min(pid for pid in cluster.processes(node) if all(word in command_line(pid) for word in words))


def kill(node, *words):
    """A fault: the first process of a node whose command line has all the words is killed."""
    return lambda jobs, _name: os.kill(find(jobs.cluster, node, *words), signal.SIGKILL)


def kill_stepd(jobs, name):
    """Kill the slurmstepd of the second host, which srun does not notice."""
    os.kill(find(jobs.cluster, "node2", f"slurmstepd: [{jobs.number(name)}."), signal.SIGKILL)


def set_down(jobs, name):
    jobs.cluster.set_node("node2", "DOWN")


def cancel(jobs, name):
    jobs.cluster.run("scancel", jobs.number(name))


def stop(jobs, name):
    jobs.platform.stop(name)


#: Status, a part of the reason, and Slurm's state, by the fault.
FAULTS = {
    "train killed": (kill("node2", "scriptmode_runtime"), "Failed", "SIGKILL", "FAILED"),
    "script killed": (kill("node1", "train.py"), "Failed", "SIGKILL", "FAILED"),
    "agent of a host killed": (kill("node2", "host_agent"), "Failed", "the agent of algo-2", "FAILED"),
    "srun killed": (kill("node1", "srun", "--job-name=algo-2"), "Failed", "the agent of algo-2", "FAILED"),
    "agent of the job killed": (kill("node1", "--foreground"), "Failed", "the job's agent", "FAILED"),
    "node set DOWN": (set_down, "Failed", "node", "NODE_FAIL"),
    "cancelled": (cancel, "Stopped", "", "CANCELLED"),
    "stopped by a user": (stop, "Stopped", "", "FAILED"),
}


#: The others in `make test-all`.
EACH_RUN = ("train killed", "agent of a host killed", "agent of the job killed", "node set DOWN", "cancelled")


@pytest.mark.prompt
@pytest.mark.parametrize("fault", [pytest.param(name, marks=[] if name in EACH_RUN else thorough) for name in FAULTS])
def test_a_fault_ends_a_job_on_both_nodes(jobs, fault):
    cause, status, reason, state = FAULTS[fault]
    name = jobs.start(SLEEPS)
    jobs.until_lines(name, "up on")
    began = time.monotonic()
    cause(jobs, name)
    until(lambda: not jobs.processes())
    soon(time.monotonic() - began, GONE_SECONDS)
    description = jobs.wait(name)
    assert (description["TrainingJobStatus"], reason in description.get("FailureReason", "")) == (status, True)
    until(lambda: jobs.cluster.account(jobs.number(name), "State")[0].split()[0] == state)


#: Continues from its checkpoint; the first run, which finds none, does not end by itself.
COUNTS = """
import os, time
path = "/opt/ml/checkpoints/" + os.environ["SM_CURRENT_HOST"]
step = int(open(path).read()) if os.path.exists(path) else 0
print("begins at", step, flush=True)
until = step + 3 if step else 10**9
while step < until:
    step += 1
    with open(path + ".new", "w") as file:
        file.write(str(step))
    os.replace(path + ".new", path)
    if step == 5:
        print("five steps", flush=True)
    time.sleep(0.05)
"""


def interruptible(jobs, tmp_path, **fields):
    """Start a job that may be queued again, and wait until each host has a checkpoint."""
    request = jobs.request(COUNTS, max_run=3600, **fields)
    request["EnableManagedSpotTraining"] = True
    request["StoppingCondition"]["MaxWaitTimeInSeconds"] = 7200
    request["CheckpointConfig"] = {"S3Uri": f"file://{tmp_path}/checkpoints"}
    jobs.platform.create(request)
    name = request["TrainingJobName"]
    jobs.until_lines(name, "five steps")
    return name


@thorough
def test_a_preempted_job_is_queued_again_and_continues_from_its_checkpoints(jobs, tmp_path):
    name = interruptible(jobs, tmp_path)
    urgent = jobs.cluster.preempt()
    until(lambda: "Interrupted" in jobs.statuses(name), 60)
    jobs.cluster.reaches(urgent, "RUNNING", seconds=60)
    jobs.cluster.run("scancel", urgent)
    jobs.cluster.reaches(jobs.number(name), "PENDING", "RUNNING")
    jobs.cluster.start_now(jobs.number(name))
    lines = jobs.completed(name)
    began = [int(line.rpartition(" ")[2]) for line in lines if "begins at" in line]
    assert sorted(began)[:2] == [0, 0]
    assert min(sorted(began)[2:]) >= 5
    statuses = jobs.statuses(name)
    assert statuses[statuses.index("Interrupted") :][-2:] == ["Uploading", "Completed"]


def test_a_preempted_job_that_may_not_be_queued_again_fails_with_the_setting_that_allows_it(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_lines(name, "up on")
    jobs.cluster.preempt()
    description = jobs.wait(name)
    assert "preempted" in description["FailureReason"]
    assert "use_spot_instances=True" in description["FailureReason"]


def test_a_waiting_job_tells_why_and_is_stopped_without_having_run(jobs):
    blocker = jobs.cluster.submit("sleep 600", "--nodes=2", "--exclusive")
    jobs.cluster.reaches(blocker, "RUNNING")
    name = jobs.start(SLEEPS)
    description = until(lambda: _pending(jobs, name), 30)
    assert description["SecondaryStatusTransitions"][-1]["StatusMessage"].startswith("Waiting in Slurm's queue")
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped", jobs.why(name)
    assert jobs.lines(name) == []
    until(lambda: jobs.cluster.account(jobs.number(name), "State")[0].startswith("CANCELLED"))


def _pending(jobs, name):
    description = jobs.platform.describe(name)
    return description if description["SecondaryStatus"] == "Pending" else None


def test_a_job_lives_on_while_the_controller_restarts(jobs):
    name = jobs.start("import time; print('up on', flush=True); time.sleep(4); print('done')")
    jobs.until_lines(name, "up on")
    jobs.cluster.restart_slurmctld()
    lines = jobs.completed(name)
    assert sum("done" in line for line in lines) == 2


@thorough
def test_a_killed_slurmstepd_is_noticed_though_srun_does_not(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_lines(name, "up on")
    kill_stepd(jobs, name)
    assert "the agent of algo-2" in jobs.wait(name, 300)["FailureReason"]
    until(lambda: not jobs.processes(), 10)


@thorough
def test_a_lost_slurmd_ends_the_job_when_slurm_gives_the_node_up(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_lines(name, "up on")
    jobs.cluster.kill("node2", "slurmd")
    try:
        assert "a node of Slurm job" in jobs.wait(name, 300)["FailureReason"]
    finally:
        jobs.cluster.start_slurmd("node2")


@thorough
def test_a_job_goes_on_after_a_node_lost_its_power(jobs, tmp_path):
    name = interruptible(jobs, tmp_path)
    jobs.cluster.lose("node2")
    try:
        until(lambda: "Interrupted" in jobs.statuses(name) or jobs.ended(name), 180)
    finally:
        jobs.cluster.restore("node2")
    jobs.cluster.reaches(jobs.number(name), "PENDING", "RUNNING")
    if jobs.cluster.job(jobs.number(name))["JobState"] == "PENDING":
        jobs.cluster.start_now(jobs.number(name))
    began = [int(line.rpartition(" ")[2]) for line in jobs.completed(name) if "begins at" in line]
    assert sorted(began)[:2] == [0, 0]
    assert min(sorted(began)[2:]) >= 5


@thorough
def test_ten_jobs_run_at_once_on_two_nodes(jobs):
    names = [jobs.start(SLEEPS, max_run=600) for _ in range(10)]
    for name in names:
        jobs.until_lines(name, "up on", seconds=300)
    ports = {}
    for name in names:
        folder = jobs.job_folder(name)
        for host in ("algo-1", "algo-2"):
            cluster = json.loads((folder.host(host) / "input/config/scriptmode.json").read_text())
            ports[name, host] = set(cluster["hosts"][host]["ports"].values())
    for host in ("algo-1", "algo-2"):
        taken = [port for name in names for port in ports[name, host]]
        assert len(taken) == len(set(taken))
    for name in names:
        jobs.platform.stop(name)
    assert {jobs.wait(name)["TrainingJobStatus"] for name in names} == {"Stopped"}
