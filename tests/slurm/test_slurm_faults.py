"""What ends a job on a cluster otherwise than its script does: told apart, at once, and on all nodes."""

import os
import re
import signal
import time
from pathlib import Path

import pytest
from fakes.machines import CONTROLLER
from fakes.processes import until
from fakes.promptness import soon
from slurm.configuration import OTHER_USER

from scriptmode import PlatformError, Slurm
from scriptmode_runtime import contract

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.timeout(1200)]
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


def kill_srun(jobs, name):
    os.kill(find(jobs.cluster, "node1", "srun", "--job-name=algo-2"), signal.SIGKILL)


def kill_stepd(jobs, name):
    """Kill the slurmstepd of the second host, which srun does not notice."""
    os.kill(find(jobs.cluster, "node2", f"slurmstepd: [{jobs.number(name)}."), signal.SIGKILL)


def kill_script(jobs, name):
    (number,) = re.findall(r"algo-2: .*script started, process (\d+)", "\n".join(jobs.lines(name)))
    place = (f"--jobid={jobs.number(name)}", "--nodelist=node2", "--ntasks=1", "--nodes=1")
    jobs.cluster.run("srun", "--overlap", *place, "kill", "-KILL", number)


def set_down(jobs, name):
    jobs.cluster.set_node("node2", "DOWN")


def cancel(jobs, name):
    jobs.cluster.run("scancel", jobs.number(name))


#: By the fault: status, a part of the reason, and Slurm's state. `engines` kills launchers and agents.
FAULTS = {
    "srun killed": (kill_srun, "Failed", "the agent of algo-2", "FAILED"),
    "script killed": (kill_script, "Failed", "algo-2, script: killed by SIGKILL", "FAILED"),
    "node set DOWN": (set_down, "Failed", "node", "NODE_FAIL"),
    "cancelled": (cancel, "Stopped", "", "CANCELLED"),
}


@pytest.mark.prompt
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_a_job_on_both_nodes(jobs, fault):
    cause, status, reason, state = FAULTS[fault]
    name = jobs.start(SLEEPS)
    jobs.until_up(name, "up on")
    assert jobs.allocations(name) == [f"{jobs.number(name)} RUNNING"]
    began = time.monotonic()
    cause(jobs, name)
    until(lambda: not jobs.processes())
    soon(time.monotonic() - began, GONE_SECONDS)
    description = jobs.wait(name)
    assert (description["TrainingJobStatus"], reason in description.get("FailureReason", "")) == (status, True)
    until(lambda: not jobs.allocations(name))
    until(lambda: jobs.cluster.account(jobs.number(name), "State")[0].split()[0] == state)


#: By what ends a job: its partition, Slurm's state of it, and the exit codes of its steps, which a signal ended.
ENDS = {
    "a stop": (lambda jobs, name: jobs.platform.stop(name), "batch", "CANCELLED", {"0:15"}),
    "a preemption": (lambda jobs, _: jobs.cluster.preempt(), "scavenge", "PREEMPTED", {"0:15"}),
    "SIGKILL": (kill_script, "batch", "FAILED", {"0:9", "0:15"}),
}


@pytest.mark.parametrize("end", ENDS)
def test_slurm_records_how_a_job_and_its_steps_ended(jobs, end):
    cause, partition, state, codes = ENDS[end]
    request = jobs.request(SLEEPS)
    request["ResourceConfig"]["InstanceType"] = f"slurm:{partition}"
    jobs.platform.create(request)
    name = request["TrainingJobName"]
    jobs.until_up(name, "up on")
    cause(jobs, name)
    jobs.wait(name)
    number = jobs.number(name)
    until(lambda: jobs.cluster.account(number, "State")[0].split()[0] == state)
    batch = "1:0" if state == "FAILED" else "0:15"
    until(lambda: jobs.cluster.step_codes(number).get("batch") == [batch])
    assert {code for host in ("algo-1", "algo-2") for code in jobs.cluster.step_codes(number)[host]} == codes


