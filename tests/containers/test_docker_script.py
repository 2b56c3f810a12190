"""The doctor sees that a Docker daemon answers, and the images of this project."""

import pytest

from scriptmode.doctor import _machine_checks as machine_checks
from scriptmode.errors import ContainerError


@pytest.mark.docker
def test_a_daemon_that_answers_is_told_with_its_version(docker_daemon):
    try:
        found = machine_checks.docker()
    except ContainerError as error:
        # Without an image of this project's.
        found = error.message
    assert " answers, " in found
    assert found[0].isdigit()


@pytest.mark.docker
@pytest.mark.slow
def test_an_image_of_this_project_is_named(image):
    assert image in machine_checks.docker()
