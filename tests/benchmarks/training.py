"""Steps per second inside ``fit``, against the same scripts started by hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable

from tests.benchmarks.figures import Figure, amount, rates
from tests.fakes.host_folders import free_ports

from scriptmode import MPI, Estimator, ParameterServer

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CODE = NOTEBOOKS / "code"
DATA = NOTEBOOKS / "data" / "fashion_mnist"
sys.path.insert(0, str(CODE))

from progress import read_summary  # noqa: E402 - beside the training programs

HYPERPARAMETERS = amount({"epochs": 2}, smallest={"epochs": 1, "steps-per-epoch": 5})
ARGUMENTS = [word for name, value in HYPERPARAMETERS.items() for word in (f"--{name}", str(value))]
RUNS = amount(2, smallest=1)


def run(folder: str) -> list[Figure]:
    pairs: dict[str, tuple[Callable[[], float], Callable[[], float]]] = {
        "Horovod, 2 ranks": (
            lambda: in_fit("train_hvd.py", 1, MPI(processes_per_host=2)),
            lambda: bare_mpirun(Path(folder)),
        ),
        "parameter servers, 2 hosts": (
            lambda: in_fit("train_ps.py", 2, ParameterServer(coordinator=True)),
            lambda: by_hand(Path(folder)),
        ),
    }
    return [figure for layout, ways in pairs.items() for figure in rates(layout, RUNS, *ways)]


def in_fit(entry_point: str, hosts: int, distribution: Any) -> float:
    estimator = Estimator(
        entry_point=entry_point, source_dir=str(CODE), instance_count=hosts, instance_type="local_process",
        distribution=distribution, hyperparameters=HYPERPARAMETERS, max_run=1800,
    )  # fmt: skip
    job = estimator.fit({"train": (DATA / "train").as_uri(), "eval": (DATA / "eval").as_uri()}, logs=False)
    return steps_per_second("\n".join(event.message for event in job.logs()))


def bare_mpirun(folder: Path) -> float:
    mpirun = Path(sys.executable).parent / "mpirun"
    command = [str(mpirun), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "2"]
    done = subprocess.run([*command, sys.executable, "train_hvd.py", *ARGUMENTS], check=True, timeout=600, cwd=CODE,
                          env=variables(folder), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    return steps_per_second(done.stdout)


def by_hand(folder: Path) -> float:
    """Start two workers, two ps and the chief as anyone would without a launcher."""
    environment = variables(folder)
    chief, *others = (f"localhost:{port}" for port in free_ports(5))
    cluster = {"chief": [chief], "worker": others[:2], "ps": others[2:]}
    with ExitStack() as stack:
        for kind in ("worker", "ps"):
            for index in range(2):
                server = start(environment, cluster, kind, index)
                stack.callback(server.wait)
                stack.callback(server.send_signal, signal.SIGTERM)
        chief = start(environment, cluster, "chief", 0)
        output = chief.communicate(timeout=600)[0]
        if chief.returncode != 0:
            raise subprocess.CalledProcessError(chief.returncode, "chief", output)
    return steps_per_second(output)


def start(environment: dict[str, str], cluster: dict[str, list[str]], kind: str, index: int) -> subprocess.Popen[str]:
    config = {"cluster": cluster, "task": {"type": kind, "index": index}}
    environment = {**environment, "TF_CONFIG": json.dumps(config), "GRPC_FAIL_FAST": "use_caller"}
    return subprocess.Popen([sys.executable, "train_ps.py", *ARGUMENTS], cwd=CODE, env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip


def variables(folder: Path) -> dict[str, str]:
    # A fresh base: the programs resume from the checkpoints that lie beside the model.
    model = Path(tempfile.mkdtemp(dir=folder)) / "model"
    model.mkdir()
    channels = {"SM_CHANNEL_TRAIN": str(DATA / "train"), "SM_CHANNEL_EVAL": str(DATA / "eval")}
    return {**os.environ, **channels, "SM_MODEL_DIR": str(model)}


def steps_per_second(log: str) -> float:
    return float(read_summary(log)["steps/s"])
