"""Ranges of hyperparameters that a tuning job searches, under the names of the SageMaker SDK v2. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from scriptmode.errors import invalid
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

SCALING_TYPES = ("Auto", "Linear", "Logarithmic", "ReverseLogarithmic")
_ARGUMENT = "hyperparameter_ranges"
#: The service's limits (CreateHyperParameterTuningJob: entries of a tuning job, values of a categorical parameter).
RANGES_LIMIT, VALUES_LIMIT = 30, 30


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
        for name in ("min_value", "max_value"):
            value = getattr(self, name)
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise invalid(name, f"is {value!r}", "give a whole number, or use ContinuousParameter")
        _check_bounds(self)
        if self.scaling_type == "ReverseLogarithmic":
            raise invalid("scaling_type", "is 'ReverseLogarithmic'", "only ContinuousParameter has it; use Auto")


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
        for name in ("min_value", "max_value"):
            value = getattr(self, name)
            if isinstance(value, (bool, str)) or not hasattr(value, "__float__") or not math.isfinite(value):
                raise invalid(name, f"is {value!r}", "give a finite number")
        _check_bounds(self)
        if self.scaling_type == "ReverseLogarithmic" and not 0 <= self.min_value < self.max_value < 1:
            what = f"is 'ReverseLogarithmic' for values from {self.min_value!r} to {self.max_value!r}"
            raise invalid("scaling_type", what, "give values of at least 0 and less than 1, or use Auto")


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
        if not 1 <= len(given) <= VALUES_LIMIT:
            raise invalid("values", f"has {len(given)} entries", f"give 1 to {VALUES_LIMIT} values")
        object.__setattr__(self, "values", given)


ParameterRange = Union[IntegerParameter, ContinuousParameter, CategoricalParameter]
_KINDS = (IntegerParameter, ContinuousParameter, CategoricalParameter)


def _check_bounds(given: IntegerParameter | ContinuousParameter) -> None:
    low, high, scaling = given.min_value, given.max_value, given.scaling_type
    if low >= high:
        step = "give a fixed hyperparameter" if low == high else "exchange them"
        raise invalid("min_value", f"is {low!r}, which is not less than max_value, {high!r}", step)
    if scaling not in SCALING_TYPES:
        raise invalid("scaling_type", f"is {scaling!r}", f"give one of {', '.join(SCALING_TYPES)}")
    if scaling == "Logarithmic" and low <= 0:
        what = f"is 'Logarithmic' for values from {low!r} on"
        raise invalid("scaling_type", what, "a logarithm needs values above 0: give such a min_value, or use Linear")


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
    example = '{"lr": ContinuousParameter(1e-4, 1e-1)}'
    if not isinstance(ranges, dict):
        raise invalid(_ARGUMENT, f"is {ranges!r}", f"give a dict, such as {example}")
    if not 1 <= len(ranges) <= RANGES_LIMIT:
        raise invalid(_ARGUMENT, f"has {len(ranges)} entries", f"give 1 to {RANGES_LIMIT}, such as {example}")
    found = {name: _parse_range(each) for name, each in ranges.items()}
    for name, each in found.items():
        if not isinstance(name, str) or not name:
            raise invalid(_ARGUMENT, f"has the name {name!r}", "give a hyperparameter's name, such as 'lr'")
        if name.startswith((contract.RESERVED_PREFIX, contract.TUNING_METRIC)) or name == contract.MODEL_DIR_PARAMETER:
            raise invalid(_ARGUMENT, f"has the name {name!r}", "it is SageMaker's own, rename it")
        if not isinstance(each, _KINDS):
            what = f"is {each!r}"
            step = "give an IntegerParameter, a ContinuousParameter or a CategoricalParameter"
            raise invalid(f"{_ARGUMENT}[{name!r}]", what, step)
    return found  # type: ignore[return-value]  # each was checked


def grid_size(ranges: Mapping[str, ParameterRange]) -> int:
    """Return the number of combinations of a grid search; raise `SpecError` where a range is not categorical."""
    for name, each in ranges.items():
        if not isinstance(each, CategoricalParameter):
            what = f"is {each!r}, but strategy 'Grid' takes single values"
            raise invalid(f"{_ARGUMENT}[{name!r}]", what, "give a CategoricalParameter([...]), or another strategy")
    return math.prod(len(each.values) for each in ranges.values() if isinstance(each, CategoricalParameter))
