"""The step and the epoch of a metric's value: the numbers that its line of the log names."""

import pytest

from scriptmode.platforms.base import LogEvent
from scriptmode.platforms.local.outputs.metrics import parse_metrics
from scriptmode.request.parse import parse_description

ALGORITHM = parse_description(
    {
        "TrainingJobName": "j",
        "TrainingJobStatus": "Completed",
        "AlgorithmSpecification": {"MetricDefinitions": [{"Name": "loss", "Regex": "loss[=: ]+([0-9.]+)"}]},
    }
).job.algorithm
LINES = {
    "step 7: loss=1": (7, None),
    "global_step=7 loss=1": (7, None),
    "global step: 7, loss: 1": (7, None),
    '{"epoch": 2, "iteration": 30, "loss": 1}'.replace('"loss": ', "loss=") : (30, 2),
    "Epoch: [2][ 40/400] loss 1": (None, 2),
    "Epoch 2/12 loss=1": (None, 2),
    "EPOCH 2 step 7 step 8 loss=1": (7, 2),
    "loss=1 at iter 12": (12, None),
    "steps=100 epochs=12 loss=1": (None, None),
    "step=0.5 loss=1": (None, None),
    "step_time=3 loss=1": (None, None),
    "timestep 3 loss=1": (None, None),
    "938/938 - 3s - loss: 1": (None, None),
    f"loss=1 {'x' * 5000} step 3": (None, None),
}  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), LINES.items(), ids=[line[:40] for line in LINES])
def test_a_value_has_the_step_and_the_epoch_of_its_line(line, expected):
    (metric,) = parse_metrics([LogEvent("algo-1", line)], ALGORITHM)
    assert (metric.value, (metric.step, metric.epoch)) == (1.0, expected)


def test_values_below_a_heading_of_keras_have_its_epoch_on_their_host():
    lines = ("algo-1", "Epoch 1/3"), ("algo-2", "loss: 9"), ("algo-1", "938/938 - 3s - loss: 2"), ("algo-2", "Epoch 1/3"), \
        ("algo-1", "Epoch 2/3"), ("algo-2", "loss: 8"), ("algo-1", "938/938 - 3s - loss: 1"), ("algo-1", "epoch 7 loss: 0")  # fmt: skip
    metrics = parse_metrics([LogEvent(host, text) for host, text in lines], ALGORITHM)
    assert [(each.host, each.value, each.epoch) for each in metrics] == [
        ("algo-2", 9.0, None), ("algo-1", 2.0, 1), ("algo-2", 8.0, 1), ("algo-1", 1.0, 2), ("algo-1", 0.0, 7),
    ]  # fmt: skip
