"""Amazon SageMaker's own description of a CreateTrainingJob request, read from botocore's data.

botocore's code is not imported: it takes five times as long as reading the file. Its validator checks neither
enumerations nor patterns nor upper limits; `violations` does.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from scriptmode._core.text.messages import Problem
from scriptmode.errors import PlatformError, RequestError
from scriptmode_runtime import contract

REQUEST_SHAPE = "CreateTrainingJobRequest"
#: Fields of CreateTrainingJobRequest that DescribeTrainingJobResponse does not have.
NOT_DESCRIBED = frozenset({"Tags", "SessionChainingConfig"})
#: Fields of ResourceConfig that the service adds to the description of a job with InstancePreferences.
SELECTED_HOSTS = frozenset({"SelectedInstanceType", "SelectedInstanceCount"})
#: Values that the service describes for fields that the request left out.
DESCRIBED_DEFAULTS: Mapping[str, object] = {
    "EnableNetworkIsolation": False,
    "EnableInterContainerTrafficEncryption": False,
    "EnableManagedSpotTraining": False,
}
#: Java's patterns in the terms of Python's. ``\p{L}`` and ``\p{N}`` stand side by side with ``_`` wherever
#: the model has them, and the three together are exactly ``\w``.
_JAVA_PATTERNS = {
    r"\p{L}": r"\w",
    r"\p{N}": r"\w",
    r"\p{Z}": " \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
    r"\p{Alnum}": "a-zA-Z0-9",
    # That of S3Uri, whose time grows with the square of a text's length, and the same without that.
    "([^/]+)/?(.*)": "([^/]+)(/.*)?",
}
_TYPES: dict[str, tuple[type, ...]] = {
    "structure": (dict,),
    "map": (dict,),
    "list": (list, tuple),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "timestamp": (int, float),  # seconds since the epoch, as AWS's JSON has them
}
#: The largest numbers of the types; the smallest is less by one.
_LARGEST = {"integer": 2**31 - 1, "long": 2**63 - 1}
#: Characters up to which a text that is too long is matched with its pattern.
_MOST_MATCHED = 4096
#: What the length of a value counts; other values have no length.
UNITS = {"string": " characters", "list": " entries", "map": " entries"}
#: Values of these maps may be secrets: a report says how long they are, not what they are.
SECRETS = frozenset({"HyperParameters", "StaticHyperParameters", "Environment"})


class MapKey(NamedTuple):
    """A key of a map, at the end of a path that leads to the key itself and not to its value."""

    key: str


class Violation(NamedTuple):
    """A constraint of the model that a request does not meet.

    Attributes:
        path: The members, indices and keys that lead to the value; `MapKey` for a key.
        constraint: ``type``, ``enum``, ``min``, ``max`` or ``pattern`` of the value, ``text`` for one that is not text
            in UTF-8 without NUL, ``required`` for a member that is missing, ``unknown`` for one that the model does not
            have.
        value: The value; the structure for a member that is missing or unknown.
        shape: The shape of ``value``.
    """

    path: tuple[str | int | MapKey, ...]
    constraint: str
    value: Any
    shape: Mapping[str, Any]


@functools.cache
def shapes(root: str) -> dict[str, Any]:
    """Return the shape ``root``, such as `REQUEST_SHAPE`, and those of its parts by name.

    They are a hundredth of botocore's file and are kept in the user's cache directory, by that file's name and time.
    """
    import hashlib

    import platformdirs

    source = _model_file()
    status = source.stat()
    key = hashlib.sha256(f"{root} {source} {status.st_mtime_ns} {status.st_size}".encode()).hexdigest()[:16]
    kept = Path(platformdirs.user_cache_dir("scriptmode"), "service-model", f"{key}.json")
    with suppress(OSError, ValueError):
        by_name: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return by_name
    by_name = _read_shapes(source, root)
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(by_name), encoding="utf-8")
        draft.replace(kept)
    return by_name


def _read_shapes(source: Path, root: str) -> dict[str, Any]:
    import gzip

    opened = gzip.open if source.suffix == ".gz" else open
    with opened(source, "rb") as file:
        everything = json.load(file)["shapes"]
    by_name: dict[str, Any] = {}
    names = [root]
    while names:
        name = names.pop()
        if name not in by_name:
            shape = by_name[name] = everything[name]
            parts = [shape[part] for part in ("member", "key", "value") if part in shape]
            names += [part["shape"] for part in (*parts, *shape.get("members", {}).values())]
    return by_name


def _model_file() -> Path:
    spec = importlib.util.find_spec("botocore")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        versions = sorted(Path(root, "data", "sagemaker").glob("*"), reverse=True)
        for file in (version / name for version in versions for name in ("service-2.json.gz", "service-2.json")):
            if file.is_file():
                return file
    what = "botocore's model of Amazon SageMaker is not there"
    raise PlatformError(what, advice="pip install --force-reinstall botocore")


def violations(
    request: Mapping[str, Any], extension: Callable[[str, object], bool], root: str = REQUEST_SHAPE
) -> Iterator[Violation]:
    """Yield every constraint that a request does not meet.

    ``extension`` says of a field (its path without indices) and its value that they are fine although the service
    would not take them. ``root`` is the request's shape.
    """
    known = shapes(root)

    def check(path: tuple[str | int | MapKey, ...], name: str, value: Any) -> Iterator[Violation]:
        shape = known[name]
        kind = shape["type"]
        has_type = isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
        if not has_type:
            yield Violation(path, "type", value, shape)
            return
        if extension(field_of(path), value):
            return
        yield from (Violation(path, constraint, value, shape) for constraint in _unmet_limits(shape, value))
        for part, member, content in _members(shape, value):
            yield from check((*path, part), member, content)
        if kind == "structure":
            unknown = (key for key in value if key not in shape["members"])
            yield from (Violation((*path, key), "unknown", value, shape) for key in unknown)
            missing = (key for key in shape.get("required", ()) if key not in value)
            yield from (Violation((*path, key), "required", value, shape) for key in missing)

    return check((), root, request)


def raise_problems(why: str, problems: Sequence[Problem]) -> None:
    """Raise `RequestError` for the problems of a request, if there are any; it names the argument of a single one."""
    if len(problems) == 1:
        problem = problems[0]
        raise RequestError(f"{why}: {problem.text}", problem.advice, argument=problem.argument or None)
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        raise RequestError(f"{why}:\n{listed}")


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile one of the model's patterns, which are written for Java and match whole values."""
    for java, python in _JAVA_PATTERNS.items():
        pattern = pattern.replace(java, python)
    return re.compile(pattern)


