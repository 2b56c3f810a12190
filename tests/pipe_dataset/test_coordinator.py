"""The server of a worker, a process with a folder of its own, serves though it cannot read pipes."""

import json
import os
import subprocess
import sys

import pytest
from fakes.host_folders import free_ports
from pipe_dataset.pipe_host import PipeHost


@pytest.mark.tf
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_worker_that_cannot_read_pipes_says_so_and_serves(tmp_path):
    host = PipeHost(tmp_path / "worker")
    cluster = {role: [f"127.0.0.1:{port}"] for role, port in zip(("chief", "worker", "ps"), free_ports(3))}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    environment = {**os.environ, "TF_CONFIG": json.dumps(config), "SAGEMAKER_BASE_DIR": str(host.base)}
    environment |= {"CXX": "no-compiler-of-this-name", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = (sys.executable, "-m", "scriptmode_runtime.tensorflow.server")
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as worker:
        try:
            said = next(text for text in worker.stderr if text.startswith("scriptmode:"))
            assert worker.poll() is None
        finally:
            worker.kill()
    host.close()
    assert ": pipes cannot be read: no compiler: CXX='no-compiler-of-this-name' is not on PATH; install a C++" in said
