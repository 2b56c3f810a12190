"""Calls of notebooks for TensorFlow 1 and 2, as they are but for the import, on this machine's hosts."""

import pytest

from scriptmode import TensorFlow, TrainingJobFailed

ROLE = "arn:aws:iam::123456789012:role/service-role/AmazonSageMaker-ExecutionRole-20190430T195525"
PARAMETER_SERVER = {"parameter_server": {"enabled": True}}
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
@pytest.mark.long
@pytest.mark.tf
def test_a_program_of_tensorflow_1_fails_with_its_own_error_and_the_hint(run):
    with pytest.raises(TrainingJobFailed) as caught:
        run(GRAPH.format("import tensorflow as tf"), PARAMETER_SERVER)
    assert "module 'tensorflow' has no attribute 'Session'" in caught.value.failure.traceback
    assert "import tensorflow.compat.v1 as tf" in caught.value.failure.hint
