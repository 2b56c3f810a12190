"""A container that is paused or cut off, and a job beside another of its name.

`engines` kills containers; `faults.matrix` has these faults under every strategy, with hosts that are namespaces.
"""

import os
import re
import signal
import time
from pathlib import Path

import pytest
from containers.conftest import docker
from fakes.container_jobs import ContainerJobs
from fakes.local_jobs import SAVES
from fakes.processes import until
from fakes.promptness import soon

from scriptmode_runtime.contract import DEFAULT_PORTS

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1200)]

#: Seconds of silence after which a host counts as lost, and from then to the end of the job.
HOST_TIMEOUT, BOUND = 4.0, 10.0
MIRRORED = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
TRAINS = """
    import time
    open("/opt/ml/model/before the fault", "w").close()
    print("up", flush=True)
    time.sleep(600)
"""
#: Docker's words, and the reason's first line as a regular expression.
FAULTS = {
    "paused": (("pause",), "AlgorithmError: {}: its launcher was lost.*"),
    "cut off": (("network", "disconnect", "--force"), "InternalServerError: {}: disconnected from .*"),
}


def joined(pid):
    """Count the hosts that are connected to a host's launcher, as the kernel sees the network of a process there."""
    tables = [Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:] for table in ("tcp", "tcp6")]
    here, established = f":{DEFAULT_PORTS['peers']:04X}", "01"
    rows = [row.split() for table in tables for row in table]
    return sum(row[1].endswith(here) and row[3] == established for row in rows)


@pytest.mark.prompt
@pytest.mark.parametrize("host", ["algo-1", "algo-2"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_container_fails_the_job_and_leaves_nothing(tmp_path, runtime_image, fault, host):
    words, reason = FAULTS[fault]
    jobs = ContainerJobs(tmp_path, runtime_image, stop_grace=10.0)
    more = {"Environment": {"SCRIPTMODE_HOST_TIMEOUT_SECONDS": f"{HOST_TIMEOUT:g}"}}
    name = jobs.start(TRAINS, hosts=3, hyperparameters=MIRRORED, max_run=600, more=more)
    jobs.until_up(name)
    first = docker("inspect", "--format", "{{.State.Pid}}", jobs.container(name, "algo-1")).stdout.strip()
    until(lambda: joined(first) == 2)
    network = [jobs.network(name)] if words[0] == "network" else []
    # The kernel does not freeze every busy container at the first attempt.
    until(lambda: docker(*words, *network, jobs.container(name, host)).returncode == 0)
    begun = time.monotonic()
    description = jobs.wait(name)
    soon(time.monotonic() - begun, HOST_TIMEOUT + BOUND)
    assert description["TrainingJobStatus"] == "Failed"
    assert re.match(reason.format(host), description["FailureReason"]), description["FailureReason"]
    until(lambda: not jobs.remains(name))
    assert len(list(jobs.job_folder(name).hosts.glob("*/model/before the fault"))) == 3
    jobs.close()


@pytest.mark.parametrize("host", ["algo-1", "algo-2"])
def test_the_cause_is_the_killed_container_though_docker_tells_of_its_end_late(tmp_path, runtime_image, host):
    jobs = ContainerJobs(tmp_path, runtime_image, stop_grace=10.0)
    name = jobs.start(TRAINS, hosts=2, hyperparameters=MIRRORED, max_run=600)
    jobs.until_up(name)
    other = jobs.container(name, "algo-1" if host == "algo-2" else "algo-2")
    client = jobs.job_folder(name).read_processes()[host].pid
    os.kill(client, signal.SIGSTOP)
    jobs.kill_host(name, host)
    until(lambda: other not in {line.split()[-1] for line in jobs.left()})
    time.sleep(0.2)
    os.kill(client, signal.SIGCONT)
    reason = jobs.wait(name)["FailureReason"]
    assert reason.startswith(f"AlgorithmError: {host}: the host's launcher was killed by SIGKILL"), reason
    jobs.close()


@pytest.fixture
def jobs(tmp_path, runtime_image, closed_after):
    return closed_after(ContainerJobs(tmp_path, runtime_image, stop_grace=20.0))


def test_two_jobs_of_one_name_run_side_by_side(jobs, tmp_path):
    (tmp_path / "other").mkdir()
    other = ContainerJobs(tmp_path / "other", jobs.image)
    assert jobs.start(SAVES) == other.start(SAVES) == "job-1"
    jobs.until_up("job-1")
    other.until_up("job-1")
    jobs.platform.stop("job-1")
    assert jobs.wait("job-1")["TrainingJobStatus"] == "Stopped"
    assert len(other.left()) == 2
    other.platform.stop("job-1")
    assert other.model(other.wait("job-1")) == {"algo-1": b"in time"}
    other.close()
