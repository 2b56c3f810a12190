"""mpirun over several machines: Open MPI 4 and 5, its daemons started by the launchers."""

import json
import signal
import sys

import pytest

pytestmark = [pytest.mark.root, pytest.mark.slow]

#: An interpreter beside Open MPI 5, and Debian's, beside which stands Open MPI 4.
PYTHONS = {"Open MPI 5": sys.executable, "Open MPI 4": "/usr/bin/python3"}
SHOWS = """
import json, os, socket, sys, time
names = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SM_CURRENT_HOST", "CURRENT_HOST", "OF_HOST",
         "CUDA_VISIBLE_DEVICES", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
         "JAX_COORDINATOR_ADDRESS", "JAX_LOCAL_DEVICE_IDS")
seen = {name: os.environ.get(name) for name in names}
print(json.dumps({**seen, "node": socket.gethostname(), "cwd": os.getcwd(), "argv": sys.argv,
                  "secret": os.environ.get("SCRIPTMODE_JOB_SECRET")}), flush=True)
if "--waits" in sys.argv:
    time.sleep(600)
"""


def start(
    cluster, count=2, python=sys.executable, *, script=SHOWS, variables=None,
    before_others=lambda: None, **hyperparameters
):  # fmt: skip
    """Start a job of two ranks on each host."""
    hosts = cluster.fresh(count)
    given = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2, **hyperparameters}
    for host in hosts:
        host.write([each.name for each in hosts], {"train.py": script}, sagemaker_program="train.py", **given)
    variables = {"SCRIPTMODE_JOB_SECRET": "known to the hosts", **(variables or {})}
    first = hosts[0].train(python=python, OF_HOST="of algo-1", **variables)
    before_others()
    return [first, *(host.train(python=python, OF_HOST=f"of {host.name}", **variables) for host in hosts[1:])]


def stop(runs):
    """Stop a job that waits, once all its ranks have started."""
    runs[0].says('"OMPI_COMM_WORLD_RANK": "3"')
    runs[0].signal(signal.SIGTERM)
    assert [run.wait() for run in runs] == [143, 143]
    assert not [pid for run in runs for pid in run.processes()]


def seen(run):
    """What each rank said, by rank."""
    said = [line.partition("<stdout>:")[2].strip() for line in run.output.splitlines()]
    rows = [json.loads(text) for text in said if text.startswith("{")]
    return {int(row["OMPI_COMM_WORLD_RANK"]): row for row in rows}


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS)
def test_every_rank_has_its_own_hosts_environment(cluster, python):
    runs = start(cluster, 3, python, lr=0.1)
    assert [run.wait() for run in runs] == [0, 0, 0]
    rows = seen(runs[0])
    assert sorted(rows) == list(range(6))
    for rank, row in rows.items():
        host = f"algo-{rank // 2 + 1}"
        assert row["SM_CURRENT_HOST"] == row["CURRENT_HOST"] == host
        assert (row["OF_HOST"], row["node"]) == (f"of {host}", host)
        assert row["argv"] == ["train.py", "--lr", "0.1"]
        assert row["cwd"] == "/opt/ml/code"
        assert row["secret"] is None
        assert (row["RANK"], row["WORLD_SIZE"], row["LOCAL_RANK"], row["LOCAL_WORLD_SIZE"]) == (
            str(rank), "6", str(rank % 2), "2",
        )  # fmt: skip
        assert (row["MASTER_ADDR"], row["MASTER_PORT"]) == ("algo-1", "29500")
        assert row["JAX_COORDINATOR_ADDRESS"] == "algo-1:8476"


def test_each_rank_sees_the_gpu_of_its_local_rank_if_so_asked(cluster):
    variables = {"CUDA_VISIBLE_DEVICES": "3,5"}
    bound = start(cluster, variables=variables, sagemaker_mpi_bind_gpus=True)
    assert [run.wait() for run in bound] == [0, 0]
    assert [row["CUDA_VISIBLE_DEVICES"] for _, row in sorted(seen(bound[0]).items())] == ["3", "5", "3", "5"]
    assert {row["JAX_LOCAL_DEVICE_IDS"] for row in seen(bound[0]).values()} == {"0"}
    free = start(cluster, variables=variables)
    assert [run.wait() for run in free] == [0, 0]
    devices = {(row["CUDA_VISIBLE_DEVICES"], row["JAX_LOCAL_DEVICE_IDS"]) for row in seen(free[0]).values()}
    assert devices == {("3,5", None)}


INTRUDES = """
import socket, sys, time
while True:
    try:
        with socket.create_connection(("algo-1", 2220)) as connection:
            connection.sendall(sys.argv[1].encode())
            while connection.recv(999):
                pass
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
"""


def test_a_stranger_between_the_hosts_starts_nothing(cluster):
    words = {"type": "start", "number": 0, "command": "orted; touch /opt/ml/intruder"}
    text = json.dumps({"type": "join", "host": "algo-2", "nonce": "n", "proof": "p"}) + "\n" + json.dumps(words) + "\n"

    def intrude():
        # Once every host is there nothing listens any more.
        cluster.namespaces.run("algo-2", f'{sys.executable} -c "$1" "$2"', INTRUDES, text)

    stop(start(cluster, before_others=intrude, waits="yes"))
    assert not (cluster.hosts[0].ml / "intruder").exists()


SAVES = """
import os, signal, sys, time
rank = os.environ["OMPI_COMM_WORLD_RANK"]

def save(*_):
    time.sleep(1)
    with open(os.path.join(os.environ["SM_MODEL_DIR"], f"checkpoint-{rank}"), "w") as file:
        file.write(rank)
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
print("trains", rank, flush=True)
time.sleep(600)
"""


def test_ranks_that_only_die_of_a_stop_wait_for_those_that_save(cluster):
    script = SAVES.replace("signal.signal(", 'if rank == "1": signal.signal(').replace("time.sleep(1)", "time.sleep(3)")
    runs = start(cluster, script=script)
    for rank in range(4):
        runs[0].says(f"trains {rank}")
    runs[1].signal(signal.SIGTERM)
    assert [run.wait() for run in runs] == [143, 143]
    assert [path.name for path in (cluster.hosts[0].ml / "model").iterdir()] == ["checkpoint-1"]
