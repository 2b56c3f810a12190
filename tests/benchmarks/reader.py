"""Records out of a pipe with both TensorFlows, against `cat` of the pipe and `TFRecordDataset` on a cached file."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.figures import Figure, amount
from tests.references import environment

ROUNDS = amount(3, smallest=1)
#: Bytes of a file of records.
FILE = amount(32 << 20, smallest=1 << 20)
PROGRAM = Path(__file__).with_name("reader_program.py")
ENTRYPOINTS = Path(__file__).parents[2] / "entrypoints"
OTHER = "tensorflow-cpu==2.21.0"
#: Of `cat`'s rate.
BOUNDS = {
    "vectors": {"100 B": 0.28, "3 KB": 0.75, "150 KB": 0.75},
    "scalars": {"100 B": 0.08, "3 KB": 0.48, "150 KB": 0.70},
}


def run(folder: str) -> list[Figure]:
    del folder  # on a disk
    pythons = [sys.executable]
    if sys.version_info < (3, 12):
        pythons.append(str(environment(OTHER) / "python"))
    return [figure for python in pythons for figure in measured(python)]


def measured(python: str) -> list[Figure]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        variables = {**os.environ, "PYTHONPATH": str(ENTRYPOINTS)}
        command = (python, "-W", "ignore", PROGRAM, f"{memory}/base", str(ROUNDS), str(FILE))
        done = subprocess.run(command, check=False, env=variables, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    version = rounds[0]["version"]

    def ratio(size: str, one: str, other: str) -> float:
        return statistics.median(rates[size][one] / rates[size][other] for rates in rounds)

    figures = [
        Figure(f"TF {version}, {size} records, {form} / cat", ratio(size, form, "cat"), "x", bound, at_most=False)
        for form, bounds in BOUNDS.items()
        for size, bound in bounds.items()
    ]
    name = f"TF {version}, 3 KB records, vectors / TFRecordDataset.batch, cached file"
    figures.append(Figure(name, ratio("3 KB", "vectors", "files in vectors"), "x", 1.3, at_most=False))
    cat = statistics.median(rates["3 KB"]["cat"] for rates in rounds)
    return [*figures, Figure(f"TF {version}, cat of 3 KB records", cat, "MB/s")]
