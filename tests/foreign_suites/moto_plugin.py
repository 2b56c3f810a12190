"""Run moto's tests against one ``scriptmode serve``, which each test finds without jobs, and which has the data they name.

moto's jobs have ended when they are created. Here tuning jobs are waited for, and get the training job that they lack.
"""

import contextlib
import io
import tarfile
import time

import boto3
import moto
import pytest

from scriptmode.testing import server

BUCKET = "my-bucket"
PROGRAM = {"sagemaker_program": "train.py", "sagemaker_submit_directory": f"s3://{BUCKET}/source.tar.gz"}
METRICS = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
TEXT = b'import os\nprint("loss=0.5")\nopen(os.environ["SM_MODEL_DIR"] + "/weights", "w").close()\n'
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.15-cpu-py310"
ENDED = ("Completed", "Failed", "Stopped")
#: What a tuning job of moto lacks, and the service requires.
CONFIG = {
    "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
    "ParameterRanges": {"ContinuousParameterRanges": [{"Name": "rate", "MinValue": "0", "MaxValue": "1"}]},
}
DEFINITION = {
    "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File", "MetricDefinitions": METRICS},
    "RoleArn": "arn:aws:iam::000000000000:role/FakeRole",
    "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
    "StoppingCondition": {"MaxRuntimeInSeconds": 600},
    "StaticHyperParameters": PROGRAM,
}


def pytest_configure():
    moto.mock_aws = lambda test: test


@pytest.fixture(scope="session")
def served():
    with server("--s3", "memory") as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        # Every client that the tests create is of this session.
        boto3.setup_default_session()
        events = boto3.DEFAULT_SESSION.events
        events.register("provide-client-params.sagemaker.CreateHyperParameterTuningJob", complete)
        events.register("after-call.sagemaker.CreateHyperParameterTuningJob", wait)
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        for channel in ("train", "validation"):
            s3.put_object(Bucket=BUCKET, Key=f"sagemaker/DEMO-breast-cancer-prediction//{channel}/data", Body=b"1")
        s3.put_object(Bucket=BUCKET, Key="source.tar.gz", Body=source())
        yield boto3.client("sagemaker")


@pytest.fixture(autouse=True)
def empty(served):
    """Delete the jobs after a test."""
    yield
    for kind, words in (("HyperParameterTuningJob", "hyper_parameter_tuning_job"), ("TrainingJob", "training_job")):
        delete(served, kind, words)


def until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.2)


def delete(client, kind, words):
    def summaries():
        pages = client.get_paginator(f"list_{words}s").paginate()
        return [each for page in pages for each in page[f"{kind}Summaries"]]

    for each in summaries():
        with contextlib.suppress(client.exceptions.ClientError):  # it has ended
            getattr(client, f"stop_{words}")(**{f"{kind}Name": each[f"{kind}Name"]})
    until(lambda: all(each[f"{kind}Status"] in ENDED for each in summaries()), 300)
    for each in summaries():
        getattr(client, f"delete_{words}")(**{f"{kind}Name": each[f"{kind}Name"]})
    until(lambda: not summaries(), 60)


def source():
    """Return an archive with the program."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("train.py")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
    return packed.getvalue()


def complete(params, **_):
    """Add what a request for a tuning job lacks."""
    config = {**CONFIG, **params["HyperParameterTuningJobConfig"]}
    return {"TrainingJobDefinition": DEFINITION, **params, "HyperParameterTuningJobConfig": config}


def wait(http_response, parsed, **_):
    """Wait until a tuning job has ended."""
    client, name = boto3.client("sagemaker"), parsed.get("HyperParameterTuningJobArn", "").rpartition("/")[2]

    def status():
        found = client.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
        return found["HyperParameterTuningJobStatus"]

    if name:
        until(lambda: status() in ENDED, 300)


def ended(response):
    """Wait until a training job has ended; return the response to its creation."""
    waiter = boto3.client("sagemaker").get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName=response["TrainingJobArn"].rpartition("/")[2], WaiterConfig={"Delay": 1})
    return response
