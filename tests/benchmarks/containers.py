"""Hosts that are containers, against plain `docker run`."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, UnavailableError, in_turn

from scriptmode import Estimator
from scriptmode.containers import build_image

# The clock of a container is this machine's. One write: a print is several where Python does not buffer.
FIRST_LINE = "import os, time; os.write(1, b'first line %d\\n' % time.monotonic_ns())\n"
HOSTS = ("algo-1", "algo-2")


def run(folder: str) -> list[Figure]:
    if not shutil.which("docker") or subprocess.run(("docker", "info"), check=False, capture_output=True).returncode:
        raise UnavailableError("no Docker daemon answers; .ci/docker run make bench NAMES=containers starts one")
    image = build_image("2.15.1")
    ours, plain = in_turn(3, lambda: in_fit(Path(folder), image), lambda: in_docker_run(Path(folder), image))
    return [
        Figure("fit to the first line of the script on 2 container hosts", ours, "s"),
        Figure("the same program in 2 plain docker runs", plain, "s"),
        Figure("fit over plain docker run", ours - plain, "s", 1),
    ]


def in_fit(folder: Path, image: str) -> float:
    """Return the seconds from the call of ``fit`` to the first line of the later host."""
    (folder / "program.py").write_text(FIRST_LINE)
    made = Estimator(
        entry_point=str(folder / "program.py"), instance_count=2, instance_type="local", image_uri=image, max_run=120
    )
    begun = time.monotonic_ns()
    job = made.fit(wait=False)
    job.wait(timeout=600)
    return seconds_to_last("\n".join(event.message for event in job.logs()), begun)


def in_docker_run(folder: Path, image: str) -> float:
    """Return the same for two containers of the image that are not supervised."""
    (folder / "program.py").write_text(FIRST_LINE)
    volume = f"{folder}/program.py:/program.py:ro"
    command = ("docker", "run", "--rm", "--volume", volume, image, "python", "/program.py")
    begun = time.monotonic_ns()
    containers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in HOSTS]
    said = "\n".join(container.communicate(timeout=600)[0] for container in containers)
    return seconds_to_last(said, begun)


def seconds_to_last(said: str, begun: int) -> float:
    lines = [int(line.split()[-1]) for line in said.splitlines() if line.startswith("first line")]
    if len(lines) != len(HOSTS):
        raise RuntimeError(f"{len(HOSTS)} first lines were expected in {said!r}")
    return (max(lines) - begun) / 1e9
