"""``Estimator.plan`` and `host_roles`, for 2 and for 200 hosts, in a process that has planned before.

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
from scriptmode.planning import host_roles

ROLE = "arn:aws:iam::123456789012:role/training"
#: What two hosts may take, in the process that asks; many take as long as they do.
FEW, FEW_ROLES = 20.0, 5.0
MANY_HOSTS = amount(200, smallest=4)


def run(folder: str) -> list[Figure]:
    code = Path(folder) / "code"
    code.mkdir()
    (code / "train.py").write_text("print('training')\n")
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    kinds = ("ml.c5.xlarge", "local_process")
    estimators = [_estimator(code, kind, count) for kind in kinds for count in (2, MANY_HOSTS)]
    requests = [estimator.request() for estimator in estimators[:2]]
    measured = in_turn(
        7,
        *(lambda made=made: _milliseconds(made.plan) for made in estimators),
        *(lambda request=request: _milliseconds(lambda: host_roles(request)) for request in requests),
    )
    few, many, few_here, many_here, few_roles, many_roles = measured
    return [
        Figure("the plan of 2 hosts with parameter servers", few, "ms", FEW),
        Figure("the plan of 200 hosts", many, "ms"),
        Figure("the plan of 2 hosts that are processes of this machine", few_here, "ms"),
        Figure("the plan of 200 of them", many_here, "ms"),
        Figure("the roles of 2 hosts of a described job", few_roles, "ms", FEW_ROLES),
        Figure("the roles of 200 hosts", many_roles, "ms"),
    ]


def _estimator(code: Path, instance_type: str, count: int) -> Estimator:
    is_elsewhere = instance_type.startswith("ml.")
    return Estimator(
        entry_point="train.py",
        source_dir=str(code),
        instance_type=instance_type,
        instance_count=count,
        distribution=ParameterServer(),
        hyperparameters={"epochs": 3},
        **({"image_uri": "image:2.15", "role": ROLE, "output_path": "s3://bucket/output"} if is_elsewhere else {}),
    )


def _milliseconds(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return (time.monotonic() - began) * 1000
