"""Programs of the shapes that others publish run unmodified on process hosts, by the call of their documentation.

README.md names their origins. Each asserts what its users look for: what it printed, and what is in model.tar.gz.
"""

import json
import struct
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from awscrt.checksums import crc32c

from scriptmode import (
    MPI,
    Estimator,
    MultiWorkerMirrored,
    ParameterServer,
    TensorFlow,
    TrainingInput,
    TrainingJobFailed,
)

PROGRAMS = Path(__file__).parent / "programs"
COMMAND = str(Path(sys.executable).with_name("scriptmode"))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


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
@pytest.mark.mpi
def test_horovods_keras_example_takes_its_flags():
    job = fit(
        "horovod_keras.py",
        arguments=["--fp16-allreduce", "--no-cuda"],
        hyperparameters={"num-iters": 4},
        distribution=MPI(processes_per_host=2),
    )
    expected = "ranks 2 checkpoints ['checkpoint-1.weights.h5']"
    assert [line for line in printed(job) if expected in line]


@pytest.mark.tf
def test_keras_on_several_workers_saves_one_model_in_opt_ml():
    job = fit("multi_worker_keras/main.py", instance_count=2, distribution=MultiWorkerMirrored())
    for host, task in (("algo-1", 0), ("algo-2", 1)):
        assert f"{host}: worker {task} of 2 replicas 2" in printed(job)
    assert model(job) == {"keras-model.h5"}


@pytest.mark.tf
def test_a_coordinator_trains_with_parameter_servers_of_its_own_text():
    job = fit("parameter_servers.py", instance_count=2, distribution=ParameterServer(coordinator=True))
    assert [line for line in printed(job) if line.startswith("algo-1: workers 2 ps 2 loss=")]
    assert "weights.index" in model(job)


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
def test_a_trainer_package_of_cloud_ml_engine_is_submitted_with_its_own_arguments(tmp_path):
    words = (
        "jobs", "submit", "training", "census", "--package-path", str(PROGRAMS / "census" / "trainer"),
        "--module-name", "trainer.task", "--job-dir", str(tmp_path / "job"), "--scale-tier", "basic", "--stream-logs",
        "--", "--num-epochs", "1", "--hidden-units", "32", "16", "--batch-size=16", "--verbosity=ERROR",
    )  # fmt: skip
    done = subprocess.run((COMMAND, *words), check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "hidden units [32, 16]" in done.stdout
    assert (tmp_path / "job" / "keras_export" / "saved_model.pb").is_file()


@pytest.mark.tf
def test_a_tf_data_service_is_found_by_the_hosts_names():
    job = fit(
        "data_service/launcher.py", instance_count=2,
        hyperparameters={"tf_data_mode": "service", "batch_size": 8, "num_of_data_workers": 2},
    )  # fmt: skip
    assert "algo-1: sum 1560" in printed(job)
    assert model(job) == {"sum"}


def test_a_scheduler_and_workers_of_the_programs_own_connect_on_one_port():
    job = fit("own_cluster.py", instance_count=3)
    with tarfile.open(Path(unquote(urlparse(job.model_data).path))) as archive:
        assert json.load(archive.extractfile("squares.json")) == [number**2 for number in range(10)]


ARGUMENTS = ["data.yaml", "more.yaml", "--hidden_units", "128", "32", "4", "--fp16-allreduce", "--opt", "a=1", "--opt",
             "b=two words", "-vv", "-lr", "-0.5"]  # fmt: skip


@pytest.mark.parametrize("by", ["command", "call"])
def test_flags_repeated_positional_and_multi_valued_arguments_are_parsed_as_in_a_shell(by):
    if by == "call":
        lines = printed(fit("arguments.py", arguments=ARGUMENTS))
    else:
        command = (COMMAND, "run", str(PROGRAMS / "arguments.py"), "--", *ARGUMENTS)
        lines = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    (line,) = [line for line in lines if "parsed {" in line]
    parsed = json.loads(line[line.index("{") :])
    assert (parsed["config"], parsed["extra"]) == ("data.yaml", ["more.yaml"])
    assert (parsed["hidden_units"], parsed["opt"]) == ([128, 32, 4], ["a=1", "b=two words"])
    assert (parsed["fp16_allreduce"], parsed["verbose"], parsed["learning_rate"]) == (True, 2, -0.5)


@pytest.mark.tf
def test_a_saved_model_is_exported_below_opt_ml_and_served():
    job = fit("saved_model.py")
    assert "algo-1: served [6.0]" in printed(job)
    assert "00000001/saved_model.pb" in model(job)


# Its parts are in test_notebook_cells.py and in tests/processes/test_checkpoints.py.
@pytest.mark.thorough
@pytest.mark.tf
def test_a_spot_job_goes_on_from_the_checkpoint_of_the_job_before(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    for epochs, first in ((1, 0), (3, 1)):
        job = fit(
            "spot_checkpoints.py",
            estimator=TensorFlow,
            hyperparameters={"epochs": epochs},
            checkpoint_s3_uri=(tmp_path / "checkpoints").as_uri(),
        )
        assert f"algo-1: initial epoch {first}" in printed(job)
        assert model(job) == {"final.h5"}
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [
        f"checkpoint-{epoch}.h5" for epoch in (1, 2, 3)
    ]


@pytest.mark.tf
def test_a_session_of_tensorflow_1_trains_and_is_exported():
    job = fit("session_v1.py", estimator=TensorFlow, hyperparameters={"training_steps": 5}, arguments=["--verbose"])
    assert [line for line in printed(job) if line.startswith("algo-1: verbose True loss ")]
    assert "1/saved_model.pb" in model(job)


def test_a_library_that_only_images_of_aws_have_is_named_as_such():
    with pytest.raises(TrainingJobFailed) as raised:
        fit("data_parallel.py", estimator=TensorFlow)
    assert raised.value.failure.exception == "ModuleNotFoundError"
    assert "smdistributed" in raised.value.failure.hint
    assert "AWS" in raised.value.failure.hint


def write_records(path):
    """Write 16 examples of an image of 4 bytes and a label, as TFRecords, without TensorFlow."""
    path.parent.mkdir()
    with path.open("wb") as file:
        for number in range(16):
            image = field(1, field(1, bytes([number % 2 * 255] * 4)))
            label = field(3, field(1, bytes([number % 2])))
            features = field(1, field(1, b"image") + field(2, image)) + field(1, field(1, b"label") + field(2, label))
            body = field(1, features)
            length = struct.pack("<Q", len(body))
            file.write(length + masked_checksum(length) + body + masked_checksum(body))


def field(number, content):
    """Return a field of a protocol buffer whose content is shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def masked_checksum(content):
    checksum = crc32c(content)
    return struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF)
