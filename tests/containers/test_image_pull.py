"""An image that is not on this machine comes from its registry before its job trains."""

import pytest
from containers.conftest import docker
from fakes.container_jobs import ContainerJobs

from scriptmode.containers import docker_client, push_image

pytestmark = pytest.mark.docker


@pytest.fixture
def jobs(tmp_path, base_image):
    jobs = ContainerJobs(tmp_path, base_image)
    yield jobs
    jobs.close()


def test_an_image_is_pulled_from_its_registry_and_the_status_says_so(jobs, registry, base_image):
    name = push_image(f"{registry}/team/hosts:1", base_image)
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
