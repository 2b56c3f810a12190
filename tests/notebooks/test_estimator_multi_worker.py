"""The notebook of the Estimator on two workers, by a ring; ``--thorough`` compares it with TensorFlow's own choice."""

import re
import sys

import pytest
from notebooks.execution import executed, figures

pytestmark = [pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(1200)]

with_tf_estimator = pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python has no TensorFlow 2.15")
EPOCHS, STEPS = 2, 40
#: On hosts without GPUs TensorFlow chooses the ring, so that a job of each trains the same twice.
WAYS = [pytest.param("RING"), pytest.param("AUTO", marks=pytest.mark.thorough)]


@pytest.fixture(scope="module")
def workers(request):
    ways = ("RING", "AUTO") if request.config.option.thorough else ("RING",)
    sizes = {"EPOCHS": EPOCHS, "STEPS_PER_EPOCH": STEPS, "COMMUNICATIONS": ways}
    with executed("estimator_multi_worker", **sizes) as execution:
        execution.ways = ways
        execution.logs = execution.value(
            "{name: [event.message for event in job.logs() if event.host == 'algo-1'] for name, job in jobs.items()}"
        )
        yield execution


@with_tf_estimator
def test_two_workers_make_the_steps_together(workers):
    assert workers.value("[job.status for job in jobs.values()]") == ["Completed"] * len(workers.ways)
    assert workers.value("sorted({event.host for event in jobs['RING'].logs()})") == ["algo-1", "algo-2"]
    for way in workers.ways:
        (summary,) = figures(workers.logs[way], "summary:")
        assert (summary["layout"], summary["trainers"]) == ("multi_worker_mirrored_estimator", "2")


@with_tf_estimator
@pytest.mark.parametrize("way", WAYS)
def test_the_loss_falls_from_checkpoint_to_checkpoint(workers, way):
    found = figures(workers.logs[way], "evaluation:")
    assert [int(each["global_step"]) for each in found] == [0, STEPS, 2 * STEPS]
    losses = [float(each["loss"]) for each in found]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] - losses[-1] > 0.0005
    assert workers.value(f"losses[{way!r}]") == losses


@with_tf_estimator
@pytest.mark.thorough
def test_both_ways_to_communicate_add_up_the_same_gradients(workers):
    ring, auto = (figures(workers.logs[way], "evaluation:")[-1] for way in workers.ways)
    assert float(ring["loss"]) == pytest.approx(float(auto["loss"]), abs=0.001)


@with_tf_estimator
def test_the_exported_estimator_scores_what_the_job_said(workers):
    said = dict(re.findall(r"(RING|AUTO): accuracy (\d\.\d+)", workers.text()))
    assert said == {way: figures(workers.logs[way], "summary:")[0]["accuracy"] for way in workers.ways}


@with_tf_estimator
def test_the_notebook_draws_the_losses(workers):
    assert len(workers.pictures()) == 1
    assert workers.value("steps") == [0, STEPS, 2 * STEPS]
