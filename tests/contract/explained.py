"""Differences to what AWS's software does, each with its reason: every other difference fails a test."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Callable

#: In a promise: other members are not compared, for AWS's software has none. And any text.
AND_MORE, SOME_TEXT = "...", "(some text)"


@dataclass(frozen=True)
class Difference:
    """``rewrite`` makes the record of AWS's software for a case what scriptmode promises, in place."""

    id: str
    what: str
    why: str
    rewrite: Callable[[Any, dict[str, Any]], None]


def promise(differences, case, record):
    """Return what scriptmode promises for a case, and which differences to the record that takes."""
    promised, used = copy.deepcopy(record), set()
    for difference in differences:
        before = copy.deepcopy(promised)
        difference.rewrite(case, promised)
        if promised != before:
            used.add(difference.id)
    return promised, used


def differing(expected, actual, path=""):
    """Return every member in which a record differs from what is promised, by its path, with both values."""
    if expected == actual or (expected == SOME_TEXT and isinstance(actual, str)):
        return {}
    nothing = "(nothing)"
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = expected.keys() - {AND_MORE} if AND_MORE in expected else {*expected, *actual}
        parts = [(f"{path}.{key}".strip("."), expected.get(key, nothing), actual.get(key, nothing)) for key in keys]
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        parts = [(f"{path}[{number}]", *pair) for number, pair in enumerate(zip(expected, actual))]
    else:
        return {path: f"promised {expected!r}, found {actual!r}"}
    return {where: text for key, one, other in parts for where, text in differing(one, other, key).items()}


def assert_explained(promised, actual):
    found = differing(promised, actual)
    assert not found, "\n".join(["not explained:", *(f"{path}: {values}" for path, values in sorted(found.items()))])


def assert_all_shown(differences, used):
    """Fail if a difference is not shown by a case, or has the name of another."""
    assert sorted(difference.id for difference in differences) == sorted(set().union(*used))
