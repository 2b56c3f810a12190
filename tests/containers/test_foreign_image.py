"""An image of AWS's toolkit and TensorFlow adapter, with nothing of this project in it, as hosts of a job."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from containers.conftest import ROOT, docker, packed
from containers.estimator_jobs import PROGRAMS, ContainerJob
from fakes.local_jobs import unpacked
from processes.launchers import until

from scriptmode import MPI
from scriptmode.containers import docker_client, package_indexes

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2400)]

RECIPE = {
    "Dockerfile": Path(__file__).parent / "aws_image" / "Dockerfile",
    "difference.sh": ROOT / "container" / "difference.sh",
    "settings/use.sh": ROOT / "container" / "settings" / "use.sh",
}


@pytest.fixture(scope="session")
def aws_image(base_image):
    """AWS's image, built once for what it is made from; that takes some minutes."""
    files = {name: path.read_bytes() for name, path in RECIPE.items()}
    name = f"scriptmode-test-aws:{hashlib.sha256(repr(files).encode()).hexdigest()[:12]}"
    if not docker_client.has_image(name):
        settings = {f"settings/{name}": content for name, content in package_indexes.index_settings(os.environ).items()}
        arguments = {**package_indexes.proxy_variables(os.environ), "BASE": base_image}
        docker_client.build(docker_client.Build(packed({**files, **settings}), arguments), name, on_line=print)
    return name


@pytest.fixture(scope="module")
def jobs(aws_image, tmp_path_factory):
    """One job on one host, one that fails, and one of two hosts with a rank each, all started."""
    data = tmp_path_factory.mktemp("input")
    (data / "numbers.csv").write_text("1,2,3\n")
    data_dir = tmp_path_factory.mktemp("data")

    def start(**fields):
        return ContainerJob(
            data_dir,
            entry_point="of_anyone.py",
            source_dir=str(PROGRAMS),
            image_uri=aws_image,
            inputs={"train": data.as_uri()},
            **fields,
        )

    started = {
        "mpi": start(distribution=MPI(processes_per_host=1)),
        "single": start(instance_count=1, hyperparameters={"learning-rate": 0.1}),
        "fails": start(instance_count=1, hyperparameters={"ends-with": 7}),
    }
    yield started
    for job in started.values():
        job.close()


def ended(job):
    """Wait for a job; give how it ended."""
    return until(lambda: job.job.ended and job.job.status, 150, lambda: f"{job.job.describe()}\n{job.log()[-3000:]}")


def test_the_image_has_nothing_of_this_project(aws_image):
    looked_for = "ls -d /opt/scriptmode; command -v train; pip list --format freeze"
    said = docker("run", "--rm", "--network", "none", aws_image, "sh", "-c", looked_for).stdout
    assert "/opt/aws/bin/train" in said
    assert "scriptmode:" not in said
    assert "cannot access '/opt/scriptmode'" in said
    packages = dict(line.split("==") for line in said.splitlines() if "==" in line)
    assert {name: packages.get(name) for name in ("sagemaker_training", "sagemaker_tensorflow_training")} == {
        "sagemaker_training": "4.8.3",
        "sagemaker_tensorflow_training": "20.5.0",
    }
    assert not [name for name in packages if "scriptmode" in name or "horovod" in name]


def test_a_script_trains_on_one_host_of_it(jobs):
    job = jobs["single"]
    assert ended(job) == "Completed", job.job.failure_reason
    assert "Reporting training SUCCESS" in job.log()
    (seen,) = job.records().values()
    assert seen["host"] == "algo-1"
    assert seen["arguments"] == ["--learning-rate", "0.1"]
    assert seen["channel"] == ["numbers.csv"]
    assert json.loads(seen["variables"]["SM_HPS"]) == {"learning-rate": 0.1}
    assert not seen["ours"]
    assert unpacked(job.delivered()) == {"weights script": b"trained"}
    assert job.left() == []


def test_a_script_that_fails_in_it_fails_the_job_with_what_awss_launcher_says(jobs):
    job = jobs["fails"]
    assert ended(job) == "Failed"
    reason = job.job.failure_reason
    assert reason.startswith("AlgorithmError: ExecuteUserScriptError:\nExitCode 7\n")
    assert "of_anyone.py --ends-with 7" in reason
    assert 'ErrorMessage ""' not in reason
    assert job.left() == []


def test_two_hosts_of_it_train_by_awss_own_mpi_launch(jobs):
    job = jobs["mpi"]
    assert ended(job) == "Completed", job.job.failure_reason
    assert set(job.records()) == {"algo-1 0", "algo-2 1"}
    assert {seen["host"] for seen in job.records().values()} == {"algo-1", "algo-2"}
    assert job.log().count("Reporting training SUCCESS") == 2
    assert set(unpacked(job.delivered())) == {"weights 0", "weights 1"}
    assert job.left() == []
