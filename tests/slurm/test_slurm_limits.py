"""What a job on a cluster runs into from outside: a full shared disk."""

import pytest
from fakes.processes import until
from faults.disks import fill, small_disk
from slurm import cluster as clusters
from slurm.slurm_jobs import SlurmJobs

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

#: Waits for a file, then ends.
WAITS = """
import os, time
print("up", flush=True)
while not os.path.exists({path!r}):
    time.sleep(0.1)
print("done")
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
    jobs.until_up(name, "up")
    fill(disk)
    (tmp_path / "go").touch()
    until(lambda: not jobs.processes())
    description = jobs.wait(name)
    reason = description.get("FailureReason")
    assert description["TrainingJobStatus"] == ("Failed" if reason else "Completed")
    assert reason is None or "is full" in reason
    state = "FAILED" if reason else "COMPLETED"
    until(lambda: jobs.cluster.account(jobs.number(name), "State") == [state])
