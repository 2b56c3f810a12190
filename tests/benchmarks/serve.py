"""Creates and lists of `scriptmode serve`, compared with moto's server, and its memory; for some minutes by ten clients."""

from __future__ import annotations

import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.benchmarks.command_line import make_jobs
from tests.benchmarks.figures import Figure, amount
from tests.fakes.archives import packed
from tests.foreign_suites.clients_suite import JOB, PROGRAM, Account

from scriptmode.testing import RunningServer, server
from scriptmode_local._store.job_store import JobStore

RUNS, AT_ONCE, CREATES, LISTED, LISTS = amount((20, 50, 200, 1000, 50), smallest=(1, 2, 4, 10, 2))
#: Clients that use the server at once, and the seconds after which its memory is compared.
CLIENTS, EARLY_SECONDS, LATE_SECONDS = amount((10, 84, 180), smallest=(2, 1, 2))
#: How many clients describe a job, every so many seconds, how often.
CROWDS = amount(((100, 1, 20), (1000, 10, 3)), smallest=((4, 0.1, 2), (8, 0.1, 2)))


def run(folder: str) -> list[Figure]:
    from moto.server import ThreadedMotoServer

    moto = ThreadedMotoServer(port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    with server("--queue", "1", data_dir=f"{folder}/created") as running:
        ours, theirs = Client(running.url), Client(f"http://{host}:{port}")
        pairs = [(ours.create(), theirs.create()) for _ in range(RUNS + 1)][1:]
        one, reference = (statistics.median(values) for values in zip(*pairs))
        # Other programs slow single creates down, and ours alone where they use the disk: moto's server writes nothing.
        fastest, fastest_reference = map(min, zip(*pairs))
        with ThreadPoolExecutor(AT_ONCE) as threads:
            slowest = max(threads.map(lambda _: ours.create(), range(AT_ONCE)))
        for _ in range(CREATES - AT_ONCE - RUNS):
            ours.create()
        memory = memory_of(running)
        ours.stop()
    moto.stop()
    make_jobs(JobStore(Path(folder) / "listed"), LISTED)
    with server("--queue", "1", data_dir=f"{folder}/listed") as running:
        ours = Client(running.url)
        listing = ours.sagemaker.list_training_jobs
        slowest_list = max(taken(listing, MaxResults=100) for _ in range(LISTS))
        ours.create("watched")
        crowds = {(clients, pause): describe(running, clients, pause, times) for clients, pause, times in CROWDS}
        ours.stop()
        with ThreadPoolExecutor(CLIENTS) as threads:
            begun = time.monotonic()
            used = [threads.submit(Client(running.url).use, begun + LATE_SECONDS) for _ in range(CLIENTS)]
            time.sleep(EARLY_SECONDS)
            early = memory_of(running)
        late, lists = memory_of(running), [milliseconds for client in used for milliseconds in client.result()]
    return [
        Figure("CreateTrainingJob of scriptmode serve", one, "ms"),
        Figure("the same of moto's server", reference, "ms"),
        Figure("the fastest of the first divided by that of the second", fastest / fastest_reference, "x", 4),
        Figure(f"the slowest of {AT_ONCE} creates at once", slowest, "ms", 2000),
        Figure(f"memory of the server after {CREATES} creates", memory, "MiB", 150),
        Figure(f"the slowest of {LISTS} lists of 100 of {LISTED:,} jobs", slowest_list, "ms", 100),
        *(
            Figure(f"{clients:,} clients describe a job every {pause} s: {which}", value, "ms", bound)
            for (clients, pause), spent in crowds.items()
            for which, value, bound in (
                ("median", statistics.median(spent), 20),
                ("99 of 100", statistics.quantiles(spent, n=100)[-1], 200),
            )
        ),
        Figure(
            f"a list while {CLIENTS} clients create and delete jobs, of {len(lists)}", statistics.median(lists), "ms"
        ),
        Figure("99 of 100 of them", statistics.quantiles(lists, n=100)[-1], "ms"),
        Figure(f"memory of the server after {EARLY_SECONDS} s of these clients", early, "MiB"),
        Figure(f"memory after {LATE_SECONDS} s divided by that", late / early, "x", 1.04),
    ]


class Client(Account):
    """A client that creates jobs, of which the server runs one, which sleeps."""

    def __init__(self, url: str) -> None:
        super().__init__({"AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1"})
        source = packed({"training.py": "import time\ntime.sleep(900)\n"})
        self.s3.put_object(Bucket="clients", Key="source.tar.gz", Body=source)

    def create(self, name: str = "") -> float:
        """Create a job; return the milliseconds it took."""
        name = name or f"job-{time.time_ns()}"
        return taken(self.sagemaker.create_training_job, TrainingJobName=name, HyperParameters=PROGRAM, **JOB)

    def use(self, end: float) -> list[float]:
        """Create, list, stop and delete jobs until the end, but one at least; return the lists' milliseconds."""
        lists, sagemaker = [], self.sagemaker
        while not lists or time.monotonic() < end:
            name = f"job-{time.time_ns()}"
            self.create(name)
            lists.append(taken(sagemaker.list_training_jobs, MaxResults=100))
            sagemaker.stop_training_job(TrainingJobName=name)
            while sagemaker.describe_training_job(TrainingJobName=name)["TrainingJobStatus"] != "Stopped":
                time.sleep(0.2)
            sagemaker.delete_training_job(TrainingJobName=name)
            time.sleep(1)
        return lists

    def stop(self) -> None:
        """Stop the jobs, and wait for their end: the server leaves its S3 to jobs in progress."""
        listing = self.sagemaker.list_training_jobs
        while jobs := listing(StatusEquals="InProgress", MaxResults=100)["TrainingJobSummaries"]:
            for job in jobs:
                self.sagemaker.stop_training_job(TrainingJobName=job["TrainingJobName"])
        while listing(StatusEquals="Stopping")["TrainingJobSummaries"]:
            time.sleep(0.1)


def describe(running: RunningServer, clients: int, pause: float, times: int) -> list[float]:
    """Return the milliseconds of calls of clients that begin one after the other, each call on a connection."""
    headers = {"X-Amz-Target": "SageMaker.DescribeTrainingJob", "Content-Type": "application/x-amz-json-1.1"}

    def watch(number: int) -> list[float]:
        spent = []
        for turn in range(times):
            time.sleep(max(0.0, begun + pause * (turn + number / clients) - time.monotonic()))
            asked = time.perf_counter()
            connection = HTTPConnection(urlsplit(running.url).netloc, timeout=60)
            connection.request("POST", "/", '{"TrainingJobName": "watched"}', headers)
            with connection.getresponse() as answer:
                assert json.load(answer)["TrainingJobName"] == "watched"
            connection.close()
            spent.append(1000 * (time.perf_counter() - asked))
        return spent

    with ThreadPoolExecutor(clients) as threads:
        begun = time.monotonic() + 1
        return [milliseconds for spent in threads.map(watch, range(clients)) for milliseconds in spent]


def memory_of(running: RunningServer) -> float:
    """Return the MiB of memory of a server's process."""
    return int(Path(f"/proc/{running.process.pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


def taken(call: Any, **arguments: object) -> float:
    """Return the milliseconds of a call."""
    begun = time.perf_counter()
    call(**arguments)
    return 1000 * (time.perf_counter() - begun)