#: Continues from its checkpoint; the first run, which finds none, does not end by itself.
COUNTS = """
import json, os, time
path = "/opt/ml/checkpoints/" + os.environ["SM_CURRENT_HOST"]
step = int(open(path).read()) if os.path.exists(path) else 0
print("begins at", step, flush=True)
cluster = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {})
ranks = os.environ.get("OMPI_COMM_WORLD_SIZE", len(cluster.get("worker", ())))
print("of", len(json.loads(os.environ["SM_HOSTS"])), "hosts,", ranks, "together", flush=True)
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


def interruptible(jobs, tmp_path, instance_type="slurm", **fields):
    """Start a job that may be queued again, and wait until each host has a checkpoint."""
    request = jobs.request(COUNTS, max_run=3600, **fields)
    request["ResourceConfig"]["InstanceType"] = instance_type
    request["EnableManagedSpotTraining"] = True
    request["StoppingCondition"]["MaxWaitTimeInSeconds"] = 7200
    request["CheckpointConfig"] = {"S3Uri": f"file://{tmp_path}/checkpoints"}
    jobs.platform.create(request)
    name = request["TrainingJobName"]
    # The lines of MPI's ranks are in the log of the first host.
    until(lambda: sum("five steps" in line for line in jobs.lines(name)) == 2, describe=lambda: jobs.why(name))
    return name


def continues(jobs, name):
    """Let an interrupted job start again, and check that each host goes on from its checkpoint."""
    jobs.cluster.reaches(jobs.number(name), "PENDING", "RUNNING")
    if jobs.cluster.job(jobs.number(name))["JobState"] == "PENDING":
        jobs.cluster.start_now(jobs.number(name))
    began = sorted(int(line.rpartition(" ")[2]) for line in jobs.completed_lines(name) if "begins at" in line)
    assert began[:2] == [0, 0]
    assert min(began[2:]) >= 5


@thorough
@pytest.mark.parametrize(
    "instance_type", ["slurm", "slurm:scavenge"], ids=["PreemptMode=REQUEUE", "PreemptMode=CANCEL"]
)
def test_a_preempted_job_is_queued_again_and_continues_from_its_checkpoints(jobs, tmp_path, instance_type):
    name = interruptible(jobs, tmp_path, instance_type)
    urgent = jobs.cluster.preempt()
    until(lambda: "Interrupted" in jobs.statuses(name))
    jobs.cluster.reaches(urgent, "RUNNING")
    jobs.cluster.run("scancel", urgent)
    continues(jobs, name)
    statuses = jobs.statuses(name)
    assert statuses[statuses.index("Interrupted") :][-2:] == ["Uploading", "Completed"]
    assert not any("preempted" in line for line in jobs.lines(name))
    (event,) = jobs.job_folder(name).read_state().events
    assert (event.reason, "was preempted by another job" in event.message) == ("Interrupted", True)


def requeue_while_drained(cluster, number):
    cluster.set_node("node2", "DRAIN")
    cluster.run("scontrol", "requeue", number)


@pytest.mark.parametrize(
    ("switch", "fault"),
    [
        (contract.MULTI_WORKER_MIRRORED_ENABLED, requeue_while_drained),
        # The node of the job's agent.
        (contract.MPI_ENABLED, lambda cluster, _: cluster.set_node("node1", "DOWN")),
    ],
    ids=["requeued while a node is drained", "a node failed"],
)
def test_a_job_with_min_nodes_goes_on_with_the_node_that_is_left(jobs, tmp_path, switch, fault):
    jobs.platform = Slurm(data_dir=jobs.data_dir, stop_grace=5, min_nodes=1)
    name = interruptible(jobs, tmp_path, hyperparameters={switch: True})
    assert sum("of 2 hosts, 2 together" in line for line in jobs.lines(name)) == 2
    fault(jobs.cluster, jobs.number(name))
    until(lambda: "Interrupted" in jobs.statuses(name))
    continues(jobs, name)
    assert sum("of 1 hosts, 1 together" in line for line in jobs.lines(name)) == 1
    assert "algo-1: scriptmode: this run has 1 of the 2 hosts that the job asked for" in jobs.lines(name)
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"algo-1", "algo-2"}
    assert jobs.platform.describe(name).response["ResourceConfig"]["InstanceCount"] == 2


def test_a_preempted_job_that_may_not_be_queued_again_fails_with_the_setting_that_allows_it(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_up(name, "up on")
    jobs.cluster.preempt()
    description = jobs.wait(name)
    assert "preempted" in description["FailureReason"]
    assert "use_spot_instances=True" in description["FailureReason"]


def reserve(cluster):
    reservation = ("start=now", "duration=60", f"users={OTHER_USER}", "nodes=node2", "flags=ignore_jobs")
    cluster.run("scontrol", "create", "reservation", "reservationname=theirs", *reservation)


#: Why a job of all nodes waits: how it comes about, and Slurm's reason.
WAITS = {
    "busy": (
        lambda slurm: slurm.reaches(slurm.submit("sleep 600", "--nodes=2", "--exclusive"), "RUNNING"),
        "Resources",
    ),
    "drained": (lambda cluster: cluster.set_node("node2", "DRAIN"), "DOWN, DRAINED or reserved"),
    "down": (lambda cluster: cluster.set_node("node2", "DOWN"), "DOWN, DRAINED or reserved"),
    "reserved": (reserve, "May be reserved for other job"),
}


@pytest.mark.parametrize("why", WAITS)
def test_a_waiting_job_tells_why_and_is_stopped_without_having_run(jobs, why):
    cause, reason = WAITS[why]
    cause(jobs.cluster)
    name = jobs.start(SLEEPS)

    def message():
        return jobs.platform.describe(name).response["SecondaryStatusTransitions"][-1]["StatusMessage"]

    until(lambda: message().startswith("Waiting in Slurm's queue") and reason in message(), describe=message)
    with pytest.raises(PlatformError, match="3 hosts need as many nodes, and partition batch has 2"):
        jobs.start(SLEEPS, hosts=3)
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped", jobs.why(name)
    assert jobs.lines(name) == []
    until(lambda: jobs.cluster.account(jobs.number(name), "State")[0].startswith("CANCELLED"))
    jobs.cluster.run("scontrol", "delete", "reservation=theirs", check=False)


def test_a_job_lives_on_while_the_controller_restarts(jobs):
    name = jobs.start("import time; print('up on', flush=True); time.sleep(4); print('done')")
    jobs.until_up(name, "up on")
    jobs.cluster.restart_slurmctld()
    lines = jobs.completed_lines(name)
    assert sum("done" in line for line in lines) == 2


#: By what is away: how it ends, and how it comes back.
AWAY = {
    "slurmctld": (signal.SIGTERM, lambda cluster: cluster.start_slurmctld()),
    "munged": (signal.SIGKILL, lambda cluster: cluster.start_munged()),
}


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("program", AWAY)
def test_a_job_that_ends_while_slurm_does_not_answer_has_its_true_end(jobs, program, code):
    number, start = AWAY[program]
    name = jobs.start(f"import sys, time; print('up on', flush=True); time.sleep(3); sys.exit({code})")
    jobs.until_up(name, "up on")
    jobs.cluster.kill(CONTROLLER, program, number)
    try:
        description = jobs.wait(name)
    finally:
        start(jobs.cluster)
    reason = re.sub("algo-.", "algo-N", description.get("FailureReason", "").partition("\n")[0])
    assert (description["TrainingJobStatus"], reason) == (
        ("Failed", "AlgorithmError: algo-N, script: exit code 3") if code else ("Completed", "")
    )
    until(lambda: jobs.cluster.account(jobs.number(name), "State") == ["FAILED" if code else "COMPLETED"])


def test_a_host_that_needs_more_memory_than_the_job_asked_for_is_told_with_the_option(jobs):
    jobs.platform = Slurm(data_dir=jobs.data_dir, mem="400M")
    name = jobs.start("import time; print('up on', flush=True); held = bytearray(1 << 30); time.sleep(600)")
    reason = jobs.wait(name)["FailureReason"]
    number = jobs.number(name)
    asked = f"Slurm job {number} needed more memory than it asked for; ask for more: Slurm(mem=...)"
    assert reason == f"ClientError: {asked}"


@pytest.mark.parametrize("retries", [0, 1])
def test_a_job_whose_batch_step_was_killed_is_submitted_again_if_it_has_retries(jobs, tmp_path, retries):
    more = {"RetryStrategy": {"MaximumRetryAttempts": retries}} if retries else {}
    more["CheckpointConfig"] = {"S3Uri": f"file://{tmp_path}/checkpoints"}
    name = jobs.start(COUNTS, more=more)
    jobs.until_up(name, "five steps")
    number = jobs.number(name)
    jobs.kill(name)
    if not retries:
        assert f"Slurm job {number} is FAILED, signal 9" in jobs.wait(name)["FailureReason"]
        return
    # Reading the job submits it.
    until(lambda: jobs.statuses(name) and jobs.number(name) != number, describe=lambda: jobs.why(name))
    continues(jobs, name)


@thorough
def test_a_suspended_job_is_told_so_and_goes_on(jobs):
    name = jobs.start("import time; print('up on', flush=True); time.sleep(5); print('done')")
    jobs.until_up(name, "up on")
    jobs.cluster.run("scontrol", "suspend", jobs.number(name))

    def message():
        return jobs.platform.describe(name).response["SecondaryStatusTransitions"][-1]["StatusMessage"]

    told = f"Training in progress; Slurm job {jobs.number(name)} is suspended"
    until(lambda: message() == told, describe=message)
    jobs.cluster.run("scontrol", "resume", jobs.number(name))
    assert sum("done" in line for line in jobs.completed_lines(name)) == 2


@thorough
def test_a_killed_slurmstepd_is_noticed_though_srun_does_not(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_up(name, "up on")
    kill_stepd(jobs, name)
    assert "the agent of algo-2" in jobs.wait(name)["FailureReason"]
    until(lambda: not jobs.processes())


@thorough
def test_a_lost_slurmd_ends_the_job_when_slurm_gives_the_node_up(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_up(name, "up on")
    jobs.cluster.kill("node2", "slurmd")
    try:
        assert "a node of Slurm job" in jobs.wait(name)["FailureReason"]
    finally:
        jobs.cluster.start_slurmd("node2")


@thorough
def test_a_job_goes_on_after_a_node_lost_its_power(jobs, tmp_path):
    name = interruptible(jobs, tmp_path)
    jobs.cluster.lose("node2")
    try:
        until(lambda: "Interrupted" in jobs.statuses(name) or jobs.ended(name))
    finally:
        jobs.cluster.restore("node2")
    continues(jobs, name)
