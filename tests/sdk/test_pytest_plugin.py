"""The pytest plugin in a test run of a user's own: what it costs, and what works in a script that runs in process."""

import os
import subprocess
import sys

import pytest

TRAIN = """
import os
from pathlib import Path

def save(text):
    Path(os.environ["SM_MODEL_DIR"], "m").write_text(text)

if __name__ == "__main__":
    answer = 42
    breakpoint()
    save("a")
    if answer == 0:
        save("never")
"""
USED = """
def test_the_model_is_saved(entry_point, tmp_path):
    run = entry_point("train.py", inputs={"train": "data"})
    assert run.exit_code == 0, run.log
    assert tmp_path in run.model.parents
    assert (run.model / "m").read_text() == "a"
"""
UNUSED = """
import os, sys

def test_nothing_is_imported():
    assert [name for name in sys.modules if name.partition(".")[0] in ("scriptmode", "scriptmode_runtime")] == []
"""


@pytest.fixture
def user(tmp_path):
    """Return a function that runs pytest on a test in a project, from another directory."""
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    (project / "data" / "part-0").touch()
    (project / "train.py").write_text(TRAIN)

    def user(test, *options, keys="", program=("pytest",)):
        (project / "test_train.py").write_text(test)
        own = ("-q", "-W", "error", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "runs"))
        command = [sys.executable, "-m", *program, *own, *options, "project"]
        # A debugger of the user's own would be called in place of pytest's.
        env = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "PYTHONBREAKPOINT"))}
        return subprocess.run(
            command, input=keys, capture_output=True, text=True, check=False, cwd=tmp_path, env=env, timeout=600
        )

    return user


def test_a_test_run_that_does_not_use_it_imports_one_module(user):
    done = user(UNUSED)
    assert done.returncode == 0, done.stdout
    done = user(UNUSED, "--fixtures", "-v")
    assert "entry_point -- " in done.stdout
    assert "Return ``scriptmode.testing.entry_point``" in done.stdout


def test_a_debugger_stops_in_the_script(user):
    done = user(USED, keys="p answer * 1000\nw\nc\n")
    assert done.returncode == 0, done.stdout
    assert "(Pdb) 42000" in done.stdout
    assert "project/train.py(" in done.stdout


def test_coverage_measures_the_script(user, tmp_path):
    # A debugger takes the place of coverage's tracing.
    (tmp_path / "project" / "train.py").write_text(TRAIN.replace("    breakpoint()\n", ""))
    done = user(USED, program=("coverage", "run", "--source", "project", "-m", "pytest"))
    assert done.returncode == 0, done.stdout
    report = subprocess.run(
        [sys.executable, "-m", "coverage", "report", "-m"], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout
    (line,) = [line.split() for line in report.splitlines() if line.startswith("project/train.py")]
    # All but the branch that is not taken.
    assert line[1:3] == ["9", "1"]
    assert line[-1] == "12"
