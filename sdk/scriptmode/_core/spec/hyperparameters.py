"""Hyperparameters of the request: strings, JSON-encoded in script mode."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from scriptmode.errors import SpecError
from scriptmode_runtime import contract


def _error(what: str, advice: str) -> SpecError:
    return SpecError(what, advice, argument="hyperparameters")


def encode_hyperparameters(values: Mapping[str, Any], *, script_mode: bool) -> dict[str, str]:
    """Return hyperparameters as strings: JSON in script mode, ``str()`` without a script.

    NumPy scalars and paths are converted to Python's own types. Raises `SpecError` for a value that JSON does not have.
    """
    encoded = {}
    for key, value in values.items():
        if not isinstance(key, str) or not key:
            raise _error(f"hyperparameter name {key!r} is not a string of at least one character", "name it")
        if script_mode and key.startswith("-"):
            raise _error(f"hyperparameter {key!r} begins with a dash", "leave its dashes out: the script gets them")
        encoded[key] = _encode_json(key, value) if script_mode else _encode_text(key, value)
    return encoded


def check_texts(encoded: Mapping[str, str]) -> dict[str, str]:
    """Return what the script accepts; raise `SpecError` naming the first hyperparameter that it does not."""
    for key, text in encoded.items():
        if problem := contract.hyperparameter_problem(key, text):
            raise _error(problem, "correct it")
    return dict(encoded)


def _encode_json(key: str, value: object) -> str:
    try:
        return contract.encode(_plain(value))
    except (TypeError, ValueError) as error:
        what, step = f"of type {type(value).__name__}", "give its .tolist(), or put it in a file"
        if isinstance(value, float):
            what, step = f"{value!r}, which JSON does not have", "give a finite number"
        elif not hasattr(value, "tolist"):
            what, step = f"{what}, which cannot be encoded as JSON: {error}", "give text, numbers, lists or dicts"
        raise _error(f"hyperparameter {key!r} is {what}", step) from error


def _encode_text(key: str, value: object) -> str:
    plain = _plain(value)
    if isinstance(plain, float) and not math.isfinite(plain):
        raise _error(f"hyperparameter {key!r} is {value!r}, which is not finite", "give a number, or a string")
    return str(plain)


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a NumPy scalar
        return value.item()
    return value
