"""What a host says it has, asked by a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def examined(tmp_path):
    """Ask an interpreter that has nothing beside it, with a PATH of these programs alone."""

    def ask(*programs, **variables):
        for name in programs:
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)
        (tmp_path / "python").symlink_to(sys.executable)
        done = subprocess.run(
            [tmp_path / "python", "-m", "scriptmode_runtime.host.probe"],
            check=True, capture_output=True, text=True, timeout=50, cwd=tmp_path,
            env={"PATH": str(tmp_path), "PYTHONPATH": str(ROOT / "entrypoints"), "HOME": str(tmp_path), **variables},
        )  # fmt: skip
        return json.loads(done.stdout)

    return ask


def test_programs_that_a_job_would_start_are_named_with_their_paths(examined, tmp_path):
    found = examined("mpirun", "prted", "ssh", "sshd", "ssh-keygen", "c++")
    assert found["mpirun"] == {"path": str(tmp_path / "mpirun"), "major": 5}
    assert found["ssh"] == {name: str(tmp_path / program) for name, program in
                            (("client", "ssh"), ("server", "sshd"), ("keygen", "ssh-keygen"))}  # fmt: skip
    assert (found["reader"], found["compiler"]) == ("", str(tmp_path / "c++"))
    assert found["folder"] == str(ROOT / "entrypoints" / "scriptmode_runtime")


def test_missing_programs_are_reported_as_missing(examined):
    found = examined(CXX="no-such-compiler")
    assert (found["mpirun"], found["ssh"], found["reader"], found["compiler"]) == (None, None, "", "")
