"""What this project adds to the start of a pod, to the steps of Horovod in two pods, and to the API server's load.

The cluster is the one of the tests. A bare pod has the same image and runs the same script, without this project.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from tests.benchmarks.figures import SMALLEST_VARIABLE, Figure, UnavailableError, rates
from tests.benchmarks.training import ARGUMENTS, CODE, DATA, HYPERPARAMETERS, steps_per_second
from tests.fakes.processes import until
from tests.kubernetes.cluster import Cluster, why_not
from tests.kubernetes.configuration import MACHINE_IMAGE

from scriptmode import MPI, Estimator

IS_SMALLEST = SMALLEST_VARIABLE in os.environ
ROUNDS = 1 if IS_SMALLEST else 3
FOLLOWED_SECONDS = 5 if IS_SMALLEST else 60
#: Starts the daemons of a bare mpirun, as an operator for MPI does. The pods have the file, too.
POD_SHELL = Path(__file__).with_name("pod_shell")
FIRST_LINE = "import time; print('first line', time.time(), flush=True)"


def run(folder: str) -> list[Figure]:
    if reason := why_not():
        raise UnavailableError(reason)
    cluster = Cluster(folder)
    try:
        os.environ.update(cluster.environment)
        os.environ["SCRIPTMODE_KUBERNETES"] = json.dumps({"image": MACHINE_IMAGE, "agent_python": sys.executable})
        Path(folder, "first.py").write_text(FIRST_LINE)
        Path(folder, "waits.py").write_text(f"import time; print('up', flush=True); time.sleep({FOLLOWED_SECONDS})")
        bare = median(seconds_of_pod(cluster, MACHINE_IMAGE) for _ in range(ROUNDS))
        ours = median(seconds_of_job(folder) for _ in range(ROUNDS))
        return [
            Figure("from fit to the first line - from kubectl apply to that of a bare pod", ours - bare, "s", 1.0),
            Figure("calls of the API in a minute of following one job", calls_of_job(cluster, folder), "", 10),
            *rates("Horovod in two pods", ROUNDS, in_fit, lambda: bare_mpirun(cluster)),
        ]
    finally:
        cluster.close()


def in_fit() -> float:
    """Return the steps per second of Horovod in two pods of a job."""
    job = Estimator(
        entry_point="train_hvd.py", source_dir=str(CODE), instance_type="kubernetes", instance_count=2,
        distribution=MPI(), hyperparameters=HYPERPARAMETERS,
    ).fit({"train": (DATA / "train").as_uri(), "eval": (DATA / "eval").as_uri()}, logs=False)  # fmt: skip
    return steps_per_second("\n".join(event.message for event in job.logs()))


def bare_mpirun(cluster: Cluster) -> float:
    """Return those of the same ranks in two bare pods, started by mpirun with kubectl."""
    names = ("bare-1", "bare-2")
    for name in names:
        container = {
            "name": "main",
            "image": MACHINE_IMAGE,
            "command": [sys.executable, "-c", "input()"],
            "stdin": True,
        }
        about = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
        cluster.apply({**about, "spec": {"restartPolicy": "Never", "containers": [container]}})
    for name in names:
        cluster.reaches(name, "Running")
    variables = {"SM_CHANNEL_TRAIN": DATA / "train", "SM_CHANNEL_EVAL": DATA / "eval", "SM_MODEL_DIR": "/tmp/model"}
    command = [
        str(Path(sys.executable).parent / "mpirun"), "--allow-run-as-root", "--bind-to", "none", "-np", "2",
        "-H", ",".join(f"{cluster.pod(name)['status']['podIP']}:1" for name in names),
        "--prtemca", "plm_ssh_agent", str(POD_SHELL), "--wdir", str(CODE),
        *(word for name, value in variables.items() for word in ("-x", f"{name}={value}")),
        sys.executable, "train_hvd.py", *ARGUMENTS,
    ]  # fmt: skip
    done = subprocess.run(command, check=True, timeout=600, capture_output=True, text=True)
    cluster.delete_all()
    return steps_per_second(done.stdout)


def seconds_of_pod(cluster: Cluster, image: str) -> float:
    """Return the seconds from the creation of a bare pod to its script's first line."""
    container = {"name": "main", "image": image, "command": [sys.executable, "-c", FIRST_LINE]}
    about = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}}
    began = time.time()
    cluster.apply({**about, "spec": {"restartPolicy": "Never", "containers": [container]}})
    cluster.reaches("bare", "Succeeded")
    printed = cluster.kubectl("logs", "bare").stdout
    cluster.delete_all()
    return float(printed.split()[2]) - began


def seconds_of_job(folder: str) -> float:
    """Return the seconds from `fit` to the script's first line."""
    began = time.time()
    job = estimator(folder, "first.py").fit(logs=False)
    (line,) = (event.message for event in job.logs() if event.message.startswith("first line"))
    return float(line.split()[2]) - began


def calls_of_job(cluster: Cluster, folder: str) -> float:
    """Return the calls for pods that the API server answered in a minute in which a job was followed."""
    job = estimator(folder, "waits.py").fit(wait=False)
    until(lambda: any(event.message == "up" for event in job.logs()))
    before, began = calls(cluster), time.monotonic()
    assert before, "the calls are not counted"
    time.sleep(FOLLOWED_SECONDS / 2)
    counted = (calls(cluster) - before) * 60 / (time.monotonic() - began)
    job.wait()
    return counted


def calls(cluster: Cluster) -> int:
    """Return the number of calls that this project's client has made."""
    return cluster.audit_log.read_text().count('"userAgent":"scriptmode"')


def estimator(folder: str, program: str) -> Estimator:
    return Estimator(entry_point=f"{folder}/{program}", instance_type="kubernetes", instance_count=1)
