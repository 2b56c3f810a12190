"""``scriptmode serve``: calls, CreateTrainingJob against the same one in process; many clients; the age of lines."""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import boto3
from botocore.config import Config
from tests.benchmarks.figures import Figure, amount, in_turn
from tests.benchmarks.live_view import cpu_seconds
from tests.fakes.processes import until

from scriptmode.core.spec.service_values import ENDED
from scriptmode.platforms.local import LocalPlatform
from scriptmode.testing import server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CREATED, TOGETHER = amount(5, smallest=1), amount(50, smallest=2)
JOBS, CLIENTS = amount(20, smallest=2), amount(100, smallest=4)
#: Seconds between two looks of a client at its job, as ModelTrainer of the SageMaker SDK v3 waits, and of the measurement.
INTERVAL, MEASURED = amount(5.0, smallest=0.5), amount(10, smallest=1)
LINES = amount(10, smallest=2)
LISTED, LISTS = amount(500, smallest=3), amount(200, smallest=2)
GROUP = "/aws/sagemaker/TrainingJobs"
#: Prints the time again after a number of seconds, without a Python of its own.
CLOCK = "while :; do date +%s.%N; sleep {}; done"


def run(folder: str) -> list[Figure]:
    data_dir = Path(folder) / "data"
    with server("--s3", "memory", "--allow", folder, "--queue", str(max(JOBS, TOGETHER)), data_dir=data_dir) as running:
        session = boto3.Session("test", "test", region_name="us-east-1")
        # One client for all threads: a hundred of boto3's take half a minute to create.
        config = Config(max_pool_connections=CLIENTS)
        sagemaker, logs = (
            session.client(name, endpoint_url=running.url, config=config) for name in ("sagemaker", "logs")
        )
        platform = LocalPlatform(data_dir=data_dir)
        jobs = _Jobs(sagemaker, platform, folder)
        served, direct = in_turn(
            CREATED,
            lambda: jobs.milliseconds(lambda request: sagemaker.create_training_job(**request)),
            lambda: jobs.milliseconds(platform.create),
        )
        together = jobs.slowest_of(TOGETHER)
        age = _age(jobs, logs)
        share = _following(jobs, logs, running.process.pid)
        jobs.create_failed(LISTED)
        lists = sorted(jobs.list_milliseconds() for _ in range(LISTS))
    return [
        Figure("CreateTrainingJob over HTTP, boto3 included", served, "ms"),
        Figure("the same call on LocalPlatform in process", direct, "ms", 50),
        Figure(f"{TOGETHER} calls at once over HTTP, the slowest", together, "s", 2),
        Figure(f"{CLIENTS} clients that follow {JOBS} jobs: the server, of a core", 100 * share, "%", 15),
        Figure("a log line to the answer of GetLogEvents", age, "s", 1),
        Figure(f"ListTrainingJobs among {LISTED} jobs that ended", statistics.median(lists), "ms"),
        Figure("the same call, 99 % of them", lists[int(0.99 * (LISTS - 1))], "ms", 100),
    ]


class _Jobs:
    """Jobs of hosts that are processes of this machine."""

    def __init__(self, sagemaker: Any, platform: LocalPlatform, folder: str) -> None:
        self.sagemaker = sagemaker
        self._platform = platform
        self._output = f"file://{folder}/output"
        self._count = 0

    def milliseconds(self, create: Callable[[dict[str, Any]], object]) -> float:
        """Return the time that a call takes; its job completes before the next one is measured."""
        request = self._request("true")
        began = time.monotonic()
        create(request)
        taken = (time.monotonic() - began) * 1000
        self._reach([request["TrainingJobName"]], "SecondaryStatus", "Completed")
        return taken

    def slowest_of(self, count: int) -> float:
        """Return the seconds of the slowest of calls that begin at once; the jobs of all of them complete."""
        requests = [self._request("true") for _ in range(count)]
        began = time.monotonic()

        def create(request: dict[str, Any]) -> float:
            self.sagemaker.create_training_job(**request)
            return time.monotonic() - began

        with ThreadPoolExecutor(count) as threads:
            slowest = max(threads.map(create, requests))
        self._reach([request["TrainingJobName"] for request in requests], "SecondaryStatus", "Completed")
        return slowest

    def create_failed(self, count: int) -> None:
        """Create jobs that are recorded as failed and do not run."""
        for _ in range(count):
            self._platform.create(self._request("true"), failure="ClientError: it does not run")

    def list_milliseconds(self) -> float:
        """Return the time that a call takes that lists the newest jobs."""
        began = time.monotonic()
        self.sagemaker.list_training_jobs(MaxResults=100)
        return (time.monotonic() - began) * 1000

    def start(self, program: str, count: int) -> list[str]:
        """Start jobs; return their names once all of them train."""
        requests = [self._request(program) for _ in range(count)]
        for request in requests:
            self.sagemaker.create_training_job(**request)
        names = [request["TrainingJobName"] for request in requests]
        self._reach(names, "SecondaryStatus", "Training")
        return names

    def stop(self, names: Sequence[str]) -> None:
        for name in names:
            self.sagemaker.stop_training_job(TrainingJobName=name)
        self._reach(names, "TrainingJobStatus", *ENDED)

    def _reach(self, names: Sequence[str], field: str, *values: str) -> None:
        until(lambda: all(self._platform.describe(name).response[field] in values for name in names), 120)

    def _request(self, program: str) -> dict[str, Any]:
        self._count += 1
        image = {"TrainingImage": "scriptmode/tensorflow:2.15.1", "ContainerEntrypoint": ["sh", "-c", program]}
        return {
            "TrainingJobName": f"served-{self._count}",
            "RoleArn": "arn:aws:iam::000000000000:role/training",
            "AlgorithmSpecification": {"TrainingInputMode": "File", **image},
            "OutputDataConfig": {"S3OutputPath": self._output},
            "ResourceConfig": {"InstanceType": "local_process", "InstanceCount": 1, "VolumeSizeInGB": 1},
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        }


