"""What is wrong with a job on containers is told as soon as it can be known, with what to do about it."""

import pytest
from fakes.container_jobs import ContainerJobs

from scriptmode import Estimator
from scriptmode.containers import TENSORFLOW_VERSIONS, default_image
from scriptmode.errors import ContainerError, RequestError, SpecError
from scriptmode.platforms.local import LocalPlatform

pytestmark = [pytest.mark.docker, pytest.mark.slow]

#: No server listens at the first port.
UNREACHABLE = "127.0.0.1:1/none:7"


@pytest.fixture
def jobs(tmp_path, base_image):
    jobs = ContainerJobs(tmp_path, base_image)
    yield jobs
    jobs.close()


def nothing_was_begun(jobs):
    folder = jobs.data_dir / "jobs"
    return not folder.exists() or list(folder.iterdir()) == []


def test_an_image_of_this_project_that_is_not_built_is_told_with_the_command(jobs):
    with pytest.raises(ContainerError) as raised:
        jobs.start("pass", image="scriptmode:2.15.1-000000000000")
    assert str(raised.value) == (
        "there is no image scriptmode:2.15.1-000000000000 on this machine; build it: "
        "scriptmode image build --tensorflow 2.15.1, or give image_uri"
    )
    assert nothing_was_begun(jobs)


def test_an_unknown_image_fails_the_job(jobs):
    description = jobs.run("pass", image=UNREACHABLE)
    assert description["TrainingJobStatus"] == "Failed"
    assert f"image {UNREACHABLE} cannot be pulled: " in description["FailureReason"]
    assert jobs.left() == []


def test_an_image_without_a_train_command_says_what_it_lacks(jobs, base_image):
    description = jobs.run("pass", hosts=2)
    assert description["TrainingJobStatus"] == "Failed"
    reason = description["FailureReason"]
    assert reason.startswith("ClientError: algo-")
    assert reason.endswith("the image has no `train`; use one that has, or give container_entry_point")
    assert jobs.left() == []


def test_gpus_without_nvidias_toolkit_say_what_to_install(jobs):
    request = jobs.request("pass")
    request["ResourceConfig"]["InstanceType"] = "local_gpu"
    jobs.platform.create(request)
    description = jobs.wait("job-1")
    assert description["TrainingJobStatus"] == "Failed"
    reason = description["FailureReason"]
    assert reason.endswith("install the NVIDIA Container Toolkit, or use instance_type 'local'")
    assert jobs.left() == []


def test_a_docker_daemon_that_is_not_there_is_told_before_anything_is_done(jobs, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(ContainerError, match=r"no Docker daemon: unix:///.*none.sock does not exist; install"):
        jobs.start("pass")
    monkeypatch.undo()
    assert nothing_was_begun(jobs)


def test_processes_and_containers_are_not_mixed_in_a_job(jobs):
    groups = [
        {"InstanceGroupName": kind, "InstanceType": kind.replace("-", "_"), "InstanceCount": 1}
        for kind in ("local", "local-process")
    ]
    with pytest.raises(RequestError, match="'local_process' cannot be combined with others; use one kind"):
        jobs.start("pass", more={"ResourceConfig": {"InstanceGroups": groups, "VolumeSizeInGB": 1}})
    assert nothing_was_begun(jobs)


def test_limits_that_docker_would_refuse_are_told_by_the_platform(tmp_path):
    with pytest.raises(SpecError, match=r"container_limits\['memory'\] is '1k'; a container needs 6m"):
        LocalPlatform(data_dir=tmp_path, container_limits={"memory": "1k"})


def test_more_cpus_than_the_machine_has_fail_the_job(tmp_path, base_image):
    jobs = ContainerJobs(tmp_path, base_image, container_limits={"cpus": 4096})
    reason = jobs.run("pass")["FailureReason"]
    assert reason.startswith("ClientError: algo-1: the container cannot be started: Range of CPUs is from 0.01 to ")
    jobs.close()


def test_a_tensorflow_without_an_image_is_told_with_those_that_have_one(tmp_path):
    (tmp_path / "train.py").touch()
    platform = LocalPlatform(data_dir=tmp_path / "data")
    made = Estimator(
        entry_point=str(tmp_path / "train.py"), instance_type="local", framework_version="2.12", platform=platform
    )
    with pytest.raises(SpecError, match="'2.12', only with 2.15.1 and 2.21.0"):
        made.fit()


@pytest.mark.parametrize("version", TENSORFLOW_VERSIONS)
def test_a_script_gets_the_image_of_its_tensorflow(version, tmp_path):
    (tmp_path / "train.py").touch()
    platform = LocalPlatform(data_dir=tmp_path / "data")
    made = Estimator(
        entry_point=str(tmp_path / "train.py"), instance_type="local", framework_version=version, platform=platform
    )
    assert made.request()["AlgorithmSpecification"]["TrainingImage"] == default_image(version)
