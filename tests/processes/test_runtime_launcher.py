"""``train`` on one host, with real children."""

import ast
import os
import signal
import subprocess
import sys

import pytest
from fakes.aws_server import aws_server
from fakes.host_folders import write_host
from processes.launchers import ENTRYPOINTS, child, host


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
            {"sagemaker_program": "noshebang"}, "its first line must name its interpreter", id="no interpreter named"
        ),
    ],
)
def test_a_job_that_cannot_start_has_one_message_in_the_failure_file(tmp_path, launch, hyperparameters, said):
    launcher = launch(write_host(tmp_path / "algo-1", code={"train.py": "", "noshebang": "echo"}, **hyperparameters))
    assert launcher.wait() == 1
    assert said in launcher.failure
    assert "Traceback" not in launcher.failure + launcher.output


def test_a_source_that_is_not_on_s3_is_named(tmp_path, launch):
    uri = "s3://sources/absent.tar.gz"
    base = write_host(tmp_path / "algo-1", sagemaker_program="train.py", sagemaker_submit_directory=uri)
    with aws_server("sources") as endpoint:
        launcher = launch(base, AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_ENDPOINT_URL=endpoint)
        assert launcher.wait() == 1
    assert launcher.failure.startswith("algo-1, source: exit code 1\n")
    assert f"{uri} cannot be downloaded: An error occurred (404)" in launcher.failure
    assert "Traceback" not in launcher.failure


@pytest.mark.parametrize("name", ["SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
def test_a_signal_is_forwarded_and_shows_in_exit_code_and_failure_file(tmp_path, launch, name):
    launcher = launch(host(tmp_path, child("sleeps.py")))
    launcher.says("asleep")
    launcher.send(signal.Signals[name])
    assert launcher.wait() == 128 + signal.Signals[name]
    assert name in launcher.failure
    assert ("KeyboardInterrupt" in launcher.output) == (name == "SIGINT")


@pytest.mark.parametrize("before", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGINT)])
def test_a_second_sigint_does_not_wait_for_a_deaf_script(tmp_path, launch, before):
    says = "for it in (2, 10, 15): signal.signal(it, lambda it, _: print(f'signal {it}.', flush=True))"
    launcher = launch(host(tmp_path, f"import signal, time\n{says}\nprint('deaf', flush=True)\ntime.sleep(600)"))
    launcher.says("deaf")
    launcher.send(before[0])
    launcher.says(f"signal {before[0]}.")
    for number in (*before[1:], signal.SIGUSR1):
        launcher.send(number)
    launcher.says("signal 10.")
    launcher.send(signal.SIGINT)
    assert launcher.wait() == 128 + before[0]


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 8, 18)])
def test_an_interpreter_that_is_too_old_is_named_in_one_line(tmp_path, version):
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.version_info = {version}\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ENTRYPOINTS)))}
    ran = subprocess.run(
        [sys.executable, "-m", "scriptmode_runtime"], env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert f"scriptmode needs Python 3.9 or later, and {sys.executable} is Python {version[0]}.{version[1]}" in line


def test_the_module_that_refuses_it_is_one_that_it_can_read():
    text = (ENTRYPOINTS / "scriptmode_runtime" / "__init__.py").read_text()
    tree = ast.parse(text, feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, (ast.ImportFrom, ast.JoinedStr, ast.AnnAssign))]
