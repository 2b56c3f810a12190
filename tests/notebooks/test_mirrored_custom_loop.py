"""The notebook of the loop of one's own: two logical devices, three kinds of loop, checkpoints, no strategy at the end."""

import pytest
from notebooks.execution import executed, figures

pytestmark = [pytest.mark.long, pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(3600)]

EPOCHS = 4


@pytest.fixture(scope="module")
def mirrored():
    with executed("mirrored_custom_loop", EPOCHS=EPOCHS) as execution:
        execution.log = execution.value("[event.message for event in job.logs()]")
        yield execution


def test_two_devices_go_through_the_epochs_in_each_kind_of_loop(mirrored):
    assert mirrored.value("job.status") == "Completed"
    evaluations = figures(mirrored.log, r"evaluation \d+:")
    assert [each["loop"] for each in evaluations] == ["each-batch", "iterator", "function", "each-batch"]
    (summary,) = figures(mirrored.log, "summary:")
    # 10,000 images in batches of 2 x 64: the last one of each epoch is smaller.
    assert (summary["trainers"], summary["steps"]) == ("2", str(79 * EPOCHS))


def test_the_network_learns_as_it_was_measured_to(mirrored):
    train = figures(mirrored.log, r"epoch \d+:")
    losses = [float(each["loss"]) for each in train]
    assert losses == sorted(losses, reverse=True)
    assert float(figures(mirrored.log, r"evaluation \d+:")[-1]["accuracy"]) > 0.83


def test_the_last_checkpoint_scores_the_same_without_the_strategy(mirrored):
    written = [line.split(":")[0] for line in mirrored.log if line.startswith("checkpoint")]
    assert written == ["checkpoint 2", "checkpoint 4"]
    (restored,) = figures(mirrored.log, "restored ")
    (summary,) = figures(mirrored.log, "summary:")
    with_strategy = figures(mirrored.log, r"evaluation \d+:")[-1]["accuracy"]
    assert restored["accuracy"] == summary["accuracy"] == with_strategy
    assert f"{mirrored.value('accuracy'):.4f}" == with_strategy


def test_the_notebook_draws_both_accuracies(mirrored):
    assert len(mirrored.pictures()) == 1
    names = mirrored.value("[row['metric_name'] for row in job.metrics()]")
    assert {name: names.count(name) for name in names} == {"train:accuracy": EPOCHS, "eval:accuracy": EPOCHS}
