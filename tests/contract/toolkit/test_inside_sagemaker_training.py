"""AWS's ``train`` starts our launcher in its own place: ``SAGEMAKER_TRAINING_MODULE=scriptmode_runtime.sagemaker_training:main``."""

import json
import signal
import subprocess
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from contract.toolkit.running import reference
from fakes.host_folders import write_host
from processes.launchers import ENTRYPOINTS, Launcher, alive, child, holding, until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200), pytest.mark.slow]

MODULE = "scriptmode_runtime.sagemaker_training:main"
SHOW = (
    "import json, os, sys; names = ('SM_HP_RATE', 'SM_FRAMEWORK_MODULE', 'TF_CONFIG', 'PATH');"
    "print('seen ' + json.dumps([sys.argv, os.getppid(), {name: os.environ.get(name) for name in names}]))"
)


class ToolkitsTrain(Launcher):
    """The toolkit's ``train``, which is to become ours."""

    def __init__(self, base, **variables):
        self.base = Path(base)
        self.log = self.base.with_name(self.base.name + ".log")
        env = {
            "PATH": "/usr/bin:/bin", "HOME": str(self.base), "LANG": "C.UTF-8", "PYTHONPATH": str(ENTRYPOINTS),
            "AWS_EC2_METADATA_DISABLED": "true", "SAGEMAKER_BASE_DIR": str(base),
            "SAGEMAKER_TRAINING_MODULE": MODULE, **variables,
        }  # fmt: skip
        with self.log.open("wb") as log:
            command = (str(reference() / "train"),)
            self.process = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, cwd=self.base)


@pytest.fixture
def train():
    with ExitStack() as started:
        yield lambda base, **kwargs: started.enter_context(closing(ToolkitsTrain(base, **kwargs)))


def host(tmp_path, script, **hyperparameters):
    return write_host(tmp_path / "algo-1", code={"train.py": script}, sagemaker_program="train.py", **hyperparameters)


def seen(launcher):
    (line,) = (line for line in launcher.output.splitlines() if line.startswith("seen "))
    return json.loads(line.removeprefix("seen "))


def test_the_script_is_a_child_of_the_process_that_was_the_toolkits(tmp_path, train):
    launcher = train(host(tmp_path, SHOW, rate=0.5))
    assert launcher.wait() == 0, launcher.output
    argv, parent, variables = seen(launcher)
    assert argv == ["train.py", "--rate", "0.5"]
    assert parent == launcher.pid
    assert variables["SM_HP_RATE"] == "0.5"
    assert variables["SM_FRAMEWORK_MODULE"] == MODULE
    assert "scriptmode: script ended with exit code 0" in launcher.output
    assert "Invoking script" not in launcher.output
    assert "Reporting training" not in launcher.output
    assert not launcher.failure


@pytest.mark.parametrize(
    ("script", "code", "shown", "refused"),
    [
        pytest.param("import sys; sys.exit(3)", 3, "algo-1, script: exit code 3", {}, id="exits 3"),
        pytest.param(child("kills_itself.py"), 137, "algo-1, script: killed by SIGKILL", {}, id="killed"),
        pytest.param(child("writes_its_own_failure.py"), 4, "my own words", {}, id="own failure file"),
        pytest.param(SHOW, 1, "asks for a distribution", {"sagemaker_torch_distributed_enabled": True}, id="refused"),
    ],
)
def test_exit_code_and_failure_file_are_ours(tmp_path, train, script, code, shown, refused):
    launcher = train(host(tmp_path, script, **refused))
    assert launcher.wait() == code, launcher.output
    assert shown in launcher.failure
    assert "Framework Error" not in launcher.failure


def test_the_toolkits_upload_of_intermediate_output_ends_and_ours_takes_its_place(tmp_path, train):
    base = host(tmp_path, SHOW, sagemaker_s3_output="s3://bucket/output")
    launcher = train(base, AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="us-east-1")
    assert launcher.wait() == 0, launcher.output
    assert "scriptmode: upload started" in launcher.output
    until(lambda: not holding(str(base)))


def test_nothing_of_the_toolkits_process_is_left_and_sigterm_leaves_the_script_the_grace_to_save(tmp_path, train):
    launcher = train(host(tmp_path, child("saves_on_sigterm.py")), SCRIPTMODE_STOP_GRACE_SECONDS="20")
    launcher.says("\ntraining\n")
    command = Path(f"/proc/{launcher.pid}/cmdline").read_bytes().split(b"\0")
    assert b"sagemaker_training" not in Path(f"/proc/{launcher.pid}/maps").read_bytes()
    assert command[1] == b"-c"
    launcher.send(signal.SIGTERM)
    assert launcher.wait() == 143
    assert (launcher.base / "model" / "checkpoint").read_text() == "whole"
    assert not alive(launcher.pid)
