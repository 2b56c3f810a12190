"""Metrics in the lines of a log: presets, the step and epoch of a value, and expressions that backtrack."""

import json
import logging
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from fakes.command_line import documents, invoke

from scriptmode import Estimator, SpecError
from scriptmode._core.request.parse import parse_description
from scriptmode._core.spec.metric_definitions import PRESETS, Definition
from scriptmode._core.spec.service_values import LogEvent, Metric
from scriptmode._results.metrics import Metrics
from scriptmode_local._outputs.log_metrics import last_value, parse_metrics
from scriptmode_local._store.host_logs import LogReader, last_lines

KERAS_LINES = {
    "Keras 2": "938/938 [==============================] - 4s 4ms/step - loss: 0.2609 - accuracy: 0.9241 - val_loss: 1.4e-01 - val_accuracy: 0.9586",
    "Keras 3": "\x1b[1m938/938\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m4s\x1b[0m 4ms/step - accuracy: 0.9241 - loss: 0.2609 - val_accuracy: 0.9586 - val_loss: 1.4e-01",
    "verbose=2": "938/938 - 4s - 4ms/step - accuracy: 0.9241 - loss: 0.2609 - val_accuracy: 0.9586 - val_loss: 0.14",
}  # fmt: skip


@pytest.mark.parametrize("line", KERAS_LINES.values(), ids=list(KERAS_LINES))
def test_each_value_of_a_line_of_keras_is_found_once(line):
    assert last_value(f"{line} - f1: 0.5\nend", PRESETS["keras"]) == Metric("loss", 0.2609)
    found = {name: list(Definition(name, regex).values(line)) for name, regex in PRESETS["keras"]}
    found = {name: values for name, values in found.items() if values}
    assert found == {"loss": [0.2609], "accuracy": [0.9241], "val_loss": [0.14], "val_accuracy": [0.9586]}


KERAS_NAMES = [
    prefix + name
    for prefix in ("", "val_")
    for name in ("loss", "accuracy", "mae", "mse", "auc", "precision", "recall")
]
#: Trains without and with a progress bar, and writes the history that Keras returns.
FIT = """
import json, sys
import numpy as np
import tensorflow as tf

def close(y, p):
    return 1 - abs(y - p)

x = np.random.rand(640, 4).astype("float32")
histories = []
for verbose in (1, 2):
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae", close, tf.keras.metrics.RootMeanSquaredError(name="of 1/rmse")])
    # Of a dataset whose size is unknown the first epoch has no bar.
    data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(8).filter(lambda *_: True)
    histories.append(model.fit(data, epochs=3, validation_data=data, verbose=verbose).history)
    model.evaluate(data, verbose=verbose)
    model.predict(data, verbose=verbose)
json.dump(histories, open(sys.argv[1], "w"))
"""


def found_in(log, definitions=PRESETS["keras"]):
    reader = LogReader(log)
    events = [LogEvent("algo-1", *line) for line in reader.lines(final=True)]
    reader.close()
    found = {}
    for each in parse_metrics(events, replace(ALGORITHM, metric_definitions=tuple(definitions))):
        found.setdefault(each.name, []).append(each.value)
    return found


@pytest.mark.tf
@pytest.mark.slow
def test_each_metric_of_keras_has_one_value_for_each_epoch(tmp_path):
    with (tmp_path / "log").open("wb") as log:
        subprocess.run([sys.executable, "-c", FIT, tmp_path / "history"], check=True, stdout=log, stderr=log)
    with_bar, without = json.loads((tmp_path / "history").read_text())
    names = ["loss", "mae", "close", "of 1/rmse"]
    assert list(with_bar) == [*names, *(f"val_{name}" for name in names)]
    found = found_in(tmp_path / "log")
    assert found.keys() == with_bar.keys()
    for name, values in found.items():
        # Beside the epochs' ends, `evaluate` prints values of a metric once.
        evaluated = 0 if name.startswith("val_") else 1
        assert len(values) == 2 * (3 + evaluated)
        assert values[:3] == pytest.approx(with_bar[name], abs=1e-4)
        assert values[3 + evaluated :][:3] == pytest.approx(without[name], abs=1e-4)


