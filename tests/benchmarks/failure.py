"""One rank dies: the seconds until the job is Failed and all its processes have ended."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, amount
from tests.fakes.processes import processes_naming

from scriptmode import MPI, Estimator, TrainingJob
from scriptmode.data_dir import default_data_dir

# Every rank notes its process; rank 2 dies once all are up, the others would go on for long.
SCRIPT = """import os, pathlib, signal, time
notes = pathlib.Path(os.environ["NOTES"])
rank = os.environ["OMPI_COMM_WORLD_RANK"]
(notes / f"rank-{rank}").write_text(str(os.getpid()))
deadline = time.monotonic() + 30
while len(list(notes.glob("rank-*"))) < 4 and time.monotonic() < deadline:
    time.sleep(0.01)
if rank == "2":
    (notes / "died").write_text(str(time.monotonic()))
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(600)
"""
RUNS = amount(5, smallest=1)


def run(folder: str) -> list[Figure]:
    times = [once(Path(folder) / f"run-{number}") for number in range(RUNS)]
    return [Figure("one of 4 ranks killed: job Failed and every process gone", statistics.median(times), "s", 3)]


def once(folder: Path) -> float:
    notes = folder / "notes"
    notes.mkdir(parents=True)
    (folder / "dies.py").write_text(SCRIPT)
    job = Estimator(
        entry_point=str(folder / "dies.py"), instance_count=2, instance_type="local_process",
        distribution=MPI(processes_per_host=2), environment={"NOTES": str(notes)}, max_run=120,
    ).fit(wait=False)  # fmt: skip
    ended = time.monotonic() + 120
    while not over(job):
        if time.monotonic() > ended:
            raise TimeoutError(f"{job.name} is {job.status} after 120 s")
        time.sleep(0.02)
    return time.monotonic() - float((notes / "died").read_text())


def over(job: TrainingJob) -> bool:
    return job.status == "Failed" and not processes_naming(f"{default_data_dir()}/jobs/{job.name}")
