"""Hosts and ranks of which one fails: the delay until every host and process has ended."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, amount
from tests.fakes.host_folders import write_job
from tests.fakes.processes import processes_naming, until

from scriptmode import MPI, Estimator
from scriptmode.core.machine.data_dir import default_data_dir

ENTRYPOINTS = Path(__file__).parents[2] / "entrypoints"
INHERITED = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
RUNS = amount(3, smallest=1)


def run(folder: str) -> list[Figure]:
    spread = [all_ended(Path(folder) / f"fails-{number}") for number in range(RUNS)]
    killed = [after_killed_rank(Path(folder) / f"killed-{number}") for number in range(RUNS)]
    return [
        Figure("failure on one host of 3 to the end of all, at worst", max(spread), "s", 3),
        Figure("one of 4 ranks killed: job Failed and every process gone", statistics.median(killed), "s", 3),
    ]


def jobs_of(folder: Path, hosts: int, code: str, **switches: object) -> list[Path]:
    """Write the /opt/ml tree of each host."""
    program = {"sagemaker_program": "train.py", "sagemaker_job_name": "measured"}
    return list(write_job(folder, hosts, {"train.py": code}, **program, **switches).values())


def train(base: Path, **variables: str) -> subprocess.Popen[bytes]:
    env = {**INHERITED, "PYTHONPATH": str(ENTRYPOINTS), "SAGEMAKER_BASE_DIR": str(base), **variables}
    with base.with_suffix(".log").open("wb") as log:
        return subprocess.Popen([sys.executable, "-m", "scriptmode_runtime"], env=env, stdout=log, stderr=log)


def all_ended(folder: Path) -> float:
    """Fail one of three hosts while the others are busy and deaf to SIGTERM; give how long until all ended."""
    code = """import os, signal, sys, time
if os.environ["SM_CURRENT_HOST"] == "algo-2":
    print("fails", flush=True)
    sys.exit(9)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
"""
    bases = jobs_of(folder, 3, code, sagemaker_multi_worker_mirrored_strategy_enabled=True)
    launchers = [train(base) for base in bases[::2]]
    for base in bases[::2]:
        wait_for(base.with_suffix(".log"), b"worker started")
    launchers.append(train(bases[1]))
    failed_at = wait_for(bases[1].with_suffix(".log"), b"fails")
    codes = {launcher.wait(600) for launcher in launchers}
    if codes != {9}:
        raise RuntimeError(f"every host should end with 9, and they ended with {codes}")
    return time.monotonic() - failed_at


# Every rank notes its process; rank 2 dies once all are up, the others would go on for long.
RANKS = """import os, pathlib, signal, time
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


def after_killed_rank(folder: Path) -> float:
    """Kill one rank of a job; return the seconds until the job has failed and no process of it is left."""
    folder.mkdir()
    (folder / "dies.py").write_text(RANKS)
    job = Estimator(
        entry_point=str(folder / "dies.py"), instance_count=2, instance_type="local_process",
        distribution=MPI(processes_per_host=2), environment={"NOTES": str(folder)}, max_run=120,
    ).fit(wait=False)  # fmt: skip
    until(lambda: job.status == "Failed" and not processes_naming(f"{default_data_dir()}/jobs/{job.name}"), 120)
    return time.monotonic() - float((folder / "died").read_text())


def wait_for(log: Path, text: bytes) -> float:
    """Wait until a log holds a text; give when."""
    deadline = time.monotonic() + 60
    while text not in log.read_bytes():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{log} does not say {text!r}: {log.read_text()[-500:]}")
        time.sleep(0.002)
    return time.monotonic()
