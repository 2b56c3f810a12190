"""A script that prints 1,000,000 lines under ``train``, against the same lines through ``cat``."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, amount, in_turn
from tests.benchmarks.launcher import base_folder

LINES = amount(1_000_000, smallest=2_000)
# Written in blocks, so that what is timed is the relay and not Python's print.
SCRIPT = f"""import os, sys, time
open(os.environ["BEGAN"], "w").write(str(time.monotonic()))
block = b"".join(b"step %06d loss=0.123456 accuracy=0.9876 and some more words\\n" % n for n in range(1000))
for _ in range({LINES // 1000}):
    sys.stdout.buffer.write(block)
sys.stdout.buffer.flush()
lines = open(f"/proc/{{os.getppid()}}/status").read().splitlines()
peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
open(os.environ["PEAK"], "w").write(peak)
"""


def run(folder: str) -> list[Figure]:
    base = base_folder(Path(folder) / "relay")
    script = base / "code" / "first.py"
    script.write_text(SCRIPT)
    plain, relayed, peak, start = (Path(folder) / name for name in ("plain", "relayed", "peak", "start"))

    def through(output: Path, *command: str) -> float:
        variables = {"PATH": "/usr/bin:/bin", "SAGEMAKER_BASE_DIR": str(base), "PEAK": str(peak)}
        variables["BEGAN"] = str(start)
        with output.open("wb") as file:
            subprocess.run(command, check=True, timeout=60, stdout=file, stderr=subprocess.DEVNULL, env=variables)
            ended = time.monotonic()
        # From the script's first line to the end of everything: what comes before has a figure of its own.
        return ended - float(start.read_text())

    train = str(Path(sys.executable).parent / "train")
    piped = f'"{sys.executable}" "{script}" | cat'
    cat, ours = in_turn(
        5,
        lambda: through(plain, "/bin/sh", "-c", piped),
        lambda: through(relayed, train),
    )
    # The launcher's own lines go to stderr.
    exact = relayed.read_bytes() == plain.read_bytes()
    return [
        Figure("1,000,000 lines under train / through cat", ours / cat, "x", 1.5),
        Figure("the lines arrive byte for byte (1 is yes)", float(exact), "", 1, at_most=False),
        Figure("launcher's peak memory while relaying", int(peak.read_text()) / 1024, "MiB", 20),
    ]
