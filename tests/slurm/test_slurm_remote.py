"""Jobs on nodes that do not see the jobs' directory: the agent is a process of the login node."""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from fakes.local_jobs import COUNTS, LocalJobs
from fakes.processes import processes_naming, until
from slurm.slurm_jobs import SlurmJobs

from scriptmode import Estimator, Slurm
from scriptmode.errors import DataError, SpecError
from scriptmode.testing import EngineSuite

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def folder():
    """A directory of this machine's ``/tmp`` that the nodes do not see."""
    made = Path(tempfile.mkdtemp(prefix="scriptmode-unshared-"))
    yield made
    # The agents of jobs that have ended still remove files.
    until(lambda: not processes_naming(str(made)))
    shutil.rmtree(made)


@pytest.fixture
def jobs(idle_cluster, slurm_environment, monkeypatch, folder):
    monkeypatch.setenv("SCRIPTMODE_SLURM", "shared_files=false")
    jobs = SlurmJobs(folder, idle_cluster)
    yield jobs
    jobs.close()
    until(lambda: not left_on_nodes(idle_cluster), 60, lambda: f"{left_on_nodes(idle_cluster)} are left")


def left_on_nodes(cluster):
    """What the nodes have of jobs in their own ``/tmp``."""
    listed = [cluster.run(*cluster.machines.enter(node), "ls", "/tmp").stdout.split() for node in cluster.nodes]
    return [
        name for names in listed for name in names if name.startswith("scriptmode-") and name != cluster.folder.name
    ]


@pytest.mark.usefixtures("idle_cluster", "slurm_environment")
class TestRemoteSlurm(EngineSuite):
    """Two nodes."""

    instance_type = "slurm"

    @pytest.fixture(autouse=True)
    def unshared(self, monkeypatch, folder):
        monkeypatch.setenv("SCRIPTMODE_SLURM", "shared_files=false")
        monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(folder))


def remove_what_was_killed(jobs):
    """Start the job that removes the directories of programs that Slurm, or the loss of their node, killed."""
    jobs.completed(jobs.start("print('next')"))


