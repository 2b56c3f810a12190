"""Start-up of the command: its help, the help of a verb, and doctor's first line, compared with a bare Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

from tests.benchmarks.figures import Figure, in_turn

RUNS = 21
SCRIPTMODE = str(Path(sys.executable).with_name("scriptmode"))


def run(folder: str) -> list[Figure]:
    bare, program, verb, listed, checked = in_turn(
        RUNS,
        starting(sys.executable, "-c", "pass"),
        starting(SCRIPTMODE, "--help"),
        starting(SCRIPTMODE, "run", "--help"),
        starting(SCRIPTMODE, "list"),
        printing_first_line(SCRIPTMODE, "doctor"),
    )
    return [
        Figure("a bare Python", bare, "ms"),
        Figure("scriptmode --help, over it", program - bare, "ms", 100),
        Figure("scriptmode run --help, over it", verb - bare, "ms"),
        Figure("scriptmode list without jobs, over it", listed - bare, "ms"),
        Figure("scriptmode doctor, to its first line", checked, "ms", 500),
    ]


def starting(*argv: str) -> Callable[[], float]:
    """Return a function that runs a command to its end and returns the milliseconds it took."""

    def measure() -> float:
        begun = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
        return 1000 * (time.perf_counter() - begun)

    return measure


def printing_first_line(*argv: str) -> Callable[[], float]:
    """Return a function that runs a command to its first line of output and returns the milliseconds it took."""

    def measure() -> float:
        begun = time.perf_counter()
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ) as process:
            assert process.stdout
            process.stdout.readline()
            taken = 1000 * (time.perf_counter() - begun)
            process.send_signal(signal.SIGINT)
            process.stdout.read()
        return taken

    return measure
