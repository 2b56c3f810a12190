"""The training programs as jobs of each engine: real TensorFlow clusters and a real mpirun, by the public call.

Containers train by an image with TensorFlow, in tests/containers/test_container_training.py.
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from scriptmode import MPI, Estimator, MultiWorkerMirrored, ParameterServer, TrainingInput

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
CODE = NOTEBOOKS / "code"
DATA = NOTEBOOKS / "data" / "fashion_mnist"
WITH_TF_ESTIMATOR = sys.version_info < (3, 12)

pytestmark = [pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(autouse=True)
def environment(jobs, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(jobs.data_dir))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")


def fit(jobs, entry_point, distribution, *, hosts=2, sharded=False, **hyperparameters):
    how = "ShardedByS3Key" if sharded else "FullyReplicated"
    estimator = Estimator(
        entry_point=entry_point,
        source_dir=str(CODE),
        instance_count=hosts,
        platform=jobs.platform,
        distribution=distribution,
        hyperparameters={"epochs": 1, **hyperparameters},
        max_run=900,
        **jobs.estimator_arguments(),
    )
    return estimator.fit(
        {
            "train": TrainingInput((DATA / "train").as_uri(), distribution=how),
            "eval": (DATA / "eval").as_uri(),
        }
    )


def local(uri):
    return Path(unquote(urlparse(uri).path))


def summary(job):
    lines = [event.message for event in job.logs() if "summary:" in event.message]
    return dict(re.findall(r"(\S+)=(\S+)", lines[-1]))


def accuracy_read_back(job):
    """Score model.tar.gz in a fresh process, on images that no trainer saw."""
    command = [sys.executable, str(CODE / "evaluate.py"), str(local(job.model_data)), str(DATA / "eval")]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return float(re.search(r"accuracy=(\d\.\d+)", printed)[1])


# One epoch of the subset gives 0.78 to 0.84 in every layout; guessing gives 0.10.
LAYOUTS = [
    pytest.param(
        "train_ps.py",
        ParameterServer(coordinator=True),
        False,
        "parameter_server",
        id="coordinator",
        # The notebook that compares strategies trains it on such hosts and reads the model back.
        marks=pytest.mark.thorough,
    ),
    pytest.param("train_mwms.py", MultiWorkerMirrored(), True, "multi_worker_mirrored", id="mirrored, sharded"),
    pytest.param(
        "train_hvd.py", MPI(processes_per_host=1), True, "horovod", id="horovod, sharded", marks=pytest.mark.long
    ),
]
if WITH_TF_ESTIMATOR:
    LAYOUTS.append(
        pytest.param(
            "train_ps_estimator.py",
            ParameterServer(),
            True,
            "parameter_server_estimator",
            id="between-graph, sharded",
            # Two containers train it in each run, and tests/public_programs has such a cluster of process hosts.
            marks=pytest.mark.thorough,
        )
    )


@pytest.mark.parametrize(("entry_point", "distribution", "sharded", "layout"), LAYOUTS)
def test_two_hosts_train_one_model(jobs, entry_point, distribution, sharded, layout):
    job = fit(jobs, entry_point, distribution, sharded=sharded)
    results = summary(job)
    assert (results["layout"], results["trainers"]) == (layout, "2")
    accuracy = accuracy_read_back(job)
    assert accuracy == pytest.approx(float(results["accuracy"]), abs=0.002)
    assert accuracy > 0.6


@pytest.mark.skipif(WITH_TF_ESTIMATOR, reason="the hosts' Keras is Keras 2; containers train with Keras 3")
@pytest.mark.parametrize(
    ("entry_point", "distribution", "hosts", "layout"),
    [
        pytest.param("train_ps.py", ParameterServer(coordinator=True), 2, "parameter_server", id="coordinator"),
        pytest.param("train_mwms.py", MultiWorkerMirrored(), 2, "multi_worker_mirrored", id="mirrored"),
        pytest.param("train_hvd.py", MPI(processes_per_host=2), 1, "horovod", id="horovod", marks=pytest.mark.mpi),
    ],
)
def test_the_loops_train_networks_of_keras_3(jobs, monkeypatch, entry_point, distribution, hosts, layout):
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")
    job = fit(jobs, entry_point, distribution, hosts=hosts)
    results = summary(job)
    assert (results["layout"], results["trainers"]) == (layout, "2")
    assert float(results["accuracy"]) > 0.6


@pytest.mark.long
def test_the_demo_reaches_its_accuracy_in_both_layouts(jobs):
    done = subprocess.run(
        [sys.executable, str(NOTEBOOKS / "demo.py"), "--instance-type", jobs.instance_type, "--epochs", "3"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    rows = [line for line in done.stdout.splitlines() if line.startswith("fashion-mnist-")]
    assert len(rows) == 2
    for row in rows:
        assert float(re.search(r"0\.\d{4}", row)[0]) >= 0.80
