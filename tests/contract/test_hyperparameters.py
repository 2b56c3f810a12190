"""What the caller gives as a hyperparameter is what the runtime reads back."""

import json
import math
import shutil
import subprocess
import sys

import pytest
from fakes.estimators import estimator
from fakes.host_folders import write_host
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scriptmode.errors import SpecError
from scriptmode.spec.hyperparameters import encode_hyperparameters
from scriptmode_runtime import contract, environment, variables

NO_NUL = st.text(st.characters(blacklist_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NO_NUL,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
#: What a program can be given: no NUL, and only what UTF-8 can carry.
WORDS = st.characters(blacklist_categories=("Cs",), blacklist_characters="\0")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(WORDS, max_size=200)
)
ARGUMENT_VALUES = (
    SCALARS | st.lists(SCALARS, max_size=4) | st.dictionaries(st.text(WORDS, max_size=8), st.integers(), max_size=4)
)
ARGUMENT_NAMES = st.text(WORDS, min_size=1, max_size=20).filter(
    lambda name: not name.startswith("sagemaker_") and name not in ("_tuning_objective_metric", "model_dir")
)
NAMES = st.text(min_size=1, max_size=20).filter(lambda name: not name.startswith("sagemaker_"))


@pytest.mark.slow
@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_every_value_survives_the_wire(values):
    encoded = encode_hyperparameters(values, script_mode=True)
    assert {key: contract.decode(text) for key, text in encoded.items()} == values


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_every_bit(value):
    assert math.copysign(1, contract.decode(contract.encode(value))) == math.copysign(1, value)
    assert contract.decode(contract.encode(value)) == value


def as_argument(value):
    """How the SageMaker toolkit gives a value to a script."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return ",".join(f"{key}={value[key]}" for key in sorted(value))
    return str(value)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.dictionaries(ARGUMENT_NAMES, ARGUMENT_VALUES, max_size=5))
def test_every_value_reaches_the_scripts_argv_exactly(values, code, tmp_path):
    request = estimator(code, hyperparameters=values).request(job_name="job-1")
    host = tmp_path / "host"
    shutil.rmtree(host, ignore_errors=True)
    write_host(host)
    (host / contract.HYPERPARAMETERS_FILE).write_text(json.dumps(request["HyperParameters"]))
    argv = variables.script_arguments(environment.read(str(host), {}).hyperparameters)
    expected = []
    for key in sorted(values):
        expected += [f"--{key}" if len(key) > 1 else f"-{key}", as_argument(values[key])]
    assert list(argv) == expected
    shown = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *argv],
        check=True,
        capture_output=True,
        timeout=60,
        env={"PYTHONUTF8": "1"},
    )
    assert json.loads(shown.stdout) == expected


def test_text_that_no_program_can_be_given_is_refused():
    with pytest.raises(SpecError, match="'name' has a NUL character"):
        encode_hyperparameters({"name": "a\0b"}, script_mode=True)


def test_text_that_is_not_json_stands_for_itself():
    assert contract.decode("plain words") == "plain words"
