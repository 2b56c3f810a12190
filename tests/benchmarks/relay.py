"""A script that prints 1,000,000 lines under ``train``, against the same lines through ``cat``."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, in_turn
from tests.benchmarks.launcher import base_folder

LINES = 1_000_000
# Written in blocks, so that what is timed is the relay and not Python's print.
SCRIPT = f"""import os, sys
block = b"".join(b"step %06d loss=0.123456 accuracy=0.9876 and some more words\\n" % n for n in range(1000))
for _ in range({LINES // 1000}):
    sys.stdout.buffer.write(block)
sys.stdout.buffer.flush()
lines = open(f"/proc/{{os.getppid()}}/status").read().splitlines()
peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
if len(sys.argv) == 1 and "PEAK" in os.environ:
    open(os.environ["PEAK"], "w").write(peak)
"""


def run(folder: str) -> list[Figure]:
    base = base_folder(Path(folder) / "relay")
    script = base / "code" / "first.py"
    script.write_text(SCRIPT)
    plain, relayed, peak = (Path(folder) / name for name in ("plain", "relayed", "peak"))

    def through(output: Path, *command: str) -> float:
        variables = {"PATH": "/usr/bin:/bin", "SAGEMAKER_BASE_DIR": str(base), "PEAK": str(peak)}
        with output.open("wb") as file:
            began = time.monotonic()
            subprocess.run(command, check=True, stdout=file, stderr=subprocess.DEVNULL, env=variables)
            return time.monotonic() - began

    train = str(Path(sys.executable).parent / "train")
    piped = f'"{sys.executable}" "{script}" | cat'
    cat, ours = in_turn(
        5,
        lambda: through(plain, "/bin/sh", "-c", piped),
        lambda: through(relayed, train),
    )
    wanted, got = (hashlib.sha256(path.read_bytes()) for path in (plain, relayed))
    # The launcher says a line of its own before and after; the script's bytes stand between, whole.
    text = relayed.read_bytes()
    exact = plain.read_bytes() in text or wanted.digest() == got.digest()
    return [
        Figure("1,000,000 lines under train / through cat", ours / cat, "x", 1.5),
        Figure("the lines arrive byte for byte (1 is yes)", float(exact), "", 1, at_most=False),
        Figure("launcher's peak memory while relaying", int(peak.read_text()) / 1024, "MiB", 20),
    ]
