"""`.ci/docker` and the doctor see that a daemon answers; the script leaves one alone that it did not start."""

import os
import subprocess

import pytest
from containers.conftest import ROOT, docker

from scriptmode.doctor import machine_checks
from scriptmode.errors import ContainerError


def script(*words, **environment):
    return subprocess.run(
        (ROOT / ".ci" / "docker", *words), check=False, capture_output=True, text=True, timeout=600,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_a_daemon_that_is_named_and_not_there_is_one_line(tmp_path):
    done = script("start", DOCKER_HOST=f"unix://{tmp_path}/s")
    assert done.returncode == 1
    assert done.stderr == (
        f"setup: no Docker daemon answers at DOCKER_HOST=unix://{tmp_path}/s; start it, or unset DOCKER_HOST\n"
    )


def test_words_that_mean_nothing_are_answered_with_those_that_do():
    assert script("restart").stderr == "setup: usage: .ci/docker start | stop | run COMMAND ...\n"


@pytest.mark.docker
def test_a_command_runs_and_the_daemon_goes_on(docker_daemon):
    ran = script("run", "sh", "-c", "docker version >/dev/null && exit 3")
    assert (ran.returncode, ran.stderr) == (3, "")
    assert docker("version").returncode == 0


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
