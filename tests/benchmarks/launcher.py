"""``train`` to the script's first line, against bare Python and AWS's sagemaker-training."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, in_turn
from tests.fakes import wheels
from tests.references import environment

from scriptmode.platforms.local.hosts.process_host import ProcessHost
from scriptmode_runtime.processes import system

# The script's parent is the launcher: its highest resident size so far stands in /proc.
SCRIPT = """import time
first = time.monotonic_ns()
import os
lines = open(f"/proc/{os.getppid()}/status").read().splitlines()
peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
open(os.environ["FIRST_LINE"], "w").write(f"{first} {peak}")
"""


def base_folder(folder: Path) -> Path:
    """Write an /opt/ml tree with the script in it, as the platform does."""
    config = folder / "input" / "config"
    config.mkdir(parents=True)
    (folder / "code").mkdir()
    (folder / "code" / "first.py").write_text(SCRIPT)
    for name, content in {
        "hyperparameters": {
            "sagemaker_program": '"first.py"',
            "sagemaker_submit_directory": json.dumps(f"{folder}/code"),
        },
        "resourceconfig": {
            # A name that resolves: sagemaker-training waits until every host's does.
            "current_host": "localhost",
            "hosts": ["localhost"],
            "network_interface_name": "lo",
        },
        "inputdataconfig": {},
    }.items():
        (config / f"{name}.json").write_text(json.dumps(content))
    return folder


def folder_with_requirements(folder: Path) -> Path:
    """Write an /opt/ml tree whose requirements are installed into the cache beside it."""
    base = base_folder(folder / "opt-ml")
    (base / "code" / wheels.NAME).write_bytes(wheels.extra())
    (base / "code" / "requirements.txt").write_text(f"./{wheels.NAME}\n")
    cluster = {"isolate_requirements": True, "environments": str(folder / "environments")}
    (base / "input" / "config" / "scriptmode.json").write_text(json.dumps(cluster))
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
        subprocess.run(
            command,
            check=True,
            timeout=60,
            env=variables,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        first, peak = note.read_text().split()
        peaks[label] = int(peak) / 1024
        return (int(first) - began) / 1e6

    ours = str(Path(sys.executable).parent / "train")
    script = str(base / "code" / "first.py")
    measured = in_turn(
        9,
        lambda: first_line("bare", sys.executable, script),
        lambda: first_line("ours", ours),
        lambda: first_line("cached", ours, base=requiring),
        lambda: first_line("theirs", str(reference / "train")),
    )
    note.unlink()
    bare, train, cached, theirs = measured
    host, process = in_turn(15, lambda: _start_host(base, Path(folder) / "log"), _start_process)
    return [
        Figure("train to the script's first line, over bare python", train - bare, "ms", 60),
        Figure("the same with sagemaker-training", theirs - bare, "ms"),
        Figure("a cached requirements.txt, over a job without one", cached - train, "ms", 300),
        Figure("start of a process host with its own /opt/ml, over a process", host - process, "ms", 15),
        Figure("launcher's peak memory", peaks["ours"], "MiB", 20),
        Figure("the same with sagemaker-training", peaks["theirs"], "MiB"),
    ]


def _start_host(base: Path, log: Path) -> float:
    """Return the milliseconds until a host with its own ``/opt/ml`` has started."""
    host = ProcessHost("algo-1", ("/bin/true",), {}, base, log, base, log)
    began = time.monotonic_ns()
    host.start()
    taken = (time.monotonic_ns() - began) / 1e6
    if host.refusal:
        raise SystemExit(str(host.refusal))
    while host.poll() is None:
        time.sleep(0.001)
    return taken


def _start_process() -> float:
    """Return the milliseconds until a process has started that is bound to this one, as a host is."""
    began = time.monotonic_ns()
    with subprocess.Popen(("/bin/true",), start_new_session=True, preexec_fn=system.die_with_parent):  # noqa: PLW1509
        return (time.monotonic_ns() - began) / 1e6
