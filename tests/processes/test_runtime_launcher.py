"""``train`` on one host, with real children."""

import ast
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

import pytest
from fakes.host_folders import HOSTILE_NAMES, pack, write_files, write_host
from fakes.promptness import soon
from processes.launchers import ENTRYPOINTS, alive, child, holding, until


def host(tmp_path, script, **hyperparameters):
    hyperparameters.setdefault("sagemaker_program", "train.py")
    return write_host(tmp_path / "algo-1", code={hyperparameters["sagemaker_program"]: script}, **hyperparameters)


@pytest.mark.parametrize(
    ("script", "code", "shown"),
    [
        pytest.param("raises.py", 1, ["exit code 1", "ValueError: the loss is not a number"], id="raises"),
        pytest.param("exits.py", 3, ["exit code 3", "leaving"], id="exits 3"),
        pytest.param("exits.py", 255, ["exit code 255", "leaving"], id="exits 255"),
        pytest.param("kills_itself.py", 137, ["killed by SIGKILL", "memory ran out"], id="killed"),
    ],
)
def test_the_exit_code_is_the_scripts_and_the_failure_file_shows_its_end(tmp_path, launch, script, code, shown):
    launcher = launch(host(tmp_path, child(script), status=code))
    assert launcher.wait() == code
    assert launcher.failure.startswith(f"algo-1, script: {shown[0]}\n")
    assert shown[1] in launcher.failure
    assert len(launcher.failure) <= 1024


def test_a_good_end_is_exit_code_0_and_no_failure_file(tmp_path, launch):
    launcher = launch(host(tmp_path, "print('done')"))
    assert launcher.wait() == 0
    assert not launcher.failure
    assert "done\n" in launcher.output


def test_how_a_process_of_the_host_ended_is_logged_once(tmp_path, launch):
    launcher = launch(host(tmp_path, "raise SystemExit(3)"))
    assert launcher.wait() == 3
    assert [line for line in launcher.output.splitlines() if "exit code" in line] == [
        "scriptmode: script ended with exit code 3"
    ]


def test_a_failure_file_of_an_earlier_run_is_forgotten(tmp_path, launch):
    base = host(tmp_path, "pass")
    (base / "output").mkdir()
    (base / "output" / "failure").write_text("old")
    launcher = launch(base)
    assert launcher.wait() == 0
    assert not launcher.failure


def test_the_scripts_own_failure_file_is_kept(tmp_path, launch):
    launcher = launch(host(tmp_path, child("writes_its_own_failure.py")))
    assert launcher.wait() == 4
    assert launcher.failure == "my own words"


@pytest.mark.parametrize("value", HOSTILE_NAMES)
def test_a_value_arrives_as_one_argument_whatever_is_in_it(tmp_path, launch, value):
    script = "import os, sys, json; print(json.dumps([sys.argv[1:], os.environ['SM_HP_KEY']]))"
    launcher = launch(host(tmp_path, script, key=value))
    assert launcher.wait() == 0
    line = next(line for line in launcher.output.splitlines() if line.startswith("[["))
    assert eval(line) == [["--key", value], value]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_source_folder_program_and_files_may_have_any_name(tmp_path, launch, name):
    program = f"{name}.py"
    source = write_files(tmp_path / name, {program: "import here, sys; print(here.X)", "here.py": "X = 'found'"})
    archive = pack(tmp_path / f"{name}.tar.gz", source)
    base = write_host(tmp_path / "algo 1", sagemaker_program=program, sagemaker_submit_directory=f"file://{archive}")
    launcher = launch(base)
    assert launcher.wait() == 0, launcher.output
    assert "found" in launcher.output


@pytest.mark.parametrize(
    ("program", "files"),
    [
        pytest.param(
            "run.sh",
            {"run.sh": 'echo "it ran with $1 $2"; python -c "import sys; print(sys.executable)"'},
            id="shell script",
        ),
        pytest.param("tool", {"tool": '#!/bin/sh\necho "it ran with $1 $2"\n'}, id="executable"),
        pytest.param("train.py", {"train.py": "import sys; print('it ran with', *sys.argv[1:])"}, id="script"),
        pytest.param(
            "pkg/train.py", {"pkg/train.py": "import sys; print('it ran with', *sys.argv[1:])"}, id="script in a folder"
        ),
    ],
)
def test_every_kind_of_program_runs(tmp_path, launch, program, files):
    launcher = launch(write_host(tmp_path / "algo-1", code=files, sagemaker_program=program, epochs=2))
    assert launcher.wait() == 0, launcher.output
    assert "it ran with --epochs 2\n" in launcher.output


