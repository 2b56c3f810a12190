"""A script that ``scriptmode.testing.entry_point`` runs in the test's process, against ``python train.py``.

The first run of a test process imports scriptmode; the script itself does nothing, so that the others are what a run adds.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from tests.benchmarks.figures import Figure, in_turn

from scriptmode.testing import entry_point

FIRST = """
from scriptmode.testing import entry_point
assert entry_point("train.py", inputs={"train": "data"}).exit_code == 0
"""


def run(folder: str) -> list[Figure]:
    Path(folder, "train.py").touch()
    Path(folder, "data").mkdir()
    Path(folder, "data", "part-0").write_text("1 2 3\n")
    bare, first, later, process, job = in_turn(
        11,
        partial(program, folder, "train.py"),
        partial(program, folder, "-c", FIRST),
        *(partial(entry_point_run, folder, mode) for mode in ("in-process", "process", "job")),
    )
    return [
        Figure("python train.py, which does nothing", bare, "ms"),
        Figure("the first run in a test's process, in addition", first - bare, "ms"),
        Figure("a later run in that process", later, "ms"),
        Figure("a run as one process, in addition", process - bare, "ms"),
        Figure("a run as a job of one host", job, "ms"),
    ]


def program(folder: str, *words: str) -> float:
    """Run Python; return the milliseconds that it took."""
    began = time.monotonic()
    subprocess.run([sys.executable, *words], check=True, cwd=folder)
    return (time.monotonic() - began) * 1000


def entry_point_run(folder: str, mode: str) -> float:
    """Run the script; return the milliseconds that it took."""
    began = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()):
        done = entry_point(f"{folder}/train.py", inputs={"train": f"{folder}/data"}, mode=mode, directory=folder)
    assert done.exit_code == 0, done.log
    return (time.monotonic() - began) * 1000
