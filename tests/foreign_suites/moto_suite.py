"""moto's tests of training and tuning jobs, against ``scriptmode serve`` in place of moto.

What is adapted: roles and accounts that the service's model refuses or that the server does not have, a program and a
metric for jobs whose end is asserted, and tuning jobs of one training job instead of 123. See ``moto_plugin`` for more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.foreign_suites import pytest_runs, sources

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "5.2.5"
FILES = ("test_sagemaker_training.py", "test_sagemaker_hyper_parameter_tuning_job.py")
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.15-cpu-py310"
#: Regular expressions and what replaces them.
ADAPTATIONS = (
    # Roles are not ARNs of roles, which the service's model asks for.
    (r"arn:aws:sagemaker:us-east-1:000000000000:x-x/", "arn:aws:iam::000000000000:role/"),
    (r"role_arn=resource_arn", "role_arn=FAKE_ROLE_ARN"),
    (r"from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT_ID", 'ACCOUNT_ID = "000000000000"'),
    (r"123456789012", "000000000000"),
    # Each training job of a tuning job is a real one.
    (r'("Max(?:NumberOf|Parallel)TrainingJobs"): 12\d', r"\1: 1"),
    # The job whose end is asserted has a program, and takes its time. The built-in algorithm has metrics of its own.
    (r'( +)container = "382.*"', rf'\1container = "{IMAGE}"'),
    (r'( +)"loss": "absolute_loss",\n +}\n    stop', r'\1"loss": "absolute_loss",\n\1**PROGRAM,\n    }\n    stop'),
    (r"(    algorithm_specification = {\n)", r'\1        "MetricDefinitions": METRICS,\n'),
    # A key with two slashes side by side, by accident: the prefix ends with one.
    (r'("S3OutputPath": f"s3://{bucket}/{prefix})/"', r'\1"'),
    # The service describes a key that was left out as empty.
    (
        r'resp\["OutputDataConfig"\] == output_data_config',
        'resp["OutputDataConfig"] == {"KmsKeyId": "", **output_data_config}',
    ),
    (r"    resp = job.save\(\)", "    resp = ended(job.save())"),
    (r"import boto3\n", "import boto3\nfrom moto_plugin import METRICS, PROGRAM, ended\n"),
)


def run(folder: Path) -> dict[str, str | None]:
    """Run the tests in a directory; return the failure of each, None of one that passed."""
    tests = sources.sdist("moto", VERSION) / "tests" / "test_sagemaker"
    texts = {name: (tests / name).read_text(encoding="utf-8") for name in FILES}
    for name, text in sources.adapt(texts, ADAPTATIONS).items():
        (folder / name).write_text(text, encoding="utf-8")
    return pytest_runs.run(folder, "moto", *FILES, plugin="moto_plugin")
