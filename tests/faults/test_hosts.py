"""The hosts these tests stand on are as real as they claim, and nothing of them outlives the tests."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from faults import processes
from faults.cells import PROGRAMS
from faults.layouts import BETWEEN_GRAPH, MIRRORED, MPI_4_SSH, MPI_5_PEERS
from faults.memory import MemoryGroup
from faults.namespaces import Namespaces
from processes.launchers import until

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]
SHOWS = """
import json, os, socket
seen = {"parent": os.getppid(), "node": socket.gethostname(), "ml": sorted(os.listdir("/opt/ml")), "tmp": os.listdir("/tmp"),
        "addresses": [socket.gethostbyname(f"algo-{number}") for number in (1, 2)],
        "interfaces": sorted(name for _, name in socket.if_nameindex())}
print("seen", json.dumps(seen), flush=True)
"""
#: Makes a cluster, names its first process, and is never asked to end it.
HOLDS = """
import sys, time
from faults.namespaces import Namespaces
namespaces = Namespaces(2)
print(namespaces.init, flush=True)
time.sleep(600)
"""


def test_a_host_has_a_name_an_address_folders_and_processes_of_its_own(cluster):
    hosts = cluster.fresh(2)
    for host in hosts:
        host.write(["algo-1", "algo-2"], {"train.py": SHOWS}, sagemaker_program="train.py")
    runs = [host.train() for host in hosts]
    assert [run.wait() for run in runs] == [0, 0]
    for run in runs:
        assert f'"parent": 1, "node": "{run.host}"' in run.output
        assert '"addresses": ["10.83.0.1", "10.83.0.2"], "interfaces": ["eth1", "lo"]' in run.output
        assert "checkpoints" in run.output


def test_a_cut_host_hears_nothing_until_it_is_connected_again(cluster):
    first, second = cluster.fresh(2)
    asks = f"{sys.executable} -c \"import socket; socket.create_connection(('algo-1', 4000), 0.5)\" 2>/dev/null || echo nothing"
    listens = (
        "import socket, time; s = socket.create_server(('', 4000)); print('listening', flush=True); time.sleep(60)"
    )
    first.write(["algo-1"], {"train.py": listens}, sagemaker_program="train.py")
    first.train().says("listening")
    assert cluster.namespaces.run(second.name, asks) == ""
    second.link(up=False)
    assert cluster.namespaces.run(second.name, asks) == "nothing\n"
    second.link(up=True)
    assert cluster.namespaces.run(second.name, asks) == ""


def test_nothing_of_a_cluster_outlives_the_process_that_made_it():
    env = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'entrypoints'}"}
    holder = subprocess.Popen([sys.executable, "-c", HOLDS], env=env, stdout=subprocess.PIPE)
    init = int(holder.stdout.readline())
    name = processes.namespace(init)
    assert len(processes.members(name)) > 2
    holder.kill()
    holder.communicate()
    until(lambda: not processes.members(name))
    assert "algo-1" not in Path("/proc/net/dev").read_text()


def test_two_clusters_at_once_do_not_see_each_other(cluster):
    other = Namespaces(2)
    try:
        assert cluster.namespaces.run("algo-1", "readlink /proc/self/ns/net") != other.run(
            "algo-1", "readlink /proc/self/ns/net"
        )
    finally:
        other.close()


def test_a_process_that_wants_more_than_its_memory_group_has_is_killed():
    try:
        group = MemoryGroup(32 << 20)
    except OSError as error:
        pytest.skip(f"control groups cannot be made here: {error}")
    waits = "import sys; sys.stdin.readline(); x = [bytearray(1 << 20) for _ in range(200)]"
    process = subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE)
    try:
        group.add(process.pid)
        process.communicate(b"\n")
        assert process.returncode == -signal.SIGKILL
    finally:
        process.kill()
        group.close()


@pytest.mark.parametrize("layout", [BETWEEN_GRAPH, MIRRORED, MPI_5_PEERS, MPI_4_SSH], ids=lambda layout: layout.name)
def test_below_another_process_1_a_failed_job_leaves_no_process_on_any_host(cluster, layout):
    if cluster.namespaces.user and layout is MPI_4_SSH:
        pytest.skip("sshd needs root: it changes to users that a user namespace has not")
    hosts = cluster.fresh(layout.hosts)
    for host in hosts:
        options = {"sagemaker_program": "train.py", **layout.hyperparameters}
        host.write([each.name for each in hosts], {"train.py": (PROGRAMS / "daemons.py").read_text()}, **options)
        host.train(init=True, python=layout.python, **layout.variables)
    logs = [hosts[position].run for position in layout.trainers.values()]
    until(lambda: all(run.output.count("daemon left") == logs.count(run) for run in logs), 60)
    (hosts[-1].ml / "input" / "fault").touch()
    for host in hosts:
        host.run.says("train ended with 137")
    until(lambda: all(len(host.run.processes()) == 1 for host in hosts))