def _age(jobs: _Jobs, logs: Any) -> float:
    """Return how old a line of a running job is, as a median, when an answer has it first."""
    names = jobs.start(CLOCK.format(0.7), 1)
    follower = _Follower(jobs.sagemaker, logs, names[0])
    ages: list[float] = []
    while len(ages) < LINES + 1:
        ages.extend(time.time() - float(line) for line in follower.new_lines() if line.replace(".", "").isdigit())
        time.sleep(0.01)
    jobs.stop(names)
    # The first answer has lines from before the first look.
    return statistics.median(ages[1:])


def _following(jobs: _Jobs, logs: Any, server_process: int) -> float:
    """Return the CPU seconds that the server takes in a second while all clients follow all jobs."""
    names = jobs.start(CLOCK.format(1), JOBS)
    is_over = threading.Event()
    followers = [_Follower(jobs.sagemaker, logs, names[number % JOBS]) for number in range(CLIENTS)]
    threads = [
        threading.Thread(target=each.follow, args=(is_over, INTERVAL * number / CLIENTS))
        for number, each in enumerate(followers)
    ]
    for thread in threads:
        thread.start()
    until(lambda: all(each.looks > 1 for each in followers), 120)
    looks, before, began = sum(each.looks for each in followers), cpu_seconds(server_process), time.monotonic()
    time.sleep(MEASURED)
    taken, lasted = cpu_seconds(server_process) - before, time.monotonic() - began
    looks = sum(each.looks for each in followers) - looks
    is_over.set()
    for thread in threads:
        thread.join()
    jobs.stop(names)
    # Clients that do not get their answers in time are not what is promised.
    assert looks >= 0.8 * CLIENTS * (lasted / INTERVAL - 1), looks
    assert all(each.lines for each in followers)
    return taken / lasted


class _Follower:
    """A client that asks for a job's status and its new lines."""

    def __init__(self, sagemaker: Any, logs: Any, job: str) -> None:
        self._sagemaker, self._logs, self._job = sagemaker, logs, job
        self._place: dict[str, Any] = {"startFromHead": True}
        self._stream = ""
        self.looks = self.lines = 0

    def follow(self, is_over: threading.Event, offset: float) -> None:
        """Look once in `INTERVAL`, the first time ``offset`` seconds from now."""
        next_look = time.monotonic() + offset
        while not is_over.wait(max(0.0, next_look - time.monotonic())):
            next_look += INTERVAL
            self._sagemaker.describe_training_job(TrainingJobName=self._job)
            self.lines += sum(1 for _ in self.new_lines())
            self.looks += 1

    def new_lines(self) -> Iterator[str]:
        """Yield the lines since the last call."""
        if not self._stream:
            streams = self._logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=f"{self._job}/")
            if not streams["logStreams"]:
                return
            self._stream = streams["logStreams"][0]["logStreamName"]
        answer = self._logs.get_log_events(logGroupName=GROUP, logStreamName=self._stream, **self._place)
        self._place = {"nextToken": answer["nextForwardToken"]}
        yield from (event["message"] for event in answer["events"])
