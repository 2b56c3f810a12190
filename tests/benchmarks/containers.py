"""Hosts that are containers, against plain `docker run` and bare mpirun in the same kind of containers."""

from __future__ import annotations

import statistics
import subprocess
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.figures import Figure, amount, in_turn
from tests.benchmarks.training import ARGUMENTS, CODE, DATA, HYPERPARAMETERS, pair, steps_per_second

from scriptmode import MPI, Estimator
from scriptmode.containers import TENSORFLOW_VERSIONS, build_image
from scriptmode.data_dir import default_data_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

# The clock of a container is this machine's. One write: a print is several where Python does not buffer.
FIRST_LINE = "import os, time; os.write(1, b'first line %d\\n' % time.monotonic_ns())\n"
SLEEPS = "import time; print('up', flush=True); time.sleep(600)\n"
HOSTS = ("algo-1", "algo-2")
FIRST_LINES, KILLS, TRAININGS = 7, amount(5, smallest=1), amount(5, smallest=1)
#: An ssh server on each host that accepts one key, which is also its own host key.
SSHD = (
    "mkdir -p /run/sshd && exec /usr/sbin/sshd -De -h /keys/id -o AuthorizedKeysFile=/keys/id.pub -o StrictModes=no "
    "-o SetEnv=PATH=/opt/scriptmode/bin:/usr/bin:/bin"
)
SSH = "ssh -q -i /keys/id -o StrictHostKeyChecking=no"


def run(folder: str) -> list[Figure]:
    images = {version: build_image(version) for version in TENSORFLOW_VERSIONS}
    image = images["2.15.1"]
    ours, plain = in_turn(FIRST_LINES, lambda: in_fit(Path(folder), image), lambda: in_docker_run(Path(folder), image))
    killed = statistics.median(after_kill(Path(folder), image) for _ in range(KILLS))
    return [
        Figure("fit to the first line of the script on 2 container hosts", ours, "s"),
        Figure("the same program in 2 plain docker runs", plain, "s"),
        Figure("fit over plain docker run", ours - plain, "s", 1),
        *(
            Figure(f"image with TensorFlow {version}", image_gigabytes(images[version]), "GB")
            for version in TENSORFLOW_VERSIONS
        ),
        Figure("a container killed: job Failed and everything removed", killed, "s", 5),
        *trainings(Path(folder), image),
    ]


def trainings(folder: Path, image: str) -> list[Figure]:
    with machines(folder, image) as first:
        taken = [
            pair(lambda: horovod_in_fit(image), lambda: bare_mpirun(first), swapped=bool(number % 2))
            for number in range(TRAININGS)
        ]
    rates = [statistics.median(values) for values in zip(*taken)]
    ratio = statistics.median(ours / bare for ours, bare in taken)
    return [
        Figure("Horovod, 2 containers: steps/s inside fit", rates[0], "1/s"),
        Figure("Horovod, 2 containers: steps/s of bare mpirun", rates[1], "1/s"),
        Figure("Horovod, 2 containers: inside fit / bare", ratio, "x", 0.98, at_most=False),
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
    job.wait(timeout=120)
    return seconds_to_last("\n".join(event.message for event in job.logs()), begun)


def in_docker_run(folder: Path, image: str) -> float:
    """Return the same for two containers of the image that are not supervised."""
    (folder / "program.py").write_text(FIRST_LINE)
    volume = f"{folder}/program.py:/program.py:ro"
    command = ("docker", "run", "--rm", "--volume", volume, image, "python", "/program.py")
    begun = time.monotonic_ns()
    containers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in HOSTS]
    said = "\n".join(container.communicate(timeout=120)[0] for container in containers)
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
    until(lambda: sum(event.message == "up" for event in job.logs()) == len(HOSTS), f"{job.name} does not come up")
    victim = docker("ps", "--quiet", "--filter", label, "--filter", f"name={job.name}-algo-2")
    begun = time.monotonic()
    docker("kill", victim)
    until(
        lambda: job.status == "Failed" and not docker("ps", "--all", "--quiet", "--filter", label)
        and not docker("network", "ls", "--quiet", "--filter", label),
        f"{job.name} does not fail, or leaves something",
    )  # fmt: skip
    return time.monotonic() - begun


def horovod_in_fit(image: str) -> float:
    job = Estimator(
        entry_point="train_hvd.py", source_dir=str(CODE), instance_count=2, instance_type="local", image_uri=image,
        distribution=MPI(processes_per_host=1), hyperparameters=HYPERPARAMETERS, max_run=1800,
    ).fit({"train": (DATA / "train").as_uri(), "eval": (DATA / "eval").as_uri()}, logs=False)  # fmt: skip
    return steps_per_second("\n".join(event.message for event in job.logs()))


@contextmanager
def machines(folder: Path, image: str) -> Iterator[str]:
    """Yield the name of the first of two containers with ssh between them, on their own network."""
    keys, network = folder / "keys", f"benchmark-{uuid.uuid4().hex[:8]}"
    keys.mkdir()
    docker("run", "--rm", f"--volume={keys}:/keys", image, "ssh-keygen", "-qted25519", "-N", "", "-f", "/keys/id")
    volumes = (f"--volume={keys}:/keys:ro", f"--volume={CODE}:/code:ro", f"--volume={DATA}:/data:ro")
    docker("network", "create", network)
    begun: list[str] = []
    try:
        for host in HOSTS:
            # As `fit` gives it to hosts that share cores.
            place = (
                "--env=OMPI_MCA_mpi_yield_when_idle=1",
                f"--hostname={host}",
                f"--network={network}",
                f"--network-alias={host}",
                "--shm-size=4g",
            )
            begun.append(docker("run", "--detach", *place, *volumes, image, "sh", "-c", SSHD))
        until(lambda: connects(begun[0]), "sshd does not come up")
        yield begun[0]
    finally:
        docker("rm", "--force", "--volumes", *begun)
        docker("network", "rm", network)


def connects(first: str) -> bool:
    tried = ("docker", "exec", first, *SSH.split(), HOSTS[1], "true")
    return subprocess.run(tried, check=False, timeout=60, stderr=subprocess.DEVNULL).returncode == 0


def bare_mpirun(first: str) -> float:
    """Run the program as anyone would who has machines with ssh and Open MPI between them."""
    # It would go on from the checkpoints of the run before.
    docker("exec", first, "sh", "-c", "rm -rf /opt/ml && mkdir -p /opt/ml/model")
    variables = ("PATH", "SM_CHANNEL_TRAIN=/data/train", "SM_CHANNEL_EVAL=/data/eval", "SM_MODEL_DIR=/opt/ml/model",
                 'SM_HOSTS=["algo-1","algo-2"]')  # fmt: skip
    command = (
        "mpirun", "--allow-run-as-root", "--bind-to", "none", "-np", "2", "--host", ",".join(HOSTS),
        "--mca", "plm_ssh_agent", SSH, *(word for name in variables for word in ("-x", name)),
        "python", "train_hvd.py", *ARGUMENTS,
    )  # fmt: skip
    return steps_per_second(docker("exec", "--workdir=/code", first, *command, timeout=900))


def docker(*words: str, timeout: float = 120) -> str:
    done = subprocess.run(("docker", *words), check=False, timeout=timeout, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"docker {' '.join(words[:2])} failed: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout.strip()


def until(condition: Any, otherwise: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{otherwise} within 120 s")
        time.sleep(0.02)
