"""Jobs on a Slurm cluster of two nodes on this machine, against sbatch and srun by hand."""

from __future__ import annotations

import os
import re
import shlex
import sys
import threading
import time
from pathlib import Path
from typing import Callable

from tests.benchmarks.figures import Figure, UnavailableError, amount, in_turn
from tests.fakes.processes import processes_naming, until
from tests.slurm.cluster import Cluster, why_not

from scriptmode import Estimator, Slurm

#: Seconds of following a job.
FOLLOWED = amount(15, smallest=2)
#: Says when it began, then what the job's hyperparameter "then" asks for.
SCRIPT = """
import os, sys, time
print("began", time.time(), flush=True)
if "fail" in sys.argv and os.environ["SM_CURRENT_HOST"] == "algo-2":
    print("failed", time.time(), flush=True)
    sys.exit(1)
if "wait" in sys.argv or "fail" in sys.argv:
    time.sleep(600)
"""
#: What slurmctld is asked by its own daemons, and by the program that counts.
_OF_DAEMONS = re.compile(r"MESSAGE_|REQUEST_(PING|STATS_INFO|COMPLETE|STEP_COMPLETE)|ACCOUNTING")


def run(folder: str) -> list[Figure]:
    if reason := why_not():
        raise UnavailableError(reason)
    cluster = Cluster(folder)
    os.environ["SLURM_CONF"] = cluster.environment["SLURM_CONF"]
    try:
        return [*_starts(cluster, Path(folder)), _calls(cluster, Path(folder)), _failure(Path(folder))]
    finally:
        cluster.close()


def _estimator(folder: Path, then: str = "end") -> Estimator:
    code = folder / "code"
    code.mkdir(exist_ok=True)
    (code / "train.py").write_text(SCRIPT)
    return Estimator(
        entry_point="train.py", source_dir=str(code), instance_count=2, instance_type="slurm",
        platform=Slurm(data_dir=folder / "data"), hyperparameters={"then": then},
    )  # fmt: skip


def _starts(cluster: Cluster, folder: Path) -> list[Figure]:
    estimator = _estimator(folder)
    script = shlex.join([sys.executable, str(folder / "code" / "train.py")])

    def ours() -> float:
        _await_idle(cluster)
        began = time.time()
        job = estimator.fit(logs=False)
        return _last("began", [event.message for event in job.logs()]) - began

    def bare() -> float:
        output = folder / "bare.log"
        output.unlink(missing_ok=True)
        _await_idle(cluster)
        began = time.time()
        options = ("--nodes=2", "--ntasks-per-node=1", f"--output={output}", "--wait", "--parsable")
        cluster.run("sbatch", *options, input=f"#!/bin/sh\nsrun {script}\n", cwd="/")
        return _last("began", output.read_text().splitlines()) - began

    fit, by_hand = in_turn(3, ours, bare)
    return [
        Figure("fit to the first line of the script on both nodes", fit, "s"),
        Figure("the same with sbatch and srun by hand", by_hand, "s"),
        Figure("fit over sbatch and srun by hand", fit - by_hand, "s", 1.0),
    ]


def _calls(cluster: Cluster, folder: Path) -> Figure:
    """Count what slurmctld is asked while a client follows one running job."""
    job = _estimator(folder, "wait").fit(wait=False)
    _until_lines(job, "began", 2)
    following = threading.Thread(target=lambda: list(job.logs(follow=True)))
    following.start()
    time.sleep(1)
    before = _client_calls(cluster)
    time.sleep(FOLLOWED)
    asked = _client_calls(cluster) - before
    job.stop()
    following.join()
    return Figure("calls of slurmctld in a minute of following a job", asked * 60 / FOLLOWED, "", 5)


def _failure(folder: Path) -> Figure:
    """Return the time from the end of a failing script until no process of the job is left on the nodes."""

    def measure() -> float:
        job = _estimator(folder, "fail").fit(wait=False)
        lines = _until_lines(job, "failed", 1)
        until(lambda: not processes_naming(f"BASE_DIR={folder}/data"))
        return time.time() - _last("failed", lines)

    return Figure("failure of one host until no process is left", in_turn(2, measure)[0], "s", 3)


def _await_idle(cluster: Cluster) -> None:
    while cluster.run("sinfo", "--noheader", "--partition=batch", "--format=%t %D").stdout.split() != ["idle", "2"]:
        time.sleep(0.1)


def _client_calls(cluster: Cluster) -> int:
    statistics_of_calls = cluster.run("sdiag").stdout.partition("by message type")[2].partition("by user")[0]
    found = re.findall(r"(\w+)\s+\(\s*\d+\) count:(\d+)", statistics_of_calls)
    return sum(int(count) for name, count in found if not _OF_DAEMONS.match(name))


def _until_lines(job: object, word: str, count: int) -> list[str]:
    events: Callable[[], object] = job.logs  # type: ignore[attr-defined]
    while True:
        lines = [event.message for event in events()]  # type: ignore[attr-defined]
        if sum(line.startswith(f"{word} ") for line in lines) >= count:
            return lines
        time.sleep(0.1)


def _last(word: str, lines: list[str]) -> float:
    return max(float(line.split()[1]) for line in lines if line.startswith(f"{word} "))