def limits(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of a shape: ``max``, ``min`` and ``pattern``, as far as it has them."""
    largest = _LARGEST.get(shape["type"])
    bounds = {} if largest is None else {"max": largest, "min": -largest - 1}
    return {**bounds, **{name: shape[name] for name in ("max", "min", "pattern") if name in shape}}


def _members(shape: Mapping[str, Any], value: Any) -> Iterator[tuple[str | int | MapKey, str, Any]]:
    """Yield path part, shape name and value of each member of ``value`` that the shape has."""
    kind = shape["type"]
    if kind == "structure":
        for key, content in value.items():
            if key in shape["members"]:
                yield key, shape["members"][key]["shape"], content
    elif kind == "list":
        for index, content in enumerate(value):
            yield index, shape["member"]["shape"], content
    elif kind == "map":
        for key, content in value.items():
            yield MapKey(key), shape["key"]["shape"], key
            yield key, shape["value"]["shape"], content


def _unmet_limits(shape: Mapping[str, Any], value: Any) -> Iterator[str]:
    if "enum" in shape and value not in shape["enum"]:
        yield "enum"
        return
    if shape["type"] == "string" and contract.text_problem(value):
        yield "text"
        return
    limit = limits(shape)
    size = len(value) if shape["type"] in UNITS else value
    if "min" in limit and size < limit["min"]:
        yield "min"
    is_too_large = "max" in limit and size > limit["max"]
    if is_too_large:
        yield "max"
    is_matched = "pattern" in limit and not (is_too_large and size > _MOST_MATCHED)
    if is_matched and not compiled(limit["pattern"]).fullmatch(value):
        yield "pattern"


def field_of(path: tuple[str | int | MapKey, ...]) -> str:
    """Return the members and keys of a path, without indices and without a key that it leads to."""
    return ".".join(part for part in path if isinstance(part, str))
