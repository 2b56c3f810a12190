"""What a plan makes of interpreters that answer otherwise than the hosts' runtime does."""

import sys

import pytest

from scriptmode import Estimator, PlatformError
from scriptmode.platforms.local import LocalPlatform


@pytest.fixture
def planned(code, tmp_path):
    """Plan with an interpreter that is a shell script."""

    def plan(script):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        platform = LocalPlatform(data_dir=tmp_path / "data", python=python)
        return Estimator(
            entry_point="train.py", source_dir=code, instance_type="local_process", platform=platform
        ).plan()

    return plan


def test_an_interpreter_that_speaks_before_it_answers_is_understood(planned):
    plan = planned(f'echo loading modules\nexec {sys.executable} "$@"')
    assert [host.roles for host in plan.hosts.values()] == ["script"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", "exit code 0, no answer"),
        ("echo 7", "exit code 0, no answer"),
        ('[ "$1" = -c ] || { echo no space left >&2; exit 3; }', "no space left"),
    ],
    ids=["silent", "a number", "an error"],
)
def test_an_interpreter_that_does_not_answer_is_reported_with_its_output(planned, script, said):
    with pytest.raises(
        PlatformError, match=f"python: {said}; see its output: echo .* scriptmode_runtime.preview"
    ) as told:
        planned(script)
    assert "install" not in str(told.value)


def test_an_interpreter_without_the_runtime_suggests_the_installation(planned):
    lacking = "echo \"ModuleNotFoundError: No module named 'scriptmode_runtime'\" >&2; exit 1"
    with pytest.raises(PlatformError, match="No module named 'scriptmode_runtime'; install scriptmode for it: .*pip"):
        planned(f'[ "$1" = -c ] || {{ {lacking}; }}')
