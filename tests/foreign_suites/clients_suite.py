"""Clients and orchestrators of others that start training jobs, against ``scriptmode serve``: a suite for each.

A job fits a line to points in S3. Its client, a program in ``clients``, must tell where the model is, or why the job has
failed; what it reads of the log must have the script's lines; and where it stops its job on a signal, the job must end so.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fakes.archives import packed
from tests.foreign_suites import sources
from tests.references import SAGEMAKER_V2, environment

from scriptmode.testing import server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROGRAMS = Path(__file__).with_name("clients")
RATES = ("0.5", "0.25")
ALGORITHM = {
    "TrainingImage": "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.15-cpu-py310",
    "TrainingInputMode": "File",
    "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
}
SOURCE = {"S3DataType": "S3Prefix", "S3Uri": "s3://clients/in", "S3DataDistributionType": "FullyReplicated"}
JOB = {
    "RoleArn": "arn:aws:iam::123456789012:role/training",
    "AlgorithmSpecification": ALGORITHM,
    "InputDataConfig": [{"ChannelName": "train", "DataSource": {"S3DataSource": SOURCE}}],
    "OutputDataConfig": {"S3OutputPath": "s3://clients/out"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 600},
}
PROGRAM = {"sagemaker_program": "training.py", "sagemaker_submit_directory": "s3://clients/source.tar.gz"}
TUNING = {
    "Strategy": "Random",
    "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
    "ResourceLimits": {"MaxNumberOfTrainingJobs": 2, "MaxParallelTrainingJobs": 2},
    "ParameterRanges": {"CategoricalParameterRanges": [{"Name": "rate", "Values": list(RATES)}]},
}
#: Begins a line of the script, of which a client that shows the log shows all.
STEP = "step 1000 loss=0.0"
#: The most seconds of a client.
SECONDS = 300
#: What a test adds to the hyperparameters.
CHANGES = {"fail": {"diverge": "true"}, "stop": {"seconds": "300"}}


@dataclass(frozen=True)
class Start:
    """How the program of a client is started: with this interpreter, more arguments, and variables."""

    interpreter: str | Path
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Client:
    """A suite: the tests of one client.

    Attributes:
        title: What the guide calls it.
        VERSION: Its version.
        program: The program in ``clients``.
        tests: Those that it can do. ``sync`` is ``train`` by one task of a state machine.
        prepare: Installs the client.
        interrupt: The signal on which it stops its job.
    """

    title: str
    VERSION: str
    program: str
    tests: tuple[str, ...]
    prepare: Callable[[], Start]
    interrupt: signal.Signals = signal.SIGTERM

    def run(self, folder: Path) -> dict[str, str | None]:
        """Run the tests, all at once; return the failure of each, None of one that passed."""
        try:
            start = self.prepare()
        except (subprocess.CalledProcessError, RuntimeError) as error:
            raise sources.NotFetchedError(str(error)[:300]) from error
        with server("--s3", "memory") as running, ThreadPoolExecutor(len(self.tests)) as pool:
            account = Account(running.environment)
            failures = pool.map(lambda test: self._run(test, folder / test, start, account), self.tests)
            return dict(zip(self.tests, failures, strict=True))

    def _run(self, test: str, folder: Path, start: Start, account: Account) -> str | None:
        folder.mkdir()
        request = folder / "request.json"
        request.write_text(json.dumps(_render(test)), encoding="utf-8")
        command = (start.interpreter, PROGRAMS / self.program, request, *start.arguments)
        settings = {**os.environ, **account.environment, "HOME": str(folder), **start.variables}
        with (folder / "output").open("w") as output:
            process = subprocess.Popen(
                [*map(str, command), *["--sync"] * (test == "sync")],
                cwd=folder,
                env=settings,
                stdout=output,
                stderr=output,
            )
            if test == "stop" and account.waited(test, "SecondaryStatus", "Training"):
                process.send_signal(self.interrupt)
            try:
                # The output of a client that does not end is judged as it is.
                with suppress(subprocess.TimeoutExpired):
                    process.wait(SECONDS)
            finally:
                process.kill()
                process.wait()
        return account.judge(test, (folder / "output").read_text(encoding="utf-8"))


class Account:
    """What jobs need in the S3 of a server, and what became of them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        import boto3

        self.environment = environment
        session = boto3.Session("test", "test", region_name=environment["AWS_DEFAULT_REGION"])
        url = environment["AWS_ENDPOINT_URL"]
        self.sagemaker, self.s3 = (session.client(service, endpoint_url=url) for service in ("sagemaker", "s3"))
        self.s3.create_bucket(Bucket="clients")
        script = (PROGRAMS / "training.py").read_text(encoding="utf-8")
        points = "".join(f"{x / 10},{2 * x / 10 + 1}\n" for x in range(11))
        for key, content in (("source.tar.gz", packed({"training.py": script})), ("in/points.csv", points.encode())):
            self.s3.put_object(Bucket="clients", Key=key, Body=content)

    def waited(self, name: str, key: str, value: str) -> bool:
        """Wait until a value of the description of a job is this one; return whether it was in time."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            listed = self.sagemaker.list_training_jobs(NameContains=name)["TrainingJobSummaries"]
            if listed and self.sagemaker.describe_training_job(TrainingJobName=name)[key] == value:
                return True
            time.sleep(0.2)
        return False

    def judge(self, test: str, output: str) -> str | None:
        """Return what is wrong about the end of a test with this output of its program, None if nothing is."""
        if test == "stop":
            if self.sagemaker.describe_training_job(TrainingJobName=test)["TrainingJobStatus"] == "InProgress":
                self.sagemaker.stop_training_job(TrainingJobName=test)
                return f"the client did not stop the job; {output[-2000:]}"
            return None if self.waited(test, "TrainingJobStatus", "Stopped") else "the job has not stopped"
        lines = [line for line in output.splitlines() if line.startswith("OUTCOME ")]
        if not lines:
            return f"no outcome; {output[-2000:]}"
        outcome = json.loads(lines[-1].partition(" ")[2])
        if test == "fail":
            reason = self.sagemaker.describe_training_job(TrainingJobName=test)["FailureReason"]
            held = "ValueError: the loss diverged" in reason and reason in (outcome.get("failure") or "")
        else:
            held = not outcome.get("failure") and self._is_fitted(outcome["artifacts"])
        held = held and (test != "tune" or (outcome.get("best") or {}).get("rate") in RATES)
        return None if held and STEP in outcome.get("log", STEP) else lines[-1][-2000:]

    def _is_fitted(self, uri: str) -> bool:
        """Return whether a model archive has the line of the points."""
        content = self.s3.get_object(Bucket="clients", Key=uri.partition("s3://clients/")[2])["Body"]
        with tarfile.open(fileobj=content, mode="r|gz") as archive:
            found = {member.name: json.load(archive.extractfile(member)) for member in archive if member.isfile()}
        return all(abs(value - true) < 0.01 for value, true in zip(found["line.json"], (2, 1), strict=True))


def _render(test: str) -> dict[str, Any]:
    """Return the request of a test."""
    if test != "tune":
        return {**JOB, "TrainingJobName": test, "HyperParameters": {**PROGRAM, "rate": "0.5", **CHANGES.get(test, {})}}
    definition = {**JOB, "StaticHyperParameters": PROGRAM}
    return {
        "HyperParameterTuningJobName": test,
        "HyperParameterTuningJobConfig": TUNING,
        "TrainingJobDefinition": definition,
    }


def _start_step_functions() -> Start:
    path = {"PYTHONPATH": str(sources.sdist("stepfunctions", CLIENTS["step-functions"].VERSION) / "src")}
    return Start(environment(SAGEMAKER_V2, "setuptools<81") / "python", variables=path)  # it imports pkg_resources


def _start_flyte() -> Start:
    version = CLIENTS["flyte"].VERSION
    return Start(environment(f"flytekit=={version}", f"flytekitplugins-awssagemaker=={version}") / "python")


def _start_aws() -> Start:
    if not Path(AWS).exists():
        raise sources.NotFetchedError("Debian's package awscli, which is version 2, is not installed")
    return Start(sys.executable, (AWS,))


def _start_aws_sdk() -> Start:
    versions = {"sagemaker": CLIENTS["aws-sdk-js"].VERSION, "cloudwatch-logs": "3.1169.0", "cloudwatch": "3.1164.0"}
    modules = sources.node_modules(*(f"@aws-sdk/client-{name}@{version}" for name, version in versions.items()))
    # The SDK does not read AWS_DEFAULT_REGION.
    return Start("node", variables={"NODE_PATH": str(modules), "AWS_REGION": "us-east-1"})


def _version_of_aws() -> str:
    query = ("dpkg-query", "--show", "--showformat", "${source:Upstream-Version}", "awscli")
    found = shutil.which("dpkg-query") and subprocess.run(query, capture_output=True, text=True, check=False).stdout
    return found or "2"


#: The index of pip has no version 2 from Amazon.
AWS = "/usr/bin/aws"
CLIENTS = {
    "step-functions": Client(
        "AWS Step Functions Data Science SDK",
        "2.3.0",
        "step_functions_program.py",
        ("train", "fail", "sync"),
        _start_step_functions,
    ),
    "flyte": Client(
        "Flyte",
        "1.16.31",
        "flyte_program.py",
        ("train", "fail", "stop", "tune"),
        _start_flyte,
        interrupt=signal.SIGINT,  # flytekit handles no other
    ),
    "aws-cli": Client("AWS CLI", _version_of_aws(), "aws_program.py", ("train", "fail"), _start_aws),
    "aws-sdk-js": Client(
        "AWS SDK for JavaScript", "3.1142.0", "aws_sdk_program.cjs", ("train", "fail", "tune"), _start_aws_sdk
    ),
}
