"""``train`` to the script's first line, against bare Python and AWS's sagemaker-training."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Figure, in_turn
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


def base_folder(folder: Path, **changes: Any) -> Path:
    """Write an /opt/ml tree with the script in it; sagemaker-training waits until its host's name resolves."""
    submitted = {"sagemaker_program": "first.py", "sagemaker_submit_directory": f"{folder}/code"}
    return write_host(folder, "localhost", ("localhost",), {"first.py": SCRIPT}, channels=(), **submitted, **changes)


def run(folder: str) -> list[Figure]:
    reference = environment("sagemaker-training==5.1.4", "setuptools<81")
    base = base_folder(Path(folder) / "opt-ml")
    note = Path(folder) / "first-line"
    peaks: dict[str, float] = {}

    def first_line(label: str, *command: str) -> float:
        variables = {"PATH": f"{Path(command[0]).parent}:/usr/bin:/bin", "FIRST_LINE": str(note)}
        variables |= {"SAGEMAKER_BASE_DIR": str(base), "HOME": folder}
        began = time.monotonic_ns()
        subprocess.run(command, check=True, timeout=600, env=variables, cwd=folder, capture_output=True)
        first, peak = note.read_text().split()
        peaks[label] = int(peak) / 1024
        return (int(first) - began) / 1e6

    ours = str(Path(sys.executable).parent / "train")
    script = str(base / "code" / "first.py")
    bare, train, theirs = in_turn(
        9,
        lambda: first_line("bare", sys.executable, script),
        lambda: first_line("ours", ours),
        lambda: first_line("theirs", str(reference / "train")),
        of=min,
    )
    note.unlink()
    return [
        Figure("train to the script's first line, over bare python", train - bare, "ms", 60),
        Figure("the same with sagemaker-training", theirs - bare, "ms"),
        Figure("launcher's peak memory", peaks["ours"], "MiB", 20),
        Figure("the same with sagemaker-training", peaks["theirs"], "MiB"),
    ]