@pytest.mark.parametrize(
    ("hyperparameters", "said"),
    [
        pytest.param(
            {"sagemaker_program": "absent.py"}, "entry point 'absent.py' is not in the source", id="no such program"
        ),
        pytest.param({"sagemaker_program": "../../etc/passwd"}, "lies outside the source", id="program outside"),
        pytest.param({}, "sagemaker_program is missing", id="no program"),
        pytest.param(
            {"sagemaker_program": "train.py", "sagemaker_submit_directory": "file:///absent.tar.gz"},
            "/absent.tar.gz",
            id="no such source",
        ),
        pytest.param(
            {
                "sagemaker_program": "train.py",
                "sagemaker_mpi_enabled": True,
                "sagemaker_parameter_server_enabled": True,
            },
            "two distributions at once",
            id="two strategies",
        ),
        pytest.param(
            {
                "sagemaker_program": "train.py",
                "sagemaker_mpi_enabled": True,
                "sagemaker_mpi_num_of_processes_per_host": 0,
            },
            "sagemaker_mpi_num_of_processes_per_host is 0",
            id="no ranks",
        ),
        pytest.param(
            {"sagemaker_program": "train.py", "sagemaker_distributed_dataparallel_enabled": True},
            "distribution that this runtime does not have",
            id="unknown strategy",
        ),
        pytest.param(
            {"sagemaker_program": "noshebang"}, "its first line names its interpreter", id="no interpreter named"
        ),
    ],
)
def test_a_job_that_cannot_start_has_one_message_in_the_failure_file(tmp_path, launch, hyperparameters, said):
    launcher = launch(write_host(tmp_path / "algo-1", code={"train.py": "", "noshebang": "echo"}, **hyperparameters))
    assert launcher.wait() == 1
    assert said in launcher.failure
    assert "Traceback" not in launcher.failure + launcher.output


def test_a_broken_file_of_the_platform_is_named(tmp_path, launch):
    base = host(tmp_path, "pass")
    (base / "input" / "config" / "hyperparameters.json").write_text("{broken")
    launcher = launch(base)
    assert launcher.wait() == 1
    assert "hyperparameters.json cannot be read as JSON" in launcher.failure


def test_sigterm_reaches_the_script_which_has_the_grace_to_save(tmp_path, launch):
    launcher = launch(host(tmp_path, child("saves_on_sigterm.py")), SCRIPTMODE_STOP_GRACE_SECONDS="20")
    launcher.says("training")
    launcher.send(signal.SIGTERM)
    assert launcher.wait() == 143
    assert (launcher.base / "model" / "checkpoint").read_text() == "whole"
    assert "saved" in launcher.output


@pytest.mark.prompt
def test_a_script_that_ignores_sigterm_is_killed_after_the_grace(tmp_path, launch):
    launcher = launch(host(tmp_path, child("ignores_sigterm.py")), SCRIPTMODE_STOP_GRACE_SECONDS="1")
    launcher.says("deaf")
    began = time.monotonic()
    launcher.send(signal.SIGTERM)
    assert launcher.wait() == 143
    took = time.monotonic() - began
    assert took >= 1
    soon(took, 2)
    assert not holding(str(launcher.base))


def test_sigint_is_forwarded_and_shows_in_the_exit_code(tmp_path, launch):
    launcher = launch(host(tmp_path, child("sleeps.py")))
    launcher.says("asleep")
    launcher.send(signal.SIGINT)
    assert launcher.wait() == 130
    assert "KeyboardInterrupt" in launcher.output


def test_the_script_dies_with_a_launcher_that_is_killed(tmp_path, launch):
    launcher = launch(host(tmp_path, child("sleeps.py")))
    launcher.says("asleep")
    launcher.process.kill()
    until(lambda: not holding(str(launcher.base)))


