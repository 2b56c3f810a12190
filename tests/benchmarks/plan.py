"""``Estimator.plan`` and its text for 2 and for 1,000 hosts, in a process that has planned before.

Every host's ``TF_CONFIG`` names every host: a plan makes that of a host when it is asked for, so that the time grows with
the number of hosts, and with its square only where all of them are read.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Callable

from tests.benchmarks.figures import Figure, amount, in_turn

from scriptmode import Estimator, ParameterServer


def run(folder: str) -> list[Figure]:
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    (Path(folder) / "train.py").write_text("print('training')\n")
    few, many = in_turn(3, *(planning(folder, count) for count in (2, amount(1000, smallest=4))))
    return [
        Figure("the plan of 2 hosts with parameter servers", few, "ms", 20),
        Figure("the plan of 1,000 hosts", many, "ms", 2000),
    ]


def planning(folder: str, hosts: int) -> Callable[[], float]:
    """Return a function that plans a job and returns the milliseconds it took."""
    estimator = Estimator(
        entry_point="train.py", source_dir=folder, instance_type="ml.c5.xlarge", instance_count=hosts, image_uri="image:2.15",
        role="arn:aws:iam::123456789012:role/training", output_path="s3://bucket/output", distribution=ParameterServer(),
        hyperparameters={"epochs": 3},
    )  # fmt: skip

    def measure() -> float:
        began = time.monotonic()
        str(estimator.plan())
        return (time.monotonic() - began) * 1000

    return measure
