"""Start-up of the command: help, compared with a bare Python, and a list of 10,000 jobs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

from tests.benchmarks.figures import Figure, amount, in_turn

from scriptmode._core.request.parse import parse_request
from scriptmode_local._store.job_record import Job
from scriptmode_local._store.job_store import JobStore
from scriptmode_local._store.state import starting_state

RUNS = 9
JOBS = amount(10_000, smallest=10)
SCRIPTMODE = str(Path(sys.executable).with_name("scriptmode"))
LIVES = ("Downloading", "Training", "Uploading", "Completed")


def run(folder: str) -> list[Figure]:
    store = JobStore(Path(folder) / "listed")
    make_jobs(store, JOBS)
    listing = starting(SCRIPTMODE, "list", SCRIPTMODE_DATA_DIR=str(store.data_dir))
    first = listing()
    bare, program, many = in_turn(
        RUNS, starting(sys.executable, "-c", "pass"), starting(SCRIPTMODE, "--help"), listing, of=min
    )
    return [
        Figure("scriptmode --help, over a bare Python", program - bare, "ms", 100),
        Figure("scriptmode list, 10,000 jobs, Python's start included", many, "ms", 400),
        Figure("the same, none of them listed before", first, "ms"),
    ]


def starting(*argv: str, **variables: str) -> Callable[[], float]:
    """Return a function that runs a command to its end and returns the milliseconds it took."""

    def measure() -> float:
        begun = time.perf_counter()
        done = subprocess.run(argv, check=True, capture_output=True, env={**os.environ, **variables})
        taken = 1000 * (time.perf_counter() - begun)
        assert not variables or len(done.stdout.splitlines()) in (JOBS, JOBS + 1)
        return taken

    return measure


def make_jobs(store: JobStore, jobs: int) -> None:
    """Write the records of jobs that completed, without waiting for the disk as the service does."""
    first, now = "training-000000", int(time.time()) + 0.5
    state = starting_state(first, f"arn:aws:sagemaker:us-east-1:000000000000:training-job/{first}", now)
    for second, secondary in enumerate(LIVES):
        state = state.with_status(secondary, now + second)
    request = parse_request({
        "TrainingJobName": first, "ResourceConfig": {"InstanceType": "local_process", "InstanceCount": 1}
    })  # fmt: skip
    job = Job(request, state.arn, "us-east-1", sys.executable, 120.0)
    files = [(name, json.dumps(of.to_json(), indent=1)) for name, of in (("job.json", job), ("state.json", state))]
    for number in range(jobs):
        path = store.folder(f"training-{number:06d}").path
        path.mkdir(parents=True)
        for name, text in files:
            # The times of the clock are its only numbers that end with .5.
            earlier = re.sub(r"\d+\.5\b", lambda moment, by=number: str(float(moment[0]) - by), text)
            (path / name).write_text(earlier.replace(first, path.name))
