"""A fresh process that imports the SDK and renders a request, against bare Python and the SageMaker SDK v2."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, in_turn
from tests.references import environment

ROLE = "arn:aws:iam::123456789012:role/training"


OURS = f"""
from scriptmode import TensorFlow
TensorFlow(entry_point="train.py", source_dir="code", role={ROLE!r}, instance_count=2, image_uri="img:1",
           instance_type="ml.p3.2xlarge", output_path="s3://bucket", hyperparameters={{"epochs": 60}},
           distribution={{"mpi": {{"enabled": True}}}}).request({{"train": "s3://bucket/train"}})
"""
# The v2 estimator has no dry run; its request is made by its own staging and rendering steps, with nothing sent.
THEIRS = f"""
from unittest.mock import MagicMock
import boto3, sagemaker
from sagemaker.estimator import _TrainingJob
from sagemaker.inputs import TrainingInput
from sagemaker.tensorflow import TensorFlow
session = sagemaker.Session(boto3.Session(region_name="us-east-1"), sagemaker_client=MagicMock(), default_bucket="bucket")
estimator = TensorFlow(entry_point="train.py", source_dir="s3://bucket/sourcedir.tar.gz", role={ROLE!r}, image_uri="img:1",
                       instance_count=2, instance_type="ml.p3.2xlarge", output_path="s3://bucket",
                       distribution={{"mpi": {{"enabled": True}}}}, hyperparameters={{"epochs": 60}},
                       sagemaker_session=session)
estimator._prepare_for_training("job-1")
arguments = _TrainingJob._get_train_args(estimator, {{"train": TrainingInput("s3://bucket/train")}}, {{}})
session._get_train_request(**arguments)
"""


def run(folder: str) -> list[Figure]:
    Path(folder, "code").mkdir()
    Path(folder, "code", "train.py").touch()
    reference = environment("sagemaker<3")

    def fresh(python: str, program: str) -> float:
        variables = {"PATH": "/usr/bin:/bin", "AWS_REGION": "us-east-1", "HOME": folder}
        began = time.monotonic()
        # With pipes the end is seen at once; without them a wait with a timeout looks every 50 ms.
        subprocess.run([python, "-c", program], check=True, timeout=600, cwd=folder, env=variables, capture_output=True)
        return (time.monotonic() - began) * 1000

    bare, requested, imported = in_turn(
        40,
        lambda: fresh(sys.executable, "pass"),
        lambda: fresh(sys.executable, OURS),
        lambda: fresh(sys.executable, "import scriptmode"),
        of=min,
    )
    (theirs,) = in_turn(3, lambda: fresh(str(reference / "python"), THEIRS), of=min)
    return [
        Figure("import scriptmode, over bare python", imported - bare, "ms"),
        Figure("import and TensorFlow(image_uri=...).request(...), over python", requested - bare, "ms"),
        Figure("TensorFlow(image_uri=...) with sagemaker v2, over bare python", theirs - bare, "ms"),
        Figure("that divided by ours", (theirs - bare) / (requested - bare), "x", 37, at_most=False),
    ]
