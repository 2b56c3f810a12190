"""The notebook of the Estimator on two workers, by a ring."""

import re
import sys

import pytest
from notebooks.execution import executed, figures

pytestmark = [
    pytest.mark.long, pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(3600),
    pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python has no TensorFlow 2.15"),
]  # fmt: skip
EPOCHS, STEPS = 2, 40


@pytest.fixture(scope="module")
def workers():
    # On hosts without GPUs TensorFlow's own choice, AUTO, is the ring, too.
    with executed(
        "estimator_multi_worker", EPOCHS=EPOCHS, STEPS_PER_EPOCH=STEPS, COMMUNICATIONS=("RING",)
    ) as execution:
        execution.log = execution.value("[each.message for each in jobs['RING'].logs() if each.host == 'algo-1']")
        yield execution


def test_two_workers_make_the_steps_together(workers):
    assert workers.value("[job.status for job in jobs.values()]") == ["Completed"]
    assert workers.value("sorted({event.host for event in jobs['RING'].logs()})") == ["algo-1", "algo-2"]
    (summary,) = figures(workers.log, "summary:")
    assert (summary["layout"], summary["trainers"]) == ("multi_worker_mirrored_estimator", "2")
    # The exported Estimator scores what the job said.
    assert re.findall(r"(RING|AUTO): accuracy (\d\.\d+)", workers.text()) == [("RING", summary["accuracy"])]


def test_the_loss_falls_from_checkpoint_to_checkpoint(workers):
    found = figures(workers.log, "evaluation:")
    assert [int(each["global_step"]) for each in found] == [0, STEPS, 2 * STEPS] == workers.value("steps")
    losses = [float(each["loss"]) for each in found]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] - losses[-1] > 0.0005
    assert workers.value("losses['RING']") == losses
    assert len(workers.pictures()) == 1
