"""``scriptmode list`` over 10,000 jobs of this machine, the first time and from then on, against bare Python."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, amount, in_turn

from scriptmode.platforms.local.store.job_record import Job
from scriptmode.platforms.local.store.job_store import JobStore
from scriptmode.platforms.local.store.state import starting_state
from scriptmode.request.parse import parse_request

JOBS = amount(10_000, smallest=10)
LIVES = ("Downloading", "Training", "Uploading", "Completed")


def run(folder: str) -> list[Figure]:
    store = JobStore(Path(folder) / "listed")
    _make_jobs(store)
    program = shutil.which("scriptmode", path=Path(sys.executable).parent)
    assert program

    def fresh(*argv: str) -> float:
        variables = {"PATH": "/usr/bin:/bin", "HOME": folder, "SCRIPTMODE_DATA_DIR": str(store.data_dir)}
        began = time.monotonic()
        done = subprocess.run(argv, check=True, timeout=60, env=variables, capture_output=True)
        assert len(done.stdout.splitlines()) in (0, JOBS, JOBS + 1)
        return (time.monotonic() - began) * 1000

    first = fresh(program, "list")
    bare, listed = in_turn(9, lambda: fresh(sys.executable, "-c", "pass"), lambda: fresh(program, "list"))
    return [
        Figure("scriptmode list, 10,000 jobs, Python's start included", listed, "ms", 400),
        Figure("the same, over bare python", listed - bare, "ms"),
        Figure("the same, none of them listed before", first, "ms"),
    ]


def _make_jobs(store: JobStore) -> None:
    """Write the records of 10,000 jobs that completed, without waiting for the disk as the service does."""
    now = time.time()
    for number in range(JOBS):
        name = f"training-{number:06d}"
        state = starting_state(name, f"arn:aws:sagemaker:us-east-1:000000000000:training-job/{name}", now - number)
        for second, secondary in enumerate(LIVES):
            state = state.with_status(secondary, now - number + second)
        path = store.folder(name).path
        path.mkdir(parents=True)
        resources = {"InstanceType": "local_process", "InstanceCount": 1}
        request = parse_request({"TrainingJobName": name, "ResourceConfig": resources})
        job = Job(request, state.arn, "us-east-1", sys.executable, 120.0)
        (path / "job.json").write_text(json.dumps(job.to_json(), indent=1))
        (path / "state.json").write_text(json.dumps(state.to_json(), indent=1))
