"""What is said of real ranks that ended in failure, under real ``mpirun``: the same as of a program without MPI."""

import json
import sys

import pytest
from fakes.host_folders import write_job
from runtime.endings import programs
from runtime.test_endings import EXPECTED

from scriptmode._core.spec.failure_text import summarize_error
from scriptmode_local._store.state import failure_from_json

pytestmark = [pytest.mark.mpi, pytest.mark.slow]
#: An interpreter beside Open MPI 5, and Debian's, beside which stands Open MPI 4.
PYTHONS = {"Open MPI 5": sys.executable, "Open MPI 4": "/usr/bin/python3"}
MPI = {"sagemaker_program": "train.py", "sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2}


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS)
@pytest.mark.parametrize("name", programs.MPI)
def test_the_first_lines_are_the_cause_in_the_rank(tmp_path, launch, name, python):
    base = write_job(tmp_path / "job", 1, {"train.py": programs.MPI[name] + "\n"}, **MPI)["algo-1"]
    launcher = launch(base, python=python)
    assert launcher.wait() != 0
    failure = failure_from_json(json.loads((base / "output" / "failure.json").read_text()))
    summary = summarize_error(failure)
    assert f"{failure.cause}\n{summary}" == EXPECTED[f"MPI: {name}"].rstrip("\n"), launcher.output
    # The reason of the service has them, too.
    assert [line for line in summary.splitlines() if line.strip() not in launcher.failure] == []
