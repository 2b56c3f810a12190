"""The option ``--set``: any argument of the estimator, as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any, Union, get_args, get_origin, get_type_hints

from scriptmode import InstanceGroup, SpecError
from scriptmode._core.spec.estimator_arguments import EstimatorArguments
from scriptmode._core.text.messages import did_you_mean

#: For a type of an argument: the types of values of JSON, and how they are called.
_TYPES: dict[type, tuple[type, str]] = {
    str: (str, "a string"),
    int: (int, "a whole number"),
    bool: (bool, "true or false"),
    Iterable: (list, "a list"),
    Mapping: (dict, 'names and values as JSON, such as {"name": 1}'),
}
#: Arguments of ``Estimator.fit``, and the options that stand for them.
_OF_FIT = {"inputs": "--input", "job_name": "--job-name"}
#: Arguments of the estimator that are Python objects, and what to use instead of them.
_INSTEAD = {"platform": "instance_type selects the platform", "sagemaker_session": "use --region and --profile"}


def estimator_arguments() -> dict[str, tuple[type, ...]]:
    """Return the estimator's arguments that text can represent, with the types that each accepts."""
    hints = get_type_hints(EstimatorArguments)
    return {name: _accepted_types(hint) for name, hint in hints.items() if name not in _INSTEAD}


def _accepted_types(hint: Any) -> tuple[type, ...]:
    kinds = (get_origin(part) or part for part in (get_args(hint) if get_origin(hint) is Union else (hint,)))
    return tuple(kind for kind in kinds if kind not in (type(None), os.PathLike))


def parse_setting(name: str, word: str) -> Any:
    """Return the value of an argument; raise `SpecError` for another argument, and for a value of another type."""
    types = _types_of(name)
    value: Any = word
    # What is not JSON is a text, and so is each word for an argument that accepts strings and not the word's value:
    # base_job_name=2024 is "2024".
    with suppress(ValueError, RecursionError):
        value = json.loads(word)
    if str in types and not _is_accepted(types, value):
        value = word
    if not _is_accepted(types, value):
        allowed = " or ".join(_TYPES[kind][1] for kind in types if kind in _TYPES) or "a value"
        raise SpecError(f"--set {name} is {value!r}", argument=name, advice=f"write {allowed}")
    return _parse_instance_groups(value) if name == "instance_groups" else value


def _types_of(name: str) -> tuple[type, ...]:
    known = estimator_arguments()
    if name in _OF_FIT:
        raise SpecError(f"--set {name}: {name} is not an argument of the estimator", advice=f"use {_OF_FIT[name]}")
    if name in _INSTEAD:
        raise SpecError(f"--set {name} cannot be written as text", argument=name, advice=_INSTEAD[name])
    if name not in known:
        advice = did_you_mean(name, (*known, *_OF_FIT)) or "use an argument of scriptmode.Estimator"
        raise SpecError(f"--set {name}: there is no argument {name!r}", advice=advice)
    return known[name]


def _is_accepted(types: Iterable[type], value: object) -> bool:
    accepted = tuple(_TYPES[kind][0] if kind in _TYPES else object for kind in types)
    is_bool_for_int = isinstance(value, bool) and bool not in accepted and object not in accepted
    return value is not None and isinstance(value, accepted) and not is_bool_for_int


def _parse_instance_groups(tables: list[Any]) -> list[InstanceGroup]:
    names = [field.name for field in fields(InstanceGroup)]
    for table in tables:
        if not isinstance(table, dict) or table.keys() != set(names):
            raise SpecError(f"--set instance_groups has {table!r}", advice=f"write an object of {', '.join(names)}")
    return [InstanceGroup(**table) for table in tables]
