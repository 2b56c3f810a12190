"""What the doctor says of a Docker daemon that answers."""

import pytest

from scriptmode.doctor import machine_checks

pytestmark = pytest.mark.docker


def test_a_daemon_that_answers_is_told_with_its_version(docker_daemon):
    (check,) = machine_checks.docker()
    assert " answers, " in check.found
    assert check.found[0].isdigit()
    # Without an image of this project's the next step is to build one.
    assert (check.outcome, check.advice) in [("ok", ""), ("warning", "scriptmode image build")]


@pytest.mark.slow
def test_an_image_of_this_project_is_named(image):
    (check,) = machine_checks.docker()
    assert check.outcome == "ok"
    assert image in check.found
