"""Calls of notebooks for TensorFlow 1 and 2, as they are but for the import, on this machine's hosts."""

import pytest

from scriptmode import TensorFlow

ROLE = "arn:aws:iam::123456789012:role/service-role/AmazonSageMaker-ExecutionRole-20190430T195525"
V1_NAMES = pytest.mark.filterwarnings("ignore:.* is SageMaker SDK v1's name:DeprecationWarning")
#: A training program of TensorFlow 1 as one of several tasks, each of which saves the sum.
GRAPH = """
import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()
import json, os
print("task", json.loads(os.environ["TF_CONFIG"])["task"]["type"], flush=True)
with tf.Session() as session:
    total = session.run(tf.placeholder(tf.int32, name="x") + 1, {"x:0": 41})
print("total", total, flush=True)
open(os.environ["SM_MODEL_DIR"] + "/model", "w").close()
"""


@V1_NAMES
@pytest.mark.slow
@pytest.mark.tf
def test_parameter_servers_run_a_program_that_imports_tensorflow_1s_api(code, tmp_path, data_dir, no_settings):
    (tmp_path / "code/train.py").write_text(GRAPH)
    made = TensorFlow(
        entry_point="train.py", source_dir=code, role=ROLE, train_instance_count=2, train_instance_type="local_process",
        framework_version="1.13", py_version="py3", distributions={"parameter_server": {"enabled": True}},
    )  # fmt: skip
    with pytest.warns(UserWarning, match="framework_version is '1.13', but the hosts run with") as caught:
        job = made.fit(logs=False)
    assert len([each for each in caught if each.category is UserWarning]) == 1
    lines = [event.message for event in job.logs()]
    assert sorted(line for line in lines if line.startswith("task")) == ["task master", "task worker"]
    assert lines.count("total 42") == 2
