"""What the caller gives as a hyperparameter is what the runtime reads back."""

import math

from hypothesis import given
from hypothesis import strategies as st

from scriptmode.hyperparameters import encode
from scriptmode_runtime import contract

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
NAMES = st.text(min_size=1, max_size=20).filter(lambda name: not name.startswith("sagemaker_"))


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_every_value_survives_the_wire(values):
    encoded = encode(values, script_mode=True)
    assert {key: contract.decode(text) for key, text in encoded.items()} == values


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_every_bit(value):
    assert math.copysign(1, contract.decode(contract.encode(value))) == math.copysign(1, value)
    assert contract.decode(contract.encode(value)) == value


def test_text_that_is_not_json_stands_for_itself():
    assert contract.decode("plain words") == "plain words"
