"""The demo: train Fashion-MNIST with parameter servers, then with Horovod, on this machine or on a cluster.

python notebooks/demo.py [--data FOLDER] [--epochs N] [--instance-type local [--tensorflow VERSION]]

Each host is a process of this machine, with ``local`` a container of the image for that TensorFlow version, or with
``slurm`` a node of a cluster, on which this project, FOLDER and the directory SCRIPTMODE_DATA_DIR are, too. With
``kubernetes`` it is a pod with the image that the variable SCRIPTMODE_KUBERNETES names. FOLDER
contains the channels ``train`` and ``eval``, each with .npz files of ``x`` and ``y``; the default is the subset in this
project. The exit code is 1 if a model's accuracy on the held-out images is below 0.80.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from scriptmode import MPI, Estimator, ParameterServer, TrainingJob

HERE = Path(__file__).resolve().parent
CODE = HERE / "code"
sys.path.insert(0, str(CODE))

from program_arguments import channels, count, run  # noqa: E402 - beside this file
from progress import read_summary  # noqa: E402 - beside the training programs

LEAST_ACCURACY = 0.80
#: Settings that do not depend on the kind of hosts.
PROGRAMS: dict[str, dict[str, Any]] = {
    "parameter servers": {"entry_point": "train_ps.py", "distribution": ParameterServer(coordinator=True)},
    "Horovod": {"entry_point": "train_hvd.py"},
}
#: By the kind of hosts. Two ranks on one machine need only one host; two containers, or nodes, are two machines.
LAYOUTS: dict[str, dict[str, dict[str, Any]]] = {
    "local_process": {
        "parameter servers, 2 hosts": {**PROGRAMS["parameter servers"], "instance_count": 2},
        "Horovod, 2 ranks": {**PROGRAMS["Horovod"], "instance_count": 1, "distribution": MPI(processes_per_host=2)},
    },
    "local": {
        "parameter servers, 2 containers": {**PROGRAMS["parameter servers"], "instance_count": 2},
        "Horovod, 2 containers": {**PROGRAMS["Horovod"], "instance_count": 2, "distribution": MPI()},
    },
    "kubernetes": {
        "parameter servers, 2 pods": {**PROGRAMS["parameter servers"], "instance_count": 2},
        "Horovod, 2 pods": {**PROGRAMS["Horovod"], "instance_count": 2, "distribution": MPI()},
    },
    "slurm": {
        "parameter servers, 2 nodes": {**PROGRAMS["parameter servers"], "instance_count": 2},
        "Horovod, 2 nodes": {**PROGRAMS["Horovod"], "instance_count": 2, "distribution": MPI()},
    },
}


@dataclass(frozen=True)
class Row:
    """One job's line of the table."""

    job: str
    layout: str
    accuracy: float
    images_per_second: float
    seconds: float
    model: str

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        return (
            self.job,
            self.layout,
            f"{self.accuracy:.4f}",
            f"{self.images_per_second:,.0f}",
            f"{self.seconds:.1f} s",
            self.model,
        )


def train(layout: str, arguments: argparse.Namespace) -> Row:
    """Run one job, show its log, and evaluate its model."""
    print(f"\n=== {layout}", flush=True)
    estimator = Estimator(
        source_dir=str(CODE),
        instance_type=arguments.instance_type,
        framework_version=arguments.tensorflow,
        base_job_name="fashion-mnist",
        hyperparameters={"epochs": arguments.epochs},
        environment={"TF_CPP_MIN_LOG_LEVEL": "2"},  # show only errors of TensorFlow
        max_run=1800,
        **LAYOUTS[arguments.instance_type][layout],
    )
    began = time.monotonic()
    job = estimator.fit({"train": (arguments.data / "train").as_uri(), "eval": (arguments.data / "eval").as_uri()})
    seconds = time.monotonic() - began
    model = unquote(urlparse(str(job.model_data)).path)
    return Row(job.name, layout, score(model, arguments.data / "eval"), images_per_second(job), seconds, model)


def images_per_second(job: TrainingJob) -> float:
    """Return the rate from the program's summary line."""
    return float(read_summary("\n".join(event.message for event in job.logs()))["images/s"])


def score(model: str, eval_folder: Path) -> float:
    """Load the model from its archive in a new process; return its accuracy on held-out images."""
    command = [sys.executable, str(CODE / "evaluate.py"), model, str(eval_folder)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"accuracy=(\d\.\d+)", output)
    if found is None:
        message = f"evaluate.py printed no accuracy: {output!r}"
        raise ValueError(message)
    return float(found.group(1))


def table(rows: list[Row]) -> str:
    """Render the rows as a table, with columns as wide as their widest cell."""
    lines = [("job", "layout", "test accuracy", "images/s", "wall time", "model"), *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def main() -> int:
    """Train every layout and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=channels, default=HERE / "data" / "fashion_mnist")
    parser.add_argument("--epochs", type=count, default=5)
    parser.add_argument("--instance-type", choices=LAYOUTS, default="local_process")
    parser.add_argument("--tensorflow", help="TensorFlow version of the image, for --instance-type local")
    arguments = parser.parse_args()
    rows = [train(layout, arguments) for layout in LAYOUTS[arguments.instance_type]]
    print(f"\n{table(rows)}")
    short = [row.layout for row in rows if row.accuracy < LEAST_ACCURACY]
    for layout in short:
        print(f"{layout}: accuracy below {LEAST_ACCURACY}", file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(run(main))
