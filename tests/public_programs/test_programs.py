"""Programs of the shapes that others publish run unmodified on process hosts, by the call of their documentation.

README.md names their origins. Each asserts what its users look for: what it printed, and what is in model.tar.gz.
"""

import json
import sys
import tarfile
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from pipe_dataset.framings import tf_record

from scriptmode import Estimator, TensorFlow, TrainingInput

PROGRAMS = Path(__file__).parent / "programs"

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(autouse=True)
def data_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    if sys.version_info >= (3, 12):
        # The programs are of Keras 2's time, and that TensorFlow has Keras 3.
        monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")


def fit(program, inputs=None, *, estimator=Estimator, **arguments):
    """Train with a program, or with the program of a source directory; return the job."""
    path = PROGRAMS / program
    where = {"entry_point": str(path)}
    if path.parent != PROGRAMS:
        where = {"entry_point": path.name, "source_dir": str(path.parent)}
    fixed = {"instance_count": 1, "instance_type": "local_process", "max_run": 200}
    return estimator(**where, **{**fixed, **arguments}).fit(inputs, logs=False)


def printed(job):
    return [f"{event.host}: {event.message}" for event in job.logs()]


def model(job):
    """Names of the files in model.tar.gz."""
    with tarfile.open(Path(unquote(urlparse(job.model_data).path))) as archive:
        return {member.name for member in archive.getmembers() if member.isfile()}


@pytest.mark.tf
def test_script_mode_of_aws_finds_its_arguments_in_the_environment(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((16, 4), np.float32))
    job = fit(
        "script_mode/train.py",
        {"train": tmp_path.as_uri()},
        estimator=TensorFlow,
        hyperparameters={"epochs": 2, "batch-size": 8, "optimizer": "sgd", "momentum": 0.5},
    )
    assert {"1/saved_model.pb", "history.p", "code/inference.py", "code/requirements.txt"} <= model(job)
    with tarfile.open(Path(unquote(urlparse(job.model_data).path)).with_name("output.tar.gz")) as archive:
        assert "checkpoint-2.h5" in archive.getnames()


@pytest.mark.tf
def test_pipe_mode_of_aws_reads_with_its_own_dataset(tmp_path):
    write_records(tmp_path / "in" / "part.tfrecords")
    job = fit(
        "pipe_mode.py",
        {"train": TrainingInput((tmp_path / "in").as_uri(), input_mode="Pipe")},
        estimator=TensorFlow,
        hyperparameters={"epochs": 1},
    )
    assert model(job) == {"model.h5"}


@pytest.mark.tf
def test_between_graph_replication_by_tensorflow_1s_api_trains_on_both_hosts():
    job = fit(
        "dist_mnist.py", instance_count=2, distribution={"parameter_server": {"enabled": True}}, estimator=TensorFlow,
        hyperparameters={"train_steps": 20, "learning_rate": 0.1},
    )  # fmt: skip
    lines = printed(job)
    for task in ("algo-1: master 0", "algo-2: worker 0"):
        assert [line for line in lines if line.startswith(f"{task}: training step ")], lines
    shared = Path(unquote(urlparse(json.loads(job.describe()["HyperParameters"]["model_dir"])).path))
    assert (shared / "checkpoint").is_file()


@pytest.mark.tf
def test_a_tf_data_service_is_found_by_the_hosts_names():
    job = fit(
        "data_service/launcher.py", instance_count=2,
        hyperparameters={"tf_data_mode": "service", "batch_size": 8, "num_of_data_workers": 2},
    )  # fmt: skip
    assert "algo-1: sum 1560" in printed(job)
    assert model(job) == {"sum"}


def write_records(path):
    """Write 16 examples of an image of 4 bytes and a label, as TFRecords, without TensorFlow."""
    path.parent.mkdir()
    with path.open("wb") as file:
        for number in range(16):
            image = field(1, field(1, bytes([number % 2 * 255] * 4)))
            label = field(3, field(1, bytes([number % 2])))
            features = field(1, field(1, b"image") + field(2, image)) + field(1, field(1, b"label") + field(2, label))
            file.write(tf_record(field(1, features)))


def field(number, content):
    """Return a field of a protocol buffer whose content is shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content
