"""Start-up of the command: its help, and the help of a verb, compared with a bare Python."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

from tests.benchmarks.figures import Figure, in_turn

RUNS = 21
SCRIPTMODE = str(Path(sys.executable).with_name("scriptmode"))


def run(folder: str) -> list[Figure]:
    bare, program, verb, listed = in_turn(
        RUNS,
        starting(sys.executable, "-c", "pass"),
        starting(SCRIPTMODE, "--help"),
        starting(SCRIPTMODE, "run", "--help"),
        starting(SCRIPTMODE, "list"),
    )
    return [
        Figure("a bare Python", bare, "ms"),
        Figure("scriptmode --help, over it", program - bare, "ms", 100),
        Figure("scriptmode run --help, over it", verb - bare, "ms"),
        Figure("scriptmode list without jobs, over it", listed - bare, "ms"),
    ]


def starting(*argv: str) -> Callable[[], float]:
    """Return a function that runs a command to its end and returns the milliseconds it took."""

    def measure() -> float:
        begun = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
        return 1000 * (time.perf_counter() - begun)

    return measure
