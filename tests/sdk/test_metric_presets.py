"""``metric_definitions="keras"``: what Keras prints, in every version and verbosity."""

import pytest
from fakes.command_line import documents, invoke

from scriptmode import Estimator, SpecError
from scriptmode.spec.metric_definitions import PRESETS, Definition, may_be_slow

LINES = {
    "Keras 2": "938/938 [==============================] - 4s 4ms/step - loss: 0.2609 - accuracy: 0.9241 - val_loss: 1.4e-01 - val_accuracy: 0.9586",
    "Keras 3": "\x1b[1m938/938\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m4s\x1b[0m 4ms/step - accuracy: 0.9241 - loss: 0.2609 - val_accuracy: 0.9586 - val_loss: 1.4e-01",
    "verbose=2": "938/938 - 4s - 4ms/step - accuracy: 0.9241 - loss: 0.2609 - val_accuracy: 0.9586 - val_loss: 0.14",
}  # fmt: skip


@pytest.mark.parametrize("line", LINES.values(), ids=list(LINES))
def test_each_value_of_a_line_of_keras_is_found_once(line):
    found = {name: list(Definition(name, regex).values(line)) for name, regex in PRESETS["keras"]}
    assert found == {"loss": [0.2609], "accuracy": [0.9241], "val_loss": [0.14], "val_accuracy": [0.9586]}


def test_a_diverged_loss_is_not_a_number():
    (value,) = Definition(*PRESETS["keras"][0]).values("1/1 - 0s - loss: nan - accuracy: 0.1")
    assert value != value  # noqa: PLR0124 - NaN


def test_no_regex_of_a_preset_can_take_long():
    assert not [regex for pairs in PRESETS.values() for _, regex in pairs if may_be_slow(regex)]


def definitions(value):
    request = Estimator(entry_point="x.py", instance_type="local_process", metric_definitions=value).request(
        "file:///x"
    )
    return [each["Name"] for each in request["AlgorithmSpecification"]["MetricDefinitions"]]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, no_settings):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").touch()


def test_a_preset_stands_for_its_metrics_alone_and_in_a_list():
    assert definitions("keras") == ["loss", "accuracy", "val_loss", "val_accuracy"]
    assert definitions(["keras", {"Name": "lr", "Regex": "lr=(.+)"}])[-2:] == ["val_accuracy", "lr"]


@pytest.mark.parametrize("value", ["kears", ["kears"], 5, [5]])
def test_another_value_is_an_error_that_names_the_presets(value):
    with pytest.raises(SpecError, match="metric_definitions is .*give a list of .*, or 'keras'"):
        Estimator(entry_point="x.py", instance_type="local_process", metric_definitions=value)


def test_the_option_takes_a_preset_beside_other_metrics():
    (plan,) = documents(invoke("plan", "x.py", "--metric", "keras", "--metric", "lr=lr: (.+)", "--json").stdout.replace("\n", ""))  # fmt: skip
    found = [each["Name"] for each in plan["request"]["AlgorithmSpecification"]["MetricDefinitions"]]
    assert found == ["loss", "accuracy", "val_loss", "val_accuracy", "lr"]
    wrong = invoke("plan", "x.py", "--metric", "kears")
    assert wrong.exit_code == 2
    assert "--metric 'kears' does not have the form NAME=VALUE" in wrong.stderr
    assert "or --metric keras" in wrong.stderr