BOLD, END = "\x1b[1m", "\x1b[0m"
BACK = "\b" * 90
BARS = {
    "keras 2": ("\r 31/128 [======>.......] - ETA: 0s - loss: 0.9 - f 1: 0.1" + BACK, "\r128/128 [==============================] - 1s 4ms/step - loss: 0.5 - f 1: 1e-05\n"),
    "keras 3": (f"\r{BOLD} 31/128{END} \x1b[32m━━{END}\x1b[37m━━{END} {BOLD}0s{END} 3ms/step - f 1: 0.1 - loss: 0.9{BACK}", f"\r{BOLD}128/128{END} \x1b[32m━━━━{END}\x1b[37m{END} {BOLD}1s{END} 4ms/step - f 1: 1e-05 - loss: 0.5  \n"),
    "unknown size": ("\r     31/Unknown - 1s 4ms/step - loss: 0.9 - f 1: 0.1" + BACK, "\r128/128 [==============================] - 1s 4ms/step - loss: 0.5 - f 1: 1e-05\n"),
}  # fmt: skip


@pytest.mark.parametrize(("bar", "end"), BARS.values(), ids=list(BARS))
def test_a_progress_bar_has_values_when_it_has_reached_its_end(tmp_path, bar, end):
    log = tmp_path / "log"
    log.write_text(bar * 3 + end)
    assert found_in(log) == {"loss": [0.5], "f 1": [1e-05]}
    log.write_text(f"{bar}{bar}\nTraceback (most recent call last):\n")
    assert found_in(log) == {}
    log.write_text(bar * 20_000 + end)
    assert found_in(log) == {"loss": [0.5], "f 1": [1e-05]}
    # Only with the preset a metric has another name than its definition.
    assert found_in(log, [("loss", "loss: ([0-9.]+)")]) == {"loss": [0.5]}


#: Keras 2 draws the last batch, a callback prints at the end of the epoch, and Keras draws the end below.
CALLBACK = (
    "\r80/80 [======] - ETA: 0s - loss: 0.15val_f1: 0.60\n" + BACK + "\r80/80 [======] - 5s 60ms/step - loss: 0.15\n"
)


def test_what_a_callback_prints_behind_a_bar_is_found_and_the_bar_is_not(tmp_path):
    (tmp_path / "log").write_text(CALLBACK)
    own = [*PRESETS["keras"], ("f1", "val_f1: ([0-9.]+)")]
    assert found_in(tmp_path / "log", own) == {"loss": [0.15], "f1": [0.6]}
    assert found_in(tmp_path / "log", own[-1:]) == {"f1": [0.6]}


def test_a_bar_that_was_interrupted_has_no_value_in_the_list_of_jobs(tmp_path):
    (tmp_path / "log").write_text(BARS["keras 2"][0])
    end = last_lines(tmp_path / "log", 200, 8192)
    assert "loss: 0.9" in end
    assert last_value(end, PRESETS["keras"]) is None


def test_text_before_the_line_of_keras_is_not_a_metric(tmp_path):
    (tmp_path / "log").write_text("INFO - rank: 3 - 10/10 - 2s - loss: 0.5 - f1: 0.4\n")
    assert found_in(tmp_path / "log") == {"loss": [0.5], "f1": [0.4]}


def test_a_log_adds_few_names(tmp_path):
    (tmp_path / "log").write_text("".join(f"1/1 - 0s - x{number}: 1 - {'y' * 300}: 1\n" for number in range(1000)))
    assert list(found_in(tmp_path / "log")) == [f"x{number}" for number in range(100)]


@pytest.mark.parametrize("line", ["3/10 - loss: 0.5", "epoch 3/10 - 2s - loss: 0.5 - f1: 0.5", "\r3/10 loss: 0.5"])
def test_a_line_that_keras_did_not_print_has_the_defined_metrics_alone(tmp_path, line):
    (tmp_path / "log").write_text(line)
    assert found_in(tmp_path / "log") == {"loss": [0.5]}


def definitions(value):
    made = Estimator(entry_point="x.py", instance_type="local_process", metric_definitions=value)
    request = made.request("file:///x")
    return [each["Name"] for each in request["AlgorithmSpecification"]["MetricDefinitions"]]


@pytest.fixture(autouse=True)
def here(own_directory, no_settings):
    (own_directory / "x.py").touch()


def test_the_error_about_metrics_without_values_names_the_preset():
    message = Metrics(definitions=[("lr", "lr=(.+)"), *PRESETS["keras"]]).table()
    assert "the Regex 'lr=(.+)' of metric 'lr' and of each metric of 'keras' found no number" in message


