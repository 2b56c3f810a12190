"""The memory of a server that clients use for a long time: ``python -m tests.serve.soak [MINUTES]`` prints it.

Ten clients each put an object, start a job that reads it, follow its status, lines and metrics to the end, list jobs and
delete the object, again and again. The exit code is 1 if the server has more memory at the end than in the middle, by
more than a tenth.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from scriptmode.core.spec.service_values import ENDED
from scriptmode.testing import server

CLIENTS = 10
BUCKET, GROUP = "soak", "/aws/sagemaker/TrainingJobs"
#: How much more than in the middle the server may have at the end.
TOLERANCE = 1.1
PROGRAM = "cat /opt/ml/input/data/train/*; for step in 1 2 3 4 5 6 7 8; do echo loss: 0.$step; sleep 0.2; done"


class Client(threading.Thread):
    """A user of the server."""

    def __init__(self, url: str, number: int, is_over: threading.Event) -> None:
        super().__init__()
        session, config = boto3.Session("test", "test", region_name="us-east-1"), Config(retries={"max_attempts": 5})
        self._sagemaker, self._logs, self._metrics, self._s3 = (
            session.client(name, endpoint_url=url, config=config) for name in ("sagemaker", "logs", "cloudwatch", "s3")
        )
        self._name, self._is_over = f"soak-{number}", is_over
        self.jobs = 0
        self.error: Exception | None = None

    def run(self) -> None:
        """Run jobs until the time is over."""
        try:
            while not self._is_over.is_set():
                self._train(f"{self._name}-{self.jobs}")
                self.jobs += 1
        except Exception as error:  # for the main thread
            self.error = error

    def _train(self, name: str) -> None:
        self._s3.put_object(Bucket=BUCKET, Key=name, Body=b"data\n" * 10_000)
        self._sagemaker.create_training_job(**_request(name))
        found: dict[str, Any] = {"TrainingJobStatus": ""}
        place: dict[str, Any] = {"startFromHead": True}
        while found["TrainingJobStatus"] not in ENDED:
            time.sleep(1)
            found = self._sagemaker.describe_training_job(TrainingJobName=name)
            streams = self._logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=f"{name}/")["logStreams"]
            for stream in streams:
                answer = self._logs.get_log_events(logGroupName=GROUP, **_stream(stream), **place)
                place = {"nextToken": answer["nextForwardToken"]}
            self._sagemaker.list_training_jobs(MaxResults=10, SortBy="CreationTime", SortOrder="Descending")
        assert found["TrainingJobStatus"] == "Completed", found.get("FailureReason")
        self._metrics.list_metrics(Namespace=GROUP, Dimensions=[{"Name": "Host", "Value": f"{name}/algo-1"}])
        self._s3.delete_object(Bucket=BUCKET, Key=name)


def _stream(described: dict[str, Any]) -> dict[str, Any]:
    return {"logStreamName": described["logStreamName"]}


def _request(name: str) -> dict[str, Any]:
    image = {"TrainingImage": "scriptmode/tensorflow:2.15.1", "ContainerEntrypoint": ["sh", "-c", PROGRAM]}
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/{name}", "S3DataDistributionType": "FullyReplicated"}
    return {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::000000000000:role/training",
        "AlgorithmSpecification": {
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "loss", "Regex": "loss: ([0-9.]+)"}],
            **image,
        },
        "InputDataConfig": [{"ChannelName": "train", "DataSource": {"S3DataSource": source}}],
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "local_process", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    }


def _mebibytes(process: int) -> int:
    """Return the resident memory of a process (proc(5), status)."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) // 1024


def soak(minutes: int) -> list[int]:
    """Return the server's memory in MiB after each minute of use, and print it."""
    used = []
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, server(data_dir=Path(folder)) as running:
        boto3.Session("test", "test", region_name="us-east-1").client("s3", endpoint_url=running.url).create_bucket(
            Bucket=BUCKET
        )
        is_over = threading.Event()
        clients = [Client(running.url, number, is_over) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        for minute in range(1, minutes + 1):
            is_over.wait(60)
            used.append(_mebibytes(running.process.pid))
            print(f"{minute} min: {used[-1]} MiB, {sum(each.jobs for each in clients)} jobs", flush=True)
        is_over.set()
        for client in clients:
            client.join()
            if client.error:
                raise client.error
    return used


def main() -> int:
    """Print the memory by minute and whether it is steady; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", nargs="?", type=int, default=30)
    used = soak(parser.parse_args().minutes)
    is_steady = used[-1] <= TOLERANCE * used[len(used) // 2]
    print(f"middle {used[len(used) // 2]} MiB, end {used[-1]} MiB: {'steady' if is_steady else 'it grows'}")
    return 0 if is_steady else 1


if __name__ == "__main__":
    sys.exit(main())
