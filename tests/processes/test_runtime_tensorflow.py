"""Real TensorFlow clusters: servers that the runtime starts and ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.host_folders import free_ports, write_job
from fakes.promptness import soon
from processes.launchers import ENTRYPOINTS, child, holding, until

pytestmark = [pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(300)]
COORDINATOR = {
    "sagemaker_program": "train.py",
    "sagemaker_parameter_server_enabled": True,
    "sagemaker_parameter_server_coordinator": True,
}


def start(tmp_path, launch, count, **hyperparameters):
    job = write_job(tmp_path / "job", count, {"train.py": child("coordinates.py")}, **COORDINATOR, **hyperparameters)
    return [launch(base) for base in job.values()]


# Each run trains so over two hosts: the demo, a notebook and tests/foreign. The fault matrix checks what is left.
@pytest.mark.thorough
def test_a_coordinator_trains_over_three_hosts_and_every_server_ends_after_it(tmp_path, launch):
    launchers = start(tmp_path, launch, 3, steps=20)
    assert [launcher.wait(200) for launcher in launchers] == [0, 0, 0], launchers[0].output
    assert "20 steps counted" in launchers[0].output
    assert not holding(str(tmp_path))


# A row of the fault matrix, with TensorFlow, on hosts with namespaces of their own.
@pytest.mark.thorough
@pytest.mark.prompt
def test_a_ps_that_is_killed_is_named_on_every_host_within_3_seconds(tmp_path, launch):
    launchers = start(tmp_path, launch, 2, steps=1_000_000)
    launchers[0].says("training", 200)
    (server,) = [pid for pid in holding(str(tmp_path)) if is_task(pid, "ps", 1)]
    began = time.monotonic()
    os.kill(server, signal.SIGKILL)
    assert [launcher.wait() for launcher in launchers] == [137, 137]
    soon(time.monotonic() - began, 3)
    assert {launcher.failure.splitlines()[0] for launcher in launchers} == {"algo-2, ps: killed by SIGKILL"}
    until(lambda: not holding(str(tmp_path)))


def is_task(pid, role, index):
    variables = dict(line.partition("=")[::2] for line in Path(f"/proc/{pid}/environ").read_text().split("\0"))
    config = json.loads(variables.get("TF_CONFIG", '{"task": null}'))
    return config["task"] == {"type": role, "index": index}


def test_a_taken_port_is_named_at_once():
    (port,) = free_ports(1)
    config = {"cluster": {"ps": [f"127.0.0.1:{port}"]}, "task": {"type": "ps", "index": 0}}
    env = {**os.environ, "PYTHONPATH": str(ENTRYPOINTS), "TF_CONFIG": json.dumps(config), "CURRENT_HOST": "algo-1"}
    with socket.create_server(("127.0.0.1", port)):
        command = [sys.executable, "-m", "scriptmode_runtime.tensorflow.server"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert f"algo-1: port {port} of ps 0" in done.stderr
