"""Counts, times and switches as callers give them: ints, NumPy's, and floats without a fraction; truth values. Pure."""

from __future__ import annotations

import operator
from contextlib import suppress
from numbers import Real

from scriptmode.errors import SpecError, invalid


def whole_number(name: str, value: object, least: int | None = None, *, hint: str = "") -> int:
    """Return a count or a time as an int; raise `SpecError` for anything but a whole number of at least ``least``.

    True, False and strings are not numbers. ``hint`` continues the message where the message names the least.
    """
    number = _as_int(value)
    if number is None or (least is not None and number < least):
        kind = "" if isinstance(value, (int, float, str)) else f" of type {type(value).__name__}"
        bound = "" if least is None else f" of at least {least}"
        raise invalid(name, f"is {value!r}{kind}", f"give a whole number (int){bound}{hint}")
    return number


def set_whole(settings: object, field: str, name: str, least: int, *, hint: str = "", optional: bool = False) -> None:
    """Check a field of a frozen dataclass that is a whole number, and leave it as an int; optional ones may be None."""
    value = getattr(settings, field)
    if value is not None or not optional:
        object.__setattr__(settings, field, whole_number(name, value, least, hint=hint))


def truth_value(name: str, value: object, argument: str | None = None) -> bool:
    """Return a switch as a bool: numbers and None by their truth, and "True", as the SageMaker SDK v2 takes them.

    Raises `SpecError`, about ``argument`` or the name, for others: for v2 every text is true, "False" too.
    """
    if isinstance(value, str) and value.lower() == "true":
        return True
    if value is None or _is_bool(value) or _as_float(value) is not None:
        return bool(value)
    raise SpecError(f"{name} is {value!r}", "give True or False", argument=argument or name)


def set_truth(settings: object, field: str, name: str, argument: str | None = None) -> None:
    """Leave a switch of a frozen dataclass as a bool; ``None`` stays, which is a default."""
    value = getattr(settings, field)
    if value is not None:
        object.__setattr__(settings, field, truth_value(name, value, argument))


def _as_int(value: object) -> int | None:
    if _is_bool(value):
        return None
    with suppress(TypeError):
        return operator.index(value)  # type: ignore[arg-type]
    number = _as_float(value)
    return int(number) if number is not None and number.is_integer() else None


def _is_bool(value: object) -> bool:
    # NumPy's truth value, which is not imported here, still counts as an index.
    return isinstance(value, bool) or type(value).__name__.startswith("bool")


def _as_float(value: object) -> float | None:
    return float(value) if isinstance(value, Real) else None
