"""What is wrong with a job on containers is told as soon as it can be known; an image comes from its registry."""

import pytest
from containers.conftest import docker, pushed
from fakes.container_jobs import ContainerJobs

from scriptmode.containers import _docker_client as docker_client
from scriptmode.errors import ContainerError

pytestmark = [pytest.mark.docker, pytest.mark.slow]

#: No server listens at the first port.
UNREACHABLE = "127.0.0.1:1/none:7"


@pytest.fixture
def jobs(tmp_path, base_image, closed_after):
    return closed_after(ContainerJobs(tmp_path, base_image))


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
    with pytest.raises(
        ContainerError, match=r"daemon at unix:///.*none.sock cannot be used: .*No such file.*; install"
    ):
        jobs.start("pass")
    monkeypatch.undo()
    assert nothing_was_begun(jobs)


def test_more_cpus_than_the_machine_has_fail_the_job(tmp_path, base_image):
    jobs = ContainerJobs(tmp_path, base_image, container_limits={"cpus": 4096})
    reason = jobs.run("pass")["FailureReason"]
    assert reason.startswith("ClientError: algo-1: the container cannot be started: Range of CPUs is from 0.01 to ")
    jobs.close()


def test_an_image_is_pulled_from_its_registry_and_the_status_says_so(jobs, registry, base_image):
    name = pushed(base_image, f"{registry}/team/hosts:1")
    assert not docker_client.has_image(name)
    request = jobs.request("pass", image=name)
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["echo", "from the registry"]
    jobs.platform.create(request)
    description = jobs.wait("job-1")
    assert [stay["Status"] for stay in description["SecondaryStatusTransitions"]] == [
        "Starting", "Downloading", "DownloadingTrainingImage", "Training", "Uploading", "Completed",
    ]  # fmt: skip
    assert "algo-1: from the registry" in jobs.lines("job-1")
    docker("image", "rm", name)
