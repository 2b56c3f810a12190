"""``Estimator.plan`` for 2 and for 200 hosts, in a process that has planned before.

Every host's ``TF_CONFIG`` names every host: what a plan holds, and the time for it, grow with the square of their
number, so that twice as many hosts take four times as long.
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
    few, many = in_turn(3, *(planning(folder, count) for count in (2, amount(200, smallest=4))))
    return [
        Figure("the plan of 2 hosts with parameter servers", few, "ms", 20),
        Figure("the plan of 200 hosts", many, "ms"),
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
        estimator.plan()
        return (time.monotonic() - began) * 1000

    return measure
