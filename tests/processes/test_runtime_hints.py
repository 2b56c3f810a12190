"""Real failures of real programs, and the advice in the failure file."""

import json
import os
import socket
import subprocess
import sys

import pytest
from fakes.host_folders import write_job
from processes.launchers import ENTRYPOINTS


def test_a_signal_that_killed_pip_is_named(tmp_path, launch):
    (tmp_path / "first").mkdir()
    kills = "import os\nif b\"run_module('pip'\" in open('/proc/self/cmdline', 'rb').read(): os.kill(os.getpid(), 9)"
    (tmp_path / "first" / "sitecustomize.py").write_text(kills)
    code = {"train.py": "", "requirements.txt": "extra"}
    base = write_job(tmp_path / "job", 1, code, sagemaker_program="train.py")["algo-1"]
    launcher = launch(base, also_on_path=str(tmp_path / "first"))
    assert launcher.wait(600) == 137
    assert launcher.failure.startswith("algo-1, requirements: killed by SIGKILL\n")


@pytest.mark.tf
@pytest.mark.slow
def test_the_port_of_a_server_that_is_taken_is_named_at_once():
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        config = {"cluster": {"ps": [f"127.0.0.1:{port}"]}, "task": {"type": "ps", "index": 0}}
        env = {**os.environ, "PYTHONPATH": str(ENTRYPOINTS), "TF_CONFIG": json.dumps(config), "CURRENT_HOST": "algo-1"}
        command = [sys.executable, "-m", "scriptmode_runtime.tensorflow.server"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1
    assert f"algo-1: port {port} of ps 0" in done.stderr