PLACE = """
import os, socket, time
from pathlib import Path
print("on", os.uname().nodename, sorted(name for name in os.environ if name.startswith("SLURM") or "CONNECTION" in name))
Path(os.environ["SM_MODEL_DIR"], os.environ["SM_CURRENT_HOST"]).write_text("model")
for host in ("algo-1", "algo-2"):
    socket.gethostbyname(host)
"""
WAITS = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, lambda *_: (Path("/opt/ml/model/saved").write_text("at SIGTERM"), sys.exit(0)))
print("up", flush=True)
time.sleep(600)
"""


def test_hosts_are_nodes_that_find_each_other(jobs):
    assert not jobs.cluster.run(*jobs.cluster.machines.enter("node1"), "ls", str(jobs.data_dir), check=False).stdout
    name = jobs.start(PLACE)
    lines = jobs.completed_lines(name)
    assert sorted(line for line in lines if ": on " in line) == ["algo-1: on node1 []", "algo-2: on node2 []"]
    assert set(jobs.model(jobs.platform.describe(name).response)) == {"algo-1", "algo-2"}
    until(lambda: jobs.cluster.account(jobs.number(name), "State") == ["COMPLETED"])


def test_a_job_that_waits_in_the_queue_says_so_and_is_cancelled_when_it_is_stopped(jobs):
    blocks = jobs.cluster.submit("sleep 600", "--nodes=2", "--exclusive")
    jobs.cluster.reaches(blocks, "RUNNING")
    name = jobs.start(WAITS)
    until(lambda: "Slurm's queue" in message(jobs, name))
    until(lambda: "number 1 in partition" in message(jobs, name))
    number = jobs.number(name)
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"
    until(lambda: jobs.cluster.job(number)["JobState"] == "CANCELLED")


def message(jobs, name):
    return jobs.platform.describe(name).response["SecondaryStatusTransitions"][-1]["StatusMessage"]


def test_a_stopped_script_saves_its_model(jobs):
    name = jobs.start(WAITS, hosts=1)
    jobs.until_up(name)
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"
    assert set(jobs.model(jobs.platform.describe(name).response)) == {"saved"}


def test_a_cancelled_batch_job_stops_the_training_job(jobs):
    name = jobs.start(WAITS)
    jobs.until_up(name)
    jobs.cluster.run("scancel", jobs.number(name))
    ended = jobs.wait(name)
    assert ended["TrainingJobStatus"] == "Stopped"
    assert "was cancelled" in message(jobs, name)


def test_a_lost_node_is_told(jobs):
    name = jobs.start(WAITS)
    jobs.until_up(name)
    number, began = jobs.number(name), time.monotonic()
    jobs.cluster.lose("node2")
    try:
        reason = jobs.wait(name)["FailureReason"]
        seconds = time.monotonic() - began
    finally:
        jobs.cluster.restore("node2")
    assert f"a node of Slurm job {number} failed" in reason
    assert seconds < 200
    remove_what_was_killed(jobs)


def test_nothing_is_left_of_a_job_whose_agent_was_killed(jobs):
    name = jobs.start(WAITS)
    jobs.until_up(name)
    number = jobs.number(name)
    LocalJobs.kill(jobs, name)
    assert "the job's agent" in jobs.wait(name)["FailureReason"]
    until(lambda: jobs.cluster.job(number)["JobState"] in ("CANCELLED", "COMPLETED", "FAILED"))
    remove_what_was_killed(jobs)


def test_what_needs_shared_files_is_refused(jobs):
    with pytest.raises(SpecError, match="min_nodes is 1, and shared_files is False"):
        Slurm(min_nodes=1)
    groups = [
        {"InstanceGroupName": part, "InstanceType": f"slurm:{part}", "InstanceCount": 1} for part in ("batch", "spare")
    ]
    with pytest.raises(DataError, match="the hosts are in the partitions batch, spare, and shared_files is False"):
        jobs.start(WAITS, more={"ResourceConfig": {"InstanceGroups": groups, "VolumeSizeInGB": 1}})


def test_a_job_whose_agent_was_killed_goes_on_from_its_checkpoint(jobs):
    more = {
        "CheckpointConfig": {"S3Uri": f"file://{jobs.folder}/checkpoints", "LocalPath": "/opt/ml/checkpoints"},
        "RetryStrategy": {"MaximumRetryAttempts": 1},
    }
    name = jobs.start(COUNTS, hosts=1, more=more)
    jobs.until_line(name, "step 3")
    until(lambda: list((jobs.folder / "checkpoints").glob("*")))
    first = jobs.number(name)
    LocalJobs.kill(jobs, name)
    lines = [line.partition(": ")[2] for line in jobs.completed_lines(name)]
    assert sorted({line for line in lines if line.startswith("step ")}) == [f"step {number}" for number in range(10)]
    assert any(line.startswith("from ") and line != "from 0" for line in lines)
    assert "Interrupted" in jobs.statuses(name)
    assert jobs.number(name) != first
    remove_what_was_killed(jobs)


def test_a_command_on_a_host_is_refused_with_the_step_that_runs_it(jobs):
    name = jobs.start(WAITS, hosts=1)
    jobs.until_up(name)
    with pytest.raises(DataError, match=f"srun --overlap --jobid={jobs.number(name)}"):
        jobs.platform.execute(name, ["true"])
    jobs.platform.stop(name)
    jobs.wait(name)


def test_doctor_tests_the_connection_and_the_plan_has_no_secret(jobs):
    command = [sys.executable, "-m", "scriptmode", "doctor", "--platform", "slurm"]
    shown = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/").stdout
    assert f"can connect to {jobs.cluster.machines.network}." in shown
    (jobs.folder / "train.py").write_text("pass")
    script = Estimator(entry_point=f"{jobs.folder}/train.py", instance_type="slurm", instance_count=2).plan().script
    assert "export SCRIPTMODE_CONNECTION=******" in script
    assert "--no-requeue" in script


def test_the_notice_of_the_time_limit_reaches_the_script(jobs, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_SLURM", "shared_files=false,time=1")
    name = jobs.start(WAITS, hosts=1)
    jobs.until_up(name)
    ended = jobs.wait(name)
    assert (ended["TrainingJobStatus"], ended["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded"), ended[
        "FailureReason"
    ]
    assert "reached its time limit, time=1" in message(jobs, name)
    assert set(jobs.model(ended)) == {"saved"}
