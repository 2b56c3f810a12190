"""Creates and lists of `scriptmode serve`, compared with moto's server, and its memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from tests.benchmarks.command_line import make_jobs
from tests.benchmarks.figures import Figure, amount, in_turn

from scriptmode.testing import server
from scriptmode_local._store.job_store import JobStore

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS, AT_ONCE, CREATES = amount((20, 50, 200), smallest=(1, 2, 4))
LISTED, LISTS = amount((1000, 50), smallest=(10, 2))
#: A server of moto at a free port, which it prints.
MOTO = "from moto.server import ThreadedMotoServer as S; s = S(port=0, verbose=False); s.start(); print(s.get_host_and_port()[1], flush=True); input()"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.15-cpu-py310"


def run(folder: str) -> list[Figure]:
    archive = Path(folder) / "source.tar.gz"
    (Path(folder) / "train.py").write_text("import time\ntime.sleep(600)\n")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(Path(folder) / "train.py", "train.py")
    with moto() as url, server("--queue", "1", data_dir=f"{folder}/created") as running:
        ours, theirs = Creator(running.url, archive), Creator(url, archive)
        one, reference = in_turn(RUNS, ours.create, theirs.create)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            at_once = sorted(threads.map(lambda _: ours.create(), range(AT_ONCE)))
        while ours.number < CREATES:
            ours.create()
        status = Path(f"/proc/{running.process.pid}/status").read_text()
        memory = int(status.partition("VmRSS:")[2].split()[0]) / 1024
        ours.stop()
    data = Path(folder) / "listed"
    make_jobs(JobStore(data), LISTED)
    with server("--s3", "memory", data_dir=data) as running:
        client = Creator(running.url, archive).sagemaker
        lists = [taken(client.list_training_jobs, MaxResults=100) for _ in range(LISTS)]
    return [
        Figure("CreateTrainingJob of scriptmode serve", one, "ms"),
        Figure("the same of moto's server", reference, "ms"),
        Figure("the first divided by the second", one / reference, "x", 3),
        Figure(f"the slowest of {AT_ONCE} creates at once", at_once[-1], "ms", 2000),
        Figure(f"memory of the server after {CREATES} creates", memory, "MiB", 150),
        Figure(f"a list of 100 of {LISTED:,} jobs, the first", lists[0], "ms", 100),
        Figure(f"the slowest of {LISTS - 1} others", max(lists[1:]), "ms", 100),
    ]


@contextmanager
def moto() -> Iterator[str]:
    """Run moto's server in a process of its own; yield its URL."""
    with subprocess.Popen(
        (sys.executable, "-c", MOTO),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # its requests
        text=True,
    ) as process:
        assert process.stdout
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.kill()


class Creator:
    """A client that creates jobs in a server, whose data and outputs are in its S3."""

    def __init__(self, url: str, archive: Path) -> None:
        session = boto3.Session("test", "test", region_name="us-east-1")
        config = Config(max_pool_connections=AT_ONCE, read_timeout=300, retries={"total_max_attempts": 1})
        self.sagemaker = session.client("sagemaker", endpoint_url=url, config=config)
        self._s3 = session.client("s3", endpoint_url=url)
        self._archive = archive
        self.number = 0

    def create(self) -> float:
        """Create a job; return the milliseconds it took."""
        if not self.number:
            self._s3.create_bucket(Bucket="benchmark")
            for key in ("source.tar.gz", "in/data"):
                self._s3.put_object(Bucket="benchmark", Key=key, Body=self._archive.read_bytes())
        self.number += 1
        return taken(self.sagemaker.create_training_job, **_request(f"job-{self.number}-{time.time_ns()}"))

    def stop(self) -> None:
        """Stop the jobs that have not ended."""
        for page in self.sagemaker.get_paginator("list_training_jobs").paginate(StatusEquals="InProgress"):
            for job in page["TrainingJobSummaries"]:
                self.sagemaker.stop_training_job(TrainingJobName=job["TrainingJobName"])


def taken(call: Any, **arguments: object) -> float:
    """Return the milliseconds of a call."""
    begun = time.perf_counter()
    call(**arguments)
    return 1000 * (time.perf_counter() - begun)


def _request(name: str) -> dict[str, Any]:
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://benchmark/in"}}
    program = {"sagemaker_program": "train.py", "sagemaker_submit_directory": "s3://benchmark/source.tar.gz"}
    return {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/training",
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "HyperParameters": {name: json.dumps(value) for name, value in program.items()},
        "InputDataConfig": [{"ChannelName": "train", "DataSource": source}],
        "OutputDataConfig": {"S3OutputPath": "s3://benchmark/out"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 900},
    }
