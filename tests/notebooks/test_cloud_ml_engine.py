"""The notebook of Cloud ML Engine: a cluster of one role a host, submitted, followed, looked at and predicted from."""

import math
import re
from pathlib import Path

import pytest
from notebooks.execution import executed

pytestmark = [pytest.mark.long, pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(3600)]

STEPS = 240


@pytest.fixture(scope="module")
def cloud():
    with executed("cloud_ml_engine", MAX_STEPS=STEPS) as execution:
        execution.said = execution.text()
        yield execution


def evaluations(cloud):
    found = re.findall(r"evaluation at step (\d+): eval_accuracy=(\S+)", cloud.said)
    return [(int(step), float(score)) for step, score in found]


def test_every_host_has_the_one_role_of_its_group(cloud):
    assert "submitted: 1 master, 2 workers, 2 parameter servers\n" in cloud.said
    assert cloud.value("job.status") == "Completed"
    groups = cloud.value("job.describe()['ResourceConfig']['InstanceGroups']")
    assert {each["InstanceGroupName"]: each["InstanceCount"] for each in groups} == {"master": 1, "worker": 2, "ps": 2}
    assert {each["InstanceType"] for each in groups} == {"local_process"}


def test_the_trainers_share_one_count_of_steps(cloud):
    made = dict(re.findall(r"\| (\w+ \d): made (\d+) of the first", cloud.said))
    assert sorted(made) == ["master 0", "worker 0", "worker 1"]
    # Each may be amid a step when another makes the last one.
    assert STEPS <= sum(map(int, made.values())) <= STEPS + 2


def test_the_master_checkpoints_and_evaluates_and_all_learn(cloud):
    losses = [float(loss) for loss in re.findall(r"step \d+: loss=(\S+)", cloud.said)]
    assert losses[-1] < math.log(10)  # what guessing gives
    assert evaluations(cloud)[-1][1] > 0.6  # guessing gives 0.1
    job_dir = Path(cloud.value("WORK"), "bucket", "job")
    assert len(list(job_dir.glob("model.ckpt-*.index"))) == 2
    assert list(Path(cloud.value("WORK"), "bucket", "packages").rglob("sourcedir.tar.gz"))


def test_the_exported_model_predicts_on_one_node_as_the_cluster_did(cloud):
    assert cloud.value("accuracy") == pytest.approx(evaluations(cloud)[-1][1], abs=0.03)
    assert len(cloud.pictures()) == 1
    assert cloud.value("sorted(path.name for path in job.model.iterdir())") == ["1"]
