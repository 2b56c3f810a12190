"""``train`` to the script's first line, against bare Python and AWS's sagemaker-training; 1,000,000 lines of a script."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Figure, amount, in_turn
from tests.fakes import wheels
from tests.fakes.host_folders import write_host
from tests.references import environment

# The script's parent is the launcher: its highest resident size so far stands in /proc.
SCRIPT = """import time
first = time.monotonic_ns()
import os
lines = open(f"/proc/{os.getppid()}/status").read().splitlines()
peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
open(os.environ["FIRST_LINE"], "w").write(f"{first} {peak}")
"""
LINES = amount(1_000_000, smallest=2_000)
# Written in blocks, so that what is timed is the relay and not Python's print.
PRINTS = f"""import os, sys, time
open(os.environ["BEGAN"], "w").write(str(time.monotonic()))
block = b"".join(b"step %06d loss=0.123456 accuracy=0.9876 and some more words\\n" % n for n in range(1000))
for _ in range({LINES // 1000}):
    sys.stdout.buffer.write(block)
sys.stdout.buffer.flush()
lines = open(f"/proc/{{os.getppid()}}/status").read().splitlines()
peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
open(os.environ["PEAK"], "w").write(peak)
"""


def base_folder(folder: Path, **changes: Any) -> Path:
    """Write an /opt/ml tree with the script in it; sagemaker-training waits until its host's name resolves."""
    submitted = {"sagemaker_program": "first.py", "sagemaker_submit_directory": f"{folder}/code"}
    return write_host(folder, "localhost", ("localhost",), {"first.py": SCRIPT}, channels=(), **submitted, **changes)


def folder_with_requirements(folder: Path) -> Path:
    """Write an /opt/ml tree whose requirements are installed into the cache beside it."""
    cluster = {"isolate_requirements": True, "environments": str(folder / "environments")}
    base = base_folder(folder / "opt-ml", cluster=cluster)
    (base / "code" / wheels.NAME).write_bytes(wheels.extra())
    (base / "code" / "requirements.txt").write_text(f"./{wheels.NAME}\n")
    return base


def run(folder: str) -> list[Figure]:
    reference = environment("sagemaker-training==5.1.4", "setuptools<81")
    base = base_folder(Path(folder) / "opt-ml")
    note = Path(folder) / "first-line"
    peaks: dict[str, float] = {}

    requiring = folder_with_requirements(Path(folder) / "requiring")

    def first_line(label: str, *command: str, base: Path = base) -> float:
        shutil.rmtree(base / "overlay", ignore_errors=True)
        variables = {"PATH": f"{Path(command[0]).parent}:/usr/bin:/bin", "FIRST_LINE": str(note)}
        variables |= {"SAGEMAKER_BASE_DIR": str(base), "HOME": folder}
        began = time.monotonic_ns()
        subprocess.run(command, check=True, timeout=60, env=variables, cwd=folder, capture_output=True)
        first, peak = note.read_text().split()
        peaks[label] = int(peak) / 1024
        return (int(first) - began) / 1e6

    ours = str(Path(sys.executable).parent / "train")
    script = str(base / "code" / "first.py")
    bare, train, cached, theirs = in_turn(
        5,
        lambda: first_line("bare", sys.executable, script),
        lambda: first_line("ours", ours),
        lambda: first_line("cached", ours, base=requiring),
        lambda: first_line("theirs", str(reference / "train")),
    )
    note.unlink()
    return [
        Figure("train to the script's first line, over bare python", train - bare, "ms", 60),
        Figure("the same with sagemaker-training", theirs - bare, "ms"),
        Figure("a cached requirements.txt, over a job without one", cached - train, "ms", 300),
        Figure("launcher's peak memory", peaks["ours"], "MiB", 20),
        Figure("the same with sagemaker-training", peaks["theirs"], "MiB"),
        *_relayed(folder),
    ]


def _relayed(folder: str) -> list[Figure]:
    base = base_folder(Path(folder) / "relay")
    script = base / "code" / "first.py"
    script.write_text(PRINTS)
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
    cat, ours = in_turn(3, lambda: through(plain, "/bin/sh", "-c", piped), lambda: through(relayed, train))
    # The launcher's own lines go to stderr.
    exact = relayed.read_bytes() == plain.read_bytes()
    return [
        Figure("1,000,000 lines under train / through cat", ours / cat, "x", 1.5),
        Figure("the lines arrive byte for byte (1 is yes)", float(exact), "", 1, at_most=False),
        Figure("launcher's peak memory while relaying", int(peak.read_text()) / 1024, "MiB", 20),
    ]
