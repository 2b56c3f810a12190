"""The notebook of Keras 3: loops on containers of today's TensorFlow, and what model.fit says there."""

import pytest
from notebooks.execution import executed, figures

pytestmark = [pytest.mark.long, pytest.mark.tf, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def trained(built):
    built("2.21.0")
    with executed("keras3", timeout=1800, EPOCHS=1, STEPS=20) as execution:
        yield execution


def test_every_loop_trains_on_two_containers(trained):
    summaries = trained.value("summaries")
    found = {program: figures([line[line.index("summary:") :]], "summary:")[0] for program, line in summaries.items()}
    assert {program: each["layout"] for program, each in found.items()} == {
        "train_mwms.py": "multi_worker_mirrored", "train_ps.py": "parameter_server", "train_hvd.py": "horovod",
    }  # fmt: skip
    assert all(float(each["accuracy"]) > 0.4 for each in found.values())


def test_model_fit_fails_with_the_next_step_and_that_of_keras_2_trains(trained):
    assert "TF_USE_LEGACY_KERAS=1" in trained.value("reason")
    assert trained.value("fitted.status") == "Completed"
