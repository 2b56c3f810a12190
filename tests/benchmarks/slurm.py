"""Jobs on a Slurm cluster of two nodes on this machine, against sbatch and srun by hand."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, UnavailableError, in_turn
from tests.slurm.cluster import Cluster, why_not

from scriptmode import Estimator, Slurm

SCRIPT = 'import time\nprint("began", time.time(), flush=True)\n'


def run(folder: str) -> list[Figure]:
    if reason := why_not():
        raise UnavailableError(reason)
    cluster = Cluster(folder)
    os.environ["SLURM_CONF"] = cluster.environment["SLURM_CONF"]
    try:
        return _starts(cluster, Path(folder))
    finally:
        cluster.close()


def _estimator(folder: Path) -> Estimator:
    code = folder / "code"
    code.mkdir(exist_ok=True)
    (code / "train.py").write_text(SCRIPT)
    return Estimator(
        entry_point="train.py", source_dir=str(code), instance_count=2, instance_type="slurm",
        platform=Slurm(data_dir=folder / "data"),
    )  # fmt: skip


def _starts(cluster: Cluster, folder: Path) -> list[Figure]:
    estimator = _estimator(folder)
    script = shlex.join([sys.executable, str(folder / "code" / "train.py")])

    def ours() -> float:
        _await_idle(cluster)
        began = time.time()
        job = estimator.fit(logs=False)
        return _last_start([event.message for event in job.logs()]) - began

    def bare() -> float:
        output = folder / "bare.log"
        output.unlink(missing_ok=True)
        _await_idle(cluster)
        began = time.time()
        options = ("--nodes=2", "--ntasks-per-node=1", f"--output={output}", "--wait", "--parsable")
        cluster.run("sbatch", *options, input=f"#!/bin/sh\nsrun {script}\n", cwd="/")
        return _last_start(output.read_text().splitlines()) - began

    fit, by_hand = in_turn(3, ours, bare)
    return [
        Figure("fit to the first line of the script on both nodes", fit, "s"),
        Figure("the same with sbatch and srun by hand", by_hand, "s"),
        Figure("fit over sbatch and srun by hand", fit - by_hand, "s", 1.0),
    ]


def _await_idle(cluster: Cluster) -> None:
    while cluster.run("sinfo", "--noheader", "--partition=batch", "--format=%t %D").stdout.split() != ["idle", "2"]:
        time.sleep(0.1)


def _last_start(lines: list[str]) -> float:
    return max(float(line.split()[1]) for line in lines if line.startswith("began "))
