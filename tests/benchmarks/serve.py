"""Creates and lists of `scriptmode serve`, compared with moto's server, and its memory."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.benchmarks.command_line import make_jobs
from tests.benchmarks.figures import Figure, amount
from tests.fakes.archives import packed
from tests.foreign_suites.clients_suite import JOB, PROGRAM, Account

from scriptmode.testing import server
from scriptmode_local._store.job_store import JobStore

RUNS, AT_ONCE, CREATES, LISTED, LISTS = amount((20, 50, 200, 1000, 50), smallest=(1, 2, 4, 10, 2))


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
        memory = int(Path(f"/proc/{running.process.pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024
        ours.stop()
    moto.stop()
    make_jobs(JobStore(Path(folder) / "listed"), LISTED)
    with server("--s3", "memory", data_dir=f"{folder}/listed") as running:
        listing = Client(running.url).sagemaker.list_training_jobs
        slowest_list = max(taken(listing, MaxResults=100) for _ in range(LISTS))
    return [
        Figure("CreateTrainingJob of scriptmode serve", one, "ms"),
        Figure("the same of moto's server", reference, "ms"),
        Figure("the fastest of the first divided by that of the second", fastest / fastest_reference, "x", 4),
        Figure(f"the slowest of {AT_ONCE} creates at once", slowest, "ms", 2000),
        Figure(f"memory of the server after {CREATES} creates", memory, "MiB", 150),
        Figure(f"the slowest of {LISTS} lists of 100 of {LISTED:,} jobs", slowest_list, "ms", 100),
    ]


class Client(Account):
    """A client that creates jobs, of which the server runs one, which sleeps."""

    def __init__(self, url: str) -> None:
        super().__init__({"AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1"})
        source = packed({"training.py": "import time\ntime.sleep(900)\n"})
        self.s3.put_object(Bucket="clients", Key="source.tar.gz", Body=source)

    def create(self) -> float:
        """Create a job; return the milliseconds it took."""
        name = f"job-{time.time_ns()}"
        return taken(self.sagemaker.create_training_job, TrainingJobName=name, HyperParameters=PROGRAM, **JOB)

    def stop(self) -> None:
        """Stop the jobs, and wait for their end: the server leaves its S3 to jobs in progress."""
        listing = self.sagemaker.list_training_jobs
        while jobs := listing(StatusEquals="InProgress", MaxResults=100)["TrainingJobSummaries"]:
            for job in jobs:
                self.sagemaker.stop_training_job(TrainingJobName=job["TrainingJobName"])
        while listing(StatusEquals="Stopping")["TrainingJobSummaries"]:
            time.sleep(0.1)


def taken(call: Any, **arguments: object) -> float:
    """Return the milliseconds of a call."""
    begun = time.perf_counter()
    call(**arguments)
    return 1000 * (time.perf_counter() - begun)
