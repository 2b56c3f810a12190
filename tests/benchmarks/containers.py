"""Hosts that are containers, against plain `docker run`."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, UnavailableError, amount, in_turn
from tests.fakes.processes import until

from scriptmode import Estimator
from scriptmode.containers import TENSORFLOW_VERSIONS, build_image
from scriptmode.core.machine.data_dir import default_data_dir

# The clock of a container is this machine's. One write: a print is several where Python does not buffer.
FIRST_LINE = "import os, time; os.write(1, b'first line %d\\n' % time.monotonic_ns())\n"
SLEEPS = "import time; print('up', flush=True); time.sleep(600)\n"
HOSTS = ("algo-1", "algo-2")
RUNS = amount(3, smallest=1)


def run(folder: str) -> list[Figure]:
    if not shutil.which("docker") or subprocess.run(("docker", "info"), check=False, capture_output=True).returncode:
        raise UnavailableError("no Docker daemon answers; .ci/docker run make bench NAMES=containers starts one")
    images = {version: build_image(version) for version in TENSORFLOW_VERSIONS}
    image = images["2.15.1"]
    ours, plain = in_turn(RUNS, lambda: in_fit(Path(folder), image), lambda: in_docker_run(Path(folder), image))
    killed = statistics.median(after_kill(Path(folder), image) for _ in range(RUNS))
    return [
        Figure("fit to the first line of the script on 2 container hosts", ours, "s"),
        Figure("the same program in 2 plain docker runs", plain, "s"),
        Figure("fit over plain docker run", ours - plain, "s", 1),
        *(
            Figure(f"image with TensorFlow {version}", image_gigabytes(images[version]), "GB")
            for version in TENSORFLOW_VERSIONS
        ),
        Figure("a container killed: job Failed and everything removed", killed, "s", 5),
    ]


def estimator(folder: Path, image: str, program: str) -> Estimator:
    (folder / "program.py").write_text(program)
    return Estimator(
        entry_point=str(folder / "program.py"), instance_count=2, instance_type="local", image_uri=image, max_run=120
    )


def in_fit(folder: Path, image: str) -> float:
    """Return the seconds from the call of ``fit`` to the first line of the later host."""
    made = estimator(folder, image, FIRST_LINE)
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


def image_gigabytes(image: str) -> float:
    return int(docker("image", "inspect", "--format", "{{.Size}}", image)) / 1e9


def after_kill(folder: Path, image: str) -> float:
    """Kill one of two containers; give the seconds until the job failed and nothing of it is left in Docker."""
    job = estimator(folder, image, SLEEPS).fit(wait=False)
    label = f"label=scriptmode.job={default_data_dir()}/jobs/{job.name}"
    until(lambda: sum(event.message == "up" for event in job.logs()) == len(HOSTS), 120)
    victim = docker("ps", "--quiet", "--filter", label, "--filter", f"name={job.name}-algo-2")
    begun = time.monotonic()
    docker("kill", victim)
    until(
        lambda: job.status == "Failed" and not docker("ps", "--all", "--quiet", "--filter", label)
        and not docker("network", "ls", "--quiet", "--filter", label),
        120,
    )  # fmt: skip
    return time.monotonic() - begun


def docker(*words: str, timeout: float = 120) -> str:
    done = subprocess.run(("docker", *words), check=False, timeout=timeout, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"docker {' '.join(words[:2])} failed: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout.strip()
