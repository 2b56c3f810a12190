"""Ranges of hyperparameters that a tuning job searches, under the names of the SageMaker SDK v2. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

from scriptmode.errors import invalid
from scriptmode_runtime import contract

_ARGUMENT = "hyperparameter_ranges"


@dataclass(frozen=True)
class IntegerParameter:
    """Whole numbers from ``min_value`` to ``max_value``, both included.

    Args:
        min_value: The least value.
        max_value: The greatest value.
        scaling_type: ``Auto``, ``Linear`` or ``Logarithmic`` (the values are positive).
    """

    min_value: int
    max_value: int
    scaling_type: str = "Auto"

    def __post_init__(self) -> None:
        _check_bounds(self)


@dataclass(frozen=True)
class ContinuousParameter:
    """Numbers from ``min_value`` to ``max_value``, both included.

    Args:
        min_value: The least value.
        max_value: The greatest value.
        scaling_type: ``Auto``, ``Linear``, ``Logarithmic`` (the values are positive) or ``ReverseLogarithmic`` (the
            values are at least 0 and less than 1).
    """

    min_value: float
    max_value: float
    scaling_type: str = "Auto"

    def __post_init__(self) -> None:
        _check_bounds(self)


@dataclass(frozen=True, init=False)
class CategoricalParameter:
    """One of several values: texts, numbers, or what else JSON has.

    Args:
        values: The values: a list of them, or a single one.
    """

    values: tuple[Any, ...]

    def __init__(self, values: Any) -> None:
        is_one = isinstance(values, (str, bytes)) or not hasattr(values, "__iter__")
        given = (values,) if is_one else tuple(values)
        if not given:
            raise invalid("values", "is empty", "give one value or more")
        object.__setattr__(self, "values", given)


ParameterRange = Union[IntegerParameter, ContinuousParameter, CategoricalParameter]
_KINDS = (IntegerParameter, ContinuousParameter, CategoricalParameter)


def _check_bounds(given: IntegerParameter | ContinuousParameter) -> None:
    low, high, scaling = given.min_value, given.max_value, given.scaling_type
    is_integer = isinstance(given, IntegerParameter)
    if not all(_is_number(value, "__index__" if is_integer else "__float__") for value in (low, high)) or low >= high:
        kind = "whole" if is_integer else "finite"
        raise invalid(
            "min_value", f"and max_value are {low!r} and {high!r}", f"give two {kind} numbers, the lesser first"
        )
    is_reversible = not is_integer and low >= 0 and high < 1
    allowed = {"Auto": True, "Linear": True, "Logarithmic": low > 0, "ReverseLogarithmic": is_reversible}
    if not isinstance(scaling, str) or not allowed.get(scaling, False):
        step = "Auto and Linear are for all, Logarithmic for values above 0, and ReverseLogarithmic is for a "
        what = f"is {scaling!r} for values from {low!r} to {high!r}"
        raise invalid("scaling_type", what, f"{step}ContinuousParameter of at least 0 and less than 1")


def _is_number(value: Any, attribute: str) -> bool:
    is_number = not isinstance(value, (bool, str)) and hasattr(value, attribute)
    return is_number and (isinstance(value, int) or math.isfinite(value))


def _parse_range(given: object) -> object:
    """Return a range of the SageMaker SDK, whose classes have the same names, as one of these; others as they are."""
    if isinstance(given, _KINDS):
        return given
    kind = next((kind for kind in _KINDS if kind.__name__ == type(given).__name__), None)
    if kind is None:
        return given
    names = ("values",) if kind is CategoricalParameter else ("min_value", "max_value", "scaling_type")
    return kind(*(getattr(given, name) for name in names))


def check_ranges(ranges: object) -> dict[str, ParameterRange]:
    """Return the ranges by the names of their hyperparameters; raise `SpecError` for other values."""
    if not isinstance(ranges, dict) or not ranges:
        raise invalid(_ARGUMENT, f"is {ranges!r}", 'give a dict, such as {"lr": ContinuousParameter(1e-4, 1e-1)}')
    parsed = {name: _parse_range(value) for name, value in ranges.items()}
    own = (contract.RESERVED_PREFIX, contract.TUNING_METRIC)
    for name, parameter in parsed.items():
        if not isinstance(name, str) or name.startswith(own) or name in ("", contract.MODEL_DIR_PARAMETER):
            raise invalid(_ARGUMENT, f"has the name {name!r}", "give a hyperparameter of the script, such as 'lr'")
        if not isinstance(parameter, _KINDS):
            step = "give an IntegerParameter, a ContinuousParameter or a CategoricalParameter"
            raise invalid(f"{_ARGUMENT}[{name!r}]", f"is {parameter!r}", step)
    return parsed  # type: ignore[return-value]  # each was checked


def grid_size(ranges: Mapping[str, ParameterRange]) -> int:
    """Return the number of combinations of a grid search; raise `SpecError` where a range is not categorical."""
    for name, parameter in ranges.items():
        if not isinstance(parameter, CategoricalParameter):
            what = f"is {parameter!r}, but strategy 'Grid' takes single values"
            raise invalid(f"{_ARGUMENT}[{name!r}]", what, "give a CategoricalParameter([...]), or another strategy")
    return math.prod(len(choice.values) for choice in ranges.values() if isinstance(choice, CategoricalParameter))