def test_a_preset_stands_for_its_metrics_alone_and_in_a_list():
    assert definitions("keras") == KERAS_NAMES
    assert definitions(["keras", {"Name": "lr", "Regex": "lr=(.+)"}]) == [*KERAS_NAMES, "lr"]


@pytest.mark.parametrize("value", ["torch", [5]])
def test_another_value_is_an_error_that_names_the_presets(value):
    with pytest.raises(SpecError, match="metric_definitions is .*give a list of .*, or 'keras'"):
        Estimator(entry_point="x.py", instance_type="local_process", metric_definitions=value)


def test_the_option_takes_a_preset_beside_other_metrics():
    (plan,) = documents(invoke("plan", "x.py", "--metric", "keras", "--metric", "lr=lr: (.+)", "--json").stdout.replace("\n", ""))  # fmt: skip
    found = [each["Name"] for each in plan["request"]["AlgorithmSpecification"]["MetricDefinitions"]]
    assert found == [*KERAS_NAMES, "lr"]
    stderr = invoke("plan", "x.py", "--metric", "torch").stderr
    assert "NAME=VALUE; write --metric 'loss=loss=([0-9.]+)', or --metric keras" in stderr


ALGORITHM = parse_description(
    {
        "TrainingJobName": "j",
        "TrainingJobStatus": "Completed",
        "AlgorithmSpecification": {"MetricDefinitions": [{"Name": "loss", "Regex": "loss[=: ]+([0-9.]+)"}]},
    }
).job.algorithm
LINES = {
    "step 7: loss=1": (7, None), "global_step=7 loss=1": (7, None),
    "loss=1 steps=400 bytes/step=850786": (None, None),
    '{"epoch": 2, "iteration": 30, "loss": 1}'.replace('"loss": ', "loss=") : (30, 2),
    "Epoch: [2][ 40/400] loss 1": (None, 2), "EPOCH 2 step 7 step 8 loss=1": (7, 2),
    "loss=1 at iter 12": (12, None), "step=0.5 loss=1": (None, None), "timestep 3 loss=1": (None, None),
    "938/938 - 3s - loss: 1": (None, None), f"loss=1 {'x' * 5000} step 3": (None, None),
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


CATASTROPHIC = r"loss=(a|aa)+$|x"
LINE = "loss=" + "a" * 80 + "b"
DESCRIPTION = {
    "TrainingJobName": "j", "TrainingJobStatus": "InProgress", "SecondaryStatus": "Training",
    "AlgorithmSpecification": {
        "MetricDefinitions": [
            {"Name": "bad", "Regex": CATASTROPHIC},
            {"Name": "good", "Regex": "acc=([0-9.]+)"},
            {"Name": "many", "Regex": ".*(acc)=.*?([0-9.]+)"},
        ]
    },
}  # fmt: skip


@pytest.fixture
def events():
    return [LogEvent("algo-1", f"acc=0.{number} {LINE}") for number in range(100)]


@pytest.mark.slow
def test_a_metric_that_takes_too_long_is_switched_off_and_the_others_are_found(events, caplog):
    began = time.process_time()  # regex measures its limit by it too
    with caplog.at_level(logging.WARNING, "scriptmode"):
        found = parse_metrics(events, parse_description(DESCRIPTION).job.algorithm)
    assert [each.name for each in found] == ["good"] * 100
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == 1
    assert warned[0].startswith("metric 'bad' is switched off: a line of ")
    assert "correct it" in warned[0]
    assert time.process_time() - began < 30


@pytest.mark.parametrize("regex", [r"loss=([0-9.]+)", r"(?:x)?acc: ([0-9]*)", r"l(?=o)"])
@pytest.mark.parametrize("line", ["loss=0.5; acc: 7 a=3", "", "aaab", "x" * 10_000 + "loss=1.5;", "ünï=1 loss=٣"])
def test_the_engine_with_a_limit_finds_what_re_matches(regex, line):
    texts = [match[match.re.groups] for match in re.finditer(regex, line)]
    assert list(Definition("m", regex).values(line)) == [float(text) for text in texts if text not in ("", "l")]


@pytest.mark.slow
@pytest.mark.parametrize("regex", [r"(a|aa)+$", "a?" * 40 + "a" * 40, r"(.*)*=(.*)*=x"])
def test_what_may_take_long_is_limited(regex):
    definition = Definition("m", regex)
    began = time.process_time()
    for _ in range(3):
        list(definition.values("a" * 39 + "c"))
    assert time.process_time() - began < 20
