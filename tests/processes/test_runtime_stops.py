"""Stops and ends at awkward moments."""

import json
import os
import signal
import subprocess
import sys

import pytest
from fakes.host_folders import write_host
from processes.driver import LAUNCHER
from processes.launchers import ENTRYPOINTS, until

# A preparing run whose process leaves the pipe open, so that its end takes a while; then the script.
DRIVER = f"""{LAUNCHER}
import sys

def spec(name, program):
    return ProcessSpec(name, (sys.executable, "-c", program), dict(), "/")

leaves = "import os, time; print('prepared', flush=True); os.fork() or time.sleep(30)"
with launcher(lambda spec, status, output: Failure("algo-1", spec.name, 1, "failed")) as it:
    cause = it.run(LaunchPlan(main=spec("requirements", leaves)), last=False)
    cause = cause or it.run(LaunchPlan(main=spec("script", "print('the script ran')")))
print(cause.message if cause else "well")
"""


def test_a_stop_between_preparing_and_the_script_is_not_lost(tmp_path):
    log = tmp_path / "log"
    env = {**os.environ, "PYTHONPATH": str(ENTRYPOINTS)}
    with log.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-c", DRIVER], env=env, stdout=file, stderr=subprocess.STDOUT)
    until(lambda: "requirements ended with exit code 0" in log.read_text())
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    assert "algo-1: stopped by SIGTERM" in log.read_text()
    assert "the script ran" not in log.read_text()


def test_a_signal_without_a_name_is_reported_by_its_number(tmp_path, launch):
    number = int(signal.SIGRTMIN) + 6
    script = f"import os; os.kill(os.getpid(), {number})"
    launcher = launch(write_host(tmp_path / "algo-1", code={"train.py": script}, sagemaker_program="train.py"))
    assert launcher.wait() == 128 + number
    assert launcher.failure == f"algo-1, script: killed by signal {number}"


def test_train_off_a_training_host_writes_nothing(tmp_path, launch):
    launcher = launch(tmp_path / "nothing")
    assert launcher.wait() == 1
    assert "this is not a training host" in launcher.output
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    ("hyperparameters", "code", "said"),
    [
        ({}, {}, "sagemaker_program is missing"),
        ({"sagemaker_program": "trian.py"}, {"train.py": ""}, "'trian.py' is not in the source"),
    ],
    ids=["no program", "another program"],
)
def test_a_plan_is_refused_where_the_run_would_be(tmp_path, hyperparameters, code, said):
    base = write_host(tmp_path / "algo-1", code=code, **hyperparameters)
    env = {**os.environ, "SAGEMAKER_BASE_DIR": str(base), "PYTHONPATH": str(ENTRYPOINTS)}
    command = [sys.executable, "-m", "scriptmode_runtime", "--plan"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr


def test_a_source_that_is_not_fetched_yet_can_be_planned(tmp_path):
    base = write_host(tmp_path / "algo-1", sagemaker_program="train.py", sagemaker_submit_directory="s3://b/s.tar.gz")
    env = {**os.environ, "SAGEMAKER_BASE_DIR": str(base), "PYTHONPATH": str(ENTRYPOINTS)}
    command = [sys.executable, "-m", "scriptmode_runtime", "--plan"]
    assert json.loads(subprocess.check_output(command, env=env))["main"]["argv"][-1] == "train.py"