def test_a_daemon_that_holds_the_output_open_does_not_hold_up_the_end(tmp_path, launch):
    launcher = launch(host(tmp_path, child("leaves_a_daemon.py")))
    assert launcher.wait() == 0
    assert "the last line\n" in launcher.output
    assert not holding(str(launcher.base))


@pytest.mark.skipif(not shutil.which("unshare") or os.geteuid(), reason="a process 1 needs a namespace of its own")
def test_as_process_1_it_forwards_and_reaps(tmp_path):
    base = host(tmp_path, child("leaves_a_daemon.py"))
    command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-m", "scriptmode_runtime"]
    env = {**os.environ, "SAGEMAKER_BASE_DIR": str(base), "PYTHONPATH": str(ENTRYPOINTS)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done
    assert done.stdout == "the last line\n"


def test_no_value_of_a_hyperparameter_is_in_the_launchers_own_lines(tmp_path, launch):
    launcher = launch(host(tmp_path, "import sys; sys.exit(2)", api_token="hunter2"))
    assert launcher.wait() == 2
    assert "hunter2" not in launcher.output
    assert all(line.startswith("scriptmode: ") for line in launcher.output.splitlines())


def test_requirements_go_into_an_environment_of_the_hosts_own(tmp_path, launch):
    package = write_files(
        tmp_path / "package",
        {
            "setup.py": "from setuptools import setup; setup(name='scriptmode-probe', version='1', py_modules=['scriptmode_probe'])",
            "scriptmode_probe.py": "HERE = __file__",
        },
    )
    wheel = _wheel(tmp_path, package)
    code = {
        "train.py": "import scriptmode_probe, sys; print(scriptmode_probe.HERE, sys.path)",
        "requirements.txt": f"{wheel}\n",
    }
    cluster = {"isolate_requirements": True}
    launcher = launch(write_host(tmp_path / "algo-1", code=code, cluster=cluster, sagemaker_program="train.py"))
    assert launcher.wait(100) == 0, launcher.output
    assert f"{launcher.base}/overlay/" in launcher.output
    assert sysconfig.get_path("purelib") in launcher.output
    assert subprocess.run(
        [sys.executable, "-c", "import scriptmode_probe"], check=False, capture_output=True
    ).returncode


def test_requirements_that_cannot_be_met_show_the_end_of_pips_output(tmp_path, launch):
    code = {"train.py": "print('never')", "requirements.txt": "/absent/package.whl\n"}
    launcher = launch(
        write_host(tmp_path / "algo-1", code=code, cluster={"isolate_requirements": True}, sagemaker_program="train.py")
    )
    assert launcher.wait(100) == 1
    assert launcher.failure.startswith("algo-1, requirements: exit code 1\n")
    assert "/absent/package.whl" in launcher.failure
    assert "never" not in launcher.output


def _wheel(tmp_path, package):
    """Make a wheel by hand: no build tool, no network."""
    path = Path(tmp_path) / "scriptmode_probe-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(package / "scriptmode_probe.py", "scriptmode_probe.py")
        info = "scriptmode_probe-1.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: scriptmode-probe\nVersion: 1\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


def test_a_second_sigint_does_not_wait_for_a_deaf_script(tmp_path, launch):
    script = child("ignores_sigterm.py").replace("SIGTERM", "SIGINT")
    script = script.replace("signal.SIG_IGN", "lambda *_: print('interrupted', flush=True)")
    launcher = launch(host(tmp_path, script))
    launcher.says("deaf")
    launcher.send(signal.SIGINT)
    until(lambda: launcher.output.count("interrupted") == 1)
    assert alive(launcher.pid)
    launcher.send(signal.SIGINT)
    assert launcher.wait() == 130


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 8, 18)])
def test_an_interpreter_that_is_too_old_is_named_in_one_line(tmp_path, version):
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.version_info = {version}\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ENTRYPOINTS)))}
    ran = subprocess.run(
        [sys.executable, "-m", "scriptmode_runtime"], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert f"scriptmode needs Python 3.9 or later, and {sys.executable} is Python {version[0]}.{version[1]}" in line


def test_the_module_that_refuses_it_is_one_that_it_can_read():
    text = (ENTRYPOINTS / "scriptmode_runtime" / "__init__.py").read_text()
    tree = ast.parse(text, feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, (ast.ImportFrom, ast.JoinedStr, ast.AnnAssign))]
