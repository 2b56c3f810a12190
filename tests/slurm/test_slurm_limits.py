"""What a job on a cluster runs into from outside: its time limit, a full shared disk, a client that is gone."""

import signal
import subprocess
import sys

import pytest
from fakes.processes import until
from faults.disks import fill, small_disk
from slurm import cluster as clusters
from slurm.slurm_jobs import SlurmJobs

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SLEEPS = "import time; print('up', flush=True); time.sleep(600)"
#: Waits for a file, then ends.
WAITS = """
import os, time
print("up", flush=True)
while not os.path.exists({path!r}):
    time.sleep(0.1)
print("done")
"""
FILLS = """
import os
with open("/opt/ml/model/" + os.environ["SM_CURRENT_HOST"], "wb", buffering=0) as file:
    while True:
        file.write(b"x" * 65536)
"""
#: A client that waits for its job.
CLIENT = """
import sys
from scriptmode import Estimator, Slurm
data, source = sys.argv[1:]
Estimator(
    entry_point="train.py", source_dir=source, instance_type="slurm", instance_count=2, platform=Slurm(data_dir=data)
).fit(job_name="left-alone")
"""


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A small disk that the nodes see: it is mounted before they start."""
    if reason := clusters.why_not():
        pytest.skip(reason)
    with small_disk(tmp_path_factory.mktemp("small") / "disk", "tmpfs", "32M") as folder:
        yield folder


@pytest.fixture(scope="module")
def cluster(disk, tmp_path_factory):
    running = clusters.Cluster(tmp_path_factory.getbasetemp())
    yield running
    running.close()


@pytest.fixture
def jobs_on_the_disk(idle_cluster, slurm_environment, disk, tmp_path):
    """Jobs whose data directory is on the disk, and their sources are not."""
    jobs = SlurmJobs(disk / tmp_path.name, idle_cluster)
    (jobs.folder).mkdir()
    jobs.source = SlurmJobs(tmp_path, idle_cluster).source
    yield jobs
    (disk / "filler").unlink(missing_ok=True)
    jobs.close()


def test_a_job_that_ends_while_the_shared_disk_is_full_has_an_end_and_slurm_knows_it(jobs_on_the_disk, disk, tmp_path):
    jobs = jobs_on_the_disk
    name = jobs.start(WAITS.format(path=str(tmp_path / "go")))
    jobs.until_lines(name, "up")
    fill(disk)
    (tmp_path / "go").touch()
    until(lambda: not jobs.processes(), 120)
    description = jobs.wait(name)
    reason = description.get("FailureReason")
    assert description["TrainingJobStatus"] == ("Failed" if reason else "Completed")
    assert reason is None or "is full" in reason
    state = "FAILED" if reason else "COMPLETED"
    until(lambda: jobs.cluster.account(jobs.number(name), "State") == [state])


def test_a_script_that_fills_the_shared_disk_fails_for_it(jobs_on_the_disk):
    # One host: another one that starts later would fail at its own first file.
    name = jobs_on_the_disk.start(FILLS, hosts=1)
    description = jobs_on_the_disk.wait(name)
    assert description["TrainingJobStatus"] == "Failed"
    assert "The disk is full: use a larger volume, or fewer files" in description["FailureReason"]
    assert "No space left on device" in description["FailureReason"]


def test_a_job_goes_on_without_its_client(jobs, tmp_path):
    source = tmp_path / "code"
    source.mkdir()
    (source / "train.py").write_text(WAITS.format(path=str(tmp_path / "go")))
    words = (CLIENT, str(jobs.data_dir), str(source))
    client = subprocess.Popen(
        (sys.executable, "-c", *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        until(jobs.platform.list, 120)
        jobs.until_lines("left-alone", "up")
    finally:
        client.send_signal(signal.SIGKILL)
        client.wait(60)
    (tmp_path / "go").touch()
    assert sum("done" in line for line in jobs.completed("left-alone")) == 2
    until(lambda: jobs.cluster.account(jobs.number("left-alone"), "State") == ["COMPLETED"])


@pytest.mark.thorough
def test_the_time_limit_of_slurm_stops_a_job(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_lines(name, "up")
    jobs.cluster.exceed_time_limit(jobs.number(name))
    description = jobs.wait(name)
    assert (description["TrainingJobStatus"], description["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    assert "reached its time limit" in description["SecondaryStatusTransitions"][-1]["StatusMessage"]
    until(lambda: jobs.cluster.account(jobs.number(name), "State") == ["TIMEOUT"])
