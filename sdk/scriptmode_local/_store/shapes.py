"""Validation of the JSON that was read from a record, before any code relies on it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

#: The last second of the year 9999, which `datetime` can still render.
LAST_SECOND = 253402300799
#: Identities of processes by their names, and the progress of channels, as records and a host's agent have them.
PROCESSES = {"*": {"pid!": int, "started!": int, "boot!": str}}
PROGRESS = [{"channel!": str, "mode!": str, "done!": int, "total": (int,), "epoch": (int,)}]
_SHOWN_CHARACTERS = 60


def is_time(value: object) -> bool:
    """Return whether a value is a time in seconds since the epoch that can be rendered as a date."""
    # The comparison is false for infinity and NaN.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LAST_SECOND


def is_number(value: object) -> bool:
    """Return whether a value is a finite number and not a boolean."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def validate_shape(value: Any, shape: Any, where: str) -> None:
    """Raise ``ValueError`` for a value of another shape; the message names the part by its path below ``where``.

    A shape is a type, a test such as `is_time`, a list of one shape, a tuple of the shape of a value that may be null,
    or a dict of shapes by key: ``"*"`` stands for every other key, and a key that ends in ``!`` is required. Keys
    without a shape may hold any value. ``where`` is "" for the whole value.
    """
    if isinstance(shape, tuple):
        if value is not None:
            validate_shape(value, shape[0], where)
    elif isinstance(shape, list):
        _require(value, list, where)
        for index, item in enumerate(value):
            validate_shape(item, shape[0], f"{where}[{index}]")
    elif isinstance(shape, dict):
        _require(value, dict, where)
        for key in shape:
            if key.endswith("!") and key[:-1] not in value:
                raise ValueError(f"{where or 'it'} has no {key[:-1]!r}")
        _check_members(value, shape, where)
    elif not isinstance(shape, type):
        if not shape(value):
            raise ValueError(f"{where} is {shortened_repr(value)}, not {shape.__name__[3:]}")
    else:
        _require(value, shape, where)


def _check_members(value: Mapping[str, Any], shape: Mapping[str, Any], where: str) -> None:
    for key, member in value.items():
        expected = shape.get(key, shape.get(f"{key}!", shape.get("*")))
        # Most members have just the type: a list of jobs looks at thousands.
        if expected is not None and type(member) is not expected:
            validate_shape(member, expected, f"{where}.{key}" if where else str(key))


def _require(value: object, kind: type, where: str) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{where or 'it'} is {shortened_repr(value)}, not {kind.__name__}")


def shortened_repr(value: object) -> str:
    """Return the ``repr`` of a value for an error message, shortened."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
