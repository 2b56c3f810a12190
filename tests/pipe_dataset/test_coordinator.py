"""A parameter-server coordinator makes the dataset; a worker, a process with a folder of its own, reads it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.host_folders import free_ports
from pipe_dataset.framings import line
from pipe_dataset.pipe_host import PipeHost

pytestmark = [pytest.mark.tf, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(1200)]
ROWS = b"".join(line(b"%d" % number) for number in range(12))
SERVER = (sys.executable, "-m", "scriptmode_runtime.tensorflow.server")
CHIEF = (sys.executable, str(Path(__file__).parent / "programs" / "coordinates.py"))


@pytest.fixture
def hosts(tmp_path):
    made = {role: PipeHost(tmp_path / role) for role in ("chief", "worker", "ps")}
    yield made
    for host in made.values():
        host.close()


@pytest.fixture
def start(hosts):
    started = []
    ports = free_ports(3)
    cluster = {role: [f"127.0.0.1:{port}"] for role, port in zip(hosts, ports)}

    def begin(role, command, **variables):
        config = {"cluster": cluster, "task": {"type": role, "index": 0}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(config), "SAGEMAKER_BASE_DIR": str(hosts[role].base)}
        environment.update({"GRPC_FAIL_FAST": "use_caller", "CUDA_VISIBLE_DEVICES": "-1", **variables})
        started.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("made_as", ["function", "dataset"])
def test_a_worker_reads_the_fifos_of_its_own_host(hosts, start, made_as):
    hosts["chief"].channels(other="File")
    hosts["worker"].feed(ROWS, ROWS)
    start("worker", SERVER)
    start("ps", SERVER)
    output, errors = start("chief", (*CHIEF, made_as)).communicate(timeout=600)
    assert output.splitlines() == ["12 records, together 66", "24 records, together 132"], errors[-3000:]
    assert hosts["worker"].fed() == ["read", "read"]


def test_a_worker_that_cannot_read_pipes_says_so_and_serves(hosts, start, tmp_path):
    worker = start("worker", SERVER, CXX="no-compiler-of-this-name", XDG_CACHE_HOME=str(tmp_path / "cache"))
    said = next(text for text in worker.stderr if text.startswith("scriptmode:"))
    assert ": pipes cannot be read: no compiler: CXX='no-compiler-of-this-name' is not on PATH; install a C++" in said
    assert worker.poll() is None
