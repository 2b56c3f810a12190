"""Records of 3 KB out of a pipe in vectors, with the newest TensorFlow, against `cat` of the pipe."""

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


def run(folder: str) -> list[Figure]:
    del folder  # on a disk
    python = sys.executable if sys.version_info >= (3, 12) else str(environment(OTHER) / "python")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        variables = {**os.environ, "PYTHONPATH": str(ENTRYPOINTS)}
        command = (python, "-W", "ignore", PROGRAM, f"{memory}/base", str(ROUNDS), str(FILE))
        done = subprocess.run(command, check=False, env=variables, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    version = rounds[0]["version"]
    ratio = statistics.median(rates["vectors"] / rates["cat"] for rates in rounds)
    cat = statistics.median(rates["cat"] for rates in rounds)
    return [
        Figure(f"TF {version}, 3 KB records, vectors / cat", ratio, "x", 0.75, at_most=False),
        Figure(f"TF {version}, cat of 3 KB records", cat, "MB/s"),
    ]
