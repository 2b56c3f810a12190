"""Steps per second inside ``fit``, against the same scripts started by hand."""

from __future__ import annotations

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable

from tests.benchmarks.figures import Figure, amount

from scriptmode import MPI, Estimator, ParameterServer

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CODE = NOTEBOOKS / "code"
DATA = NOTEBOOKS / "data" / "fashion_mnist"
sys.path.insert(0, str(CODE))

from progress import read_summary  # noqa: E402 - beside the training programs

HYPERPARAMETERS = amount({"epochs": 6}, smallest={"epochs": 1, "steps-per-epoch": 5})
ARGUMENTS = [word for name, value in HYPERPARAMETERS.items() for word in (f"--{name}", str(value))]
RUNS = amount(3, smallest=1)


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
    figures = []
    for layout, (ours, reference) in pairs.items():
        taken = [pair(ours, reference, swapped=bool(run % 2)) for run in range(RUNS)]
        rates = [statistics.median(values) for values in zip(*taken)]
        figures += [
            Figure(f"{layout}: steps/s inside fit", rates[0], "1/s"),
            Figure(f"{layout}: steps/s started by hand", rates[1], "1/s"),
            Figure(
                f"{layout}: inside fit / by hand", statistics.median(a / b for a, b in taken), "x", 0.98, at_most=False
            ),
        ]
    return figures


def pair(ours: Callable[[], float], reference: Callable[[], float], *, swapped: bool) -> tuple[float, float]:
    """Measure both one after the other, in alternating order, because the speed of a machine drifts."""
    if swapped:
        rate = reference()
        return ours(), rate
    return ours(), reference()


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
    cluster = {"chief": addresses(1), "worker": addresses(2), "ps": addresses(2)}
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


def addresses(count: int) -> list[str]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("", 0))
        return [f"localhost:{each.getsockname()[1]}" for each in sockets]


def steps_per_second(log: str) -> float:
    return float(read_summary(log)["steps/s"])
