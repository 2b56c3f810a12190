"""Calls of notebooks for TensorFlow 1 and 2, as they are but for the import: on SageMaker, and on this machine's hosts."""

import sys

import pytest

from scriptmode import TensorFlow, TrainingJobFailed
from scriptmode.testing import FakeSageMaker

ROLE = "arn:aws:iam::123456789012:role/service-role/AmazonSageMaker-ExecutionRole-20190430T195525"
PARAMETER_SERVER = {"parameter_server": {"enabled": True}}
MPI = {"mpi": {"enabled": True, "processes_per_host": 4, "custom_mpi_options": "--NCCL_DEBUG INFO"}}
V1_NAMES = pytest.mark.filterwarnings("ignore:.* is SageMaker SDK v1's name:DeprecationWarning")
#: A training program of TensorFlow 1 as one of several tasks, each of which saves the sum.
GRAPH = """
{}
import json, os
print("task", json.loads(os.environ["TF_CONFIG"])["task"]["type"], flush=True)
with tf.Session() as session:
    total = session.run(tf.placeholder(tf.int32, name="x") + 1, {{"x:0": 41}})
print("total", total, flush=True)
open(os.environ["SM_MODEL_DIR"] + "/model", "w").close()
"""


def call(code, **arguments):
    defaults = {
        "entry_point": "train.py",
        "source_dir": code,
        "role": ROLE,
        "train_instance_count": 2,
        "train_instance_type": "ml.p3.2xlarge",
        "framework_version": "1.13",
        "py_version": "py3",
        "distributions": PARAMETER_SERVER,
    }
    return TensorFlow(**{**defaults, **arguments})


@V1_NAMES
@pytest.mark.parametrize(
    ("versions", "distribution", "tag", "hyperparameters"),
    [
        (("1.13", "py3"), PARAMETER_SERVER, "1.13-gpu-py3", {"sagemaker_parameter_server_enabled": "true"}),
        (
            ("1.13", "py3"), MPI, "1.13-gpu-py3",
            {
                "sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "4",
                "sagemaker_mpi_custom_mpi_options": '"--NCCL_DEBUG INFO"',
            },
        ),
        (("2.11", "py39"), None, "2.11-gpu-py39", {}),
    ],
    ids=["TensorFlow 1, parameter servers", "TensorFlow 1, Horovod", "TensorFlow 2"],
)  # fmt: skip
def test_no_sagemaker_package_is_needed(code, monkeypatch, versions, distribution, tag, hyperparameters):
    monkeypatch.setitem(sys.modules, "sagemaker", None)
    framework, python = versions
    fake = FakeSageMaker("us-east-1")
    made = call(
        code, framework_version=framework, py_version=python, distributions=distribution, sagemaker_session=fake
    )
    job = made.fit("s3://bucket/train", wait=False).describe()
    image = job["AlgorithmSpecification"]["TrainingImage"]
    assert image == f"763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:{tag}"
    assert job["HyperParameters"].items() >= hyperparameters.items()


@pytest.fixture
def run(code, tmp_path, monkeypatch, no_settings):
    """A function that runs a program with the call's arguments on processes of this machine; the log's lines."""
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))

    def run(program, distribution):
        (tmp_path / "code/train.py").write_text(program)
        made = call(code, train_instance_type="local_process", distributions=distribution)
        with pytest.warns(UserWarning, match="framework_version is '1.13', but the hosts run with") as caught:
            job = made.fit(logs=False)
        assert len([each for each in caught if each.category is UserWarning]) == 1
        return [event.message for event in job.logs()]

    return run


@V1_NAMES
@pytest.mark.slow
@pytest.mark.tf
def test_parameter_servers_run_a_program_that_imports_tensorflow_1s_api(run):
    lines = run(GRAPH.format("import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()"), PARAMETER_SERVER)
    assert sorted(line for line in lines if line.startswith("task")) == ["task master", "task worker"]
    assert lines.count("total 42") == 2


@V1_NAMES
@pytest.mark.slow
@pytest.mark.tf
def test_a_program_of_tensorflow_1_fails_with_its_own_error_and_the_hint(run):
    with pytest.raises(TrainingJobFailed) as caught:
        run(GRAPH.format("import tensorflow as tf"), PARAMETER_SERVER)
    assert "module 'tensorflow' has no attribute 'Session'" in caught.value.failure.traceback
    assert "import tensorflow.compat.v1 as tf" in caught.value.failure.hint
