"""Amazon SageMaker's own description of a CreateTrainingJob request, read from botocore's data.

botocore's code is not imported: it takes five times as long as reading the file. Its validator checks neither
enumerations nor patterns nor upper limits; `problems` does.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode.core.request.fields import PLAIN_ARGUMENTS, argument_of
from scriptmode.core.text.messages import Problem, did_you_mean
from scriptmode.errors import PlatformError, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

REQUEST_SHAPE = "CreateTrainingJobRequest"
#: Fields of CreateTrainingJobRequest that DescribeTrainingJobResponse does not have.
NOT_DESCRIBED = frozenset({"Tags", "SessionChainingConfig"})
#: Fields of ResourceConfig that the service adds to the description of a job with InstancePreferences.
SELECTED_HOSTS = frozenset({"SelectedInstanceType", "SelectedInstanceCount"})
#: Values that the service describes for fields that the request left out.
DESCRIBED_DEFAULTS: dict[str, Any] = {
    "EnableNetworkIsolation": False,
    "EnableInterContainerTrafficEncryption": False,
    "EnableManagedSpotTraining": False,
}
#: Java's character classes in the terms of Python's. ``\p{L}`` and ``\p{N}`` stand side by side with ``_`` wherever
#: the model has them, and the three together are exactly ``\w``.
_JAVA_CLASSES = {
    r"\p{L}": r"\w",
    r"\p{N}": r"\w",
    r"\p{Z}": " \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
    r"\p{Alnum}": "a-zA-Z0-9",
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
#: Values of these maps may be secrets: a report says how long they are, not what they are.
_UNSHOWN = ("HyperParameters.", "Environment.")
_SHOWN = 80
_SEE = "see CreateTrainingJob in Amazon SageMaker's API reference"


class _Rules(NamedTuple):
    """What a request is checked against: the shapes by name, and what is fine beyond them."""

    shapes: Mapping[str, Any]
    extension: Callable[[str, object], bool]


@functools.cache
def shapes(root: str = REQUEST_SHAPE) -> dict[str, Any]:
    """Return the shape ``root`` and those of its parts by name, by default those of a CreateTrainingJob request.

    They are a hundredth of botocore's file and are kept in the user's cache directory, by that file's name and time.
    """
    import hashlib

    import platformdirs

    source = _model_file()
    status = source.stat()
    key = hashlib.sha256(f"{root} {source} {status.st_mtime_ns} {status.st_size}".encode()).hexdigest()[:16]
    kept = Path(platformdirs.user_cache_dir("scriptmode"), "service-model", f"{key}.json")
    with suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return found
    found = _read_shapes(source, root)
    import tempfile

    from scriptmode.core.machine import drafts

    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        drafts.remove_orphans(kept.parent)
        with tempfile.NamedTemporaryFile(
            "w", prefix=drafts.PREFIX, dir=kept.parent, delete=False, encoding="utf-8"
        ) as file:
            drafts.lock(file.fileno())
            json.dump(found, file)
            file.flush()
            Path(file.name).replace(kept)
    return found


def _read_shapes(source: Path, root: str) -> dict[str, Any]:
    import gzip

    opened = gzip.open if source.suffix == ".gz" else open
    with opened(source, "rb") as file:
        everything = json.load(file)["shapes"]
    found: dict[str, Any] = {}
    names = [root]
    while names:
        name = names.pop()
        if name not in found:
            shape = found[name] = everything[name]
            parts = [shape[part] for part in ("member", "key", "value") if part in shape]
            names += [part["shape"] for part in (*parts, *shape.get("members", {}).values())]
    return found


def _model_file() -> Path:
    spec = importlib.util.find_spec("botocore")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for version in sorted(Path(root, "data", "sagemaker").glob("*"), reverse=True):
            for name in ("service-2.json.gz", "service-2.json"):
                if (version / name).is_file():
                    return version / name
    raise PlatformError(
        "botocore's model of Amazon SageMaker is not there; reinstall it: pip install --force-reinstall botocore"
    )


def problems(
    request: Mapping[str, Any], extension: Callable[[str, object], bool], root: str = REQUEST_SHAPE
) -> list[Problem]:
    """Return every problem for which the service would refuse a request, with its field, value and limit.

    ``extension`` says of a field (its path without indices) and its value that they are fine although the service
    would not take them. ``root`` is the request's shape.
    """
    return list(_check("", root, request, _Rules(shapes(root), extension)))


def raise_problems(why: str, found: Sequence[Problem]) -> None:
    """Raise `RequestError` for the problems of a request, if there are any; it names the argument of a single one."""
    if len(found) == 1:
        problem = found[0]
        raise RequestError(f"{why}: {problem.text}", problem.advice, argument=problem.argument or None)
    if found:
        listed = "\n".join(f"- {problem}" for problem in found)
        raise RequestError(f"{why}:\n{listed}")


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile one of the model's patterns, which are written for Java and match whole values."""
    for java, python in _JAVA_CLASSES.items():
        pattern = pattern.replace(java, python)
    return re.compile(pattern)


def _check(path: str, name: str, value: object, rules: _Rules) -> Iterator[Problem]:
    shape = rules.shapes[name]
    kind = shape["type"]
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        given = "None" if value is None else _with_article(type(value).__name__)
        yield _problem(path, f"{path or 'the request'} is {given}", f"it must be {_with_article(kind)}")
        return
    if rules.extension(re.sub(r"\[\d+\]", "", path), value):
        return
    yield from _limits(path, shape, value)
    for field, member, content in _members(path, shape, value):
        yield from _check(field, member, content, rules)
    if kind == "structure":
        yield from _keys(path, shape, value)


def _problem(path: str, text: str, advice: str) -> Problem:
    argument = argument_of(re.sub(r"\[\d+\]| \(its key .*", "", path))
    # A field of which the caller knows the argument alone.
    named = argument in PLAIN_ARGUMENTS.values() and text.startswith(f"{path} ")
    return Problem(f"{argument} ({path}){text[len(path) :]}" if named else text, advice, argument)


def _members(path: str, shape: Mapping[str, Any], value: Any) -> Iterator[tuple[str, str, object]]:
    """Yield path, shape name and value of each member of ``value`` that the shape has."""
    kind = shape["type"]
    if kind == "structure":
        for key, content in value.items():
            if key in shape["members"]:
                yield f"{path}.{key}".lstrip("."), shape["members"][key]["shape"], content
    elif kind == "list":
        for index, content in enumerate(value):
            yield f"{path}[{index}]", shape["member"]["shape"], content
    elif kind == "map":
        for key, content in value.items():
            yield f"{path} (its key {key!r})", shape["key"]["shape"], key
            yield f"{path}.{key}", shape["value"]["shape"], content


def _keys(path: str, shape: Mapping[str, Any], value: Any) -> Iterator[Problem]:
    where = path or "the request"
    for key in value:
        if key not in shape["members"]:
            yield _problem(path, f"{where} has no field {key!r}", did_you_mean(str(key), shape["members"]) or _SEE)
    for key in shape.get("required", ()):
        if key not in value:
            missing = f"{path}.{key}".lstrip(".")
            argument = PLAIN_ARGUMENTS.get(missing, "")
            yield _problem(missing, f"{where} lacks {key!r}", f"give {argument}" if argument else "")


def _show(path: str, value: object) -> str:
    if path.startswith(_UNSHOWN):
        return f"a value of {len(str(value)):,} characters"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _limits(path: str, shape: Mapping[str, Any], value: Any) -> Iterator[Problem]:
    shown = _show(path, value)
    if "enum" in shape and value not in shape["enum"]:
        yield _problem(path, f"{path} is {shown}", did_you_mean(value, shape["enum"]) or _SEE)
        return
    numeric = shape["type"] in ("integer", "long", "float", "double")
    unit = {"string": " characters", "list": " entries", "map": " entries"}.get(shape["type"], "")
    size = value if numeric else len(value) if unit else 0
    subject = f"{path} is {shown}" if numeric else f"{path} has {size:,}{unit}"
    if size < shape.get("min", size):
        yield _problem(path, subject, f"the least is {shape['min']:,}{unit}")
    elif size > shape.get("max", size):
        yield _problem(path, subject, f"the most is {shape['max']:,}{unit}")
    elif "pattern" in shape and not compiled(shape["pattern"]).fullmatch(value):
        yield _problem(path, f"{path} is {shown}", f"it must match {shape['pattern']}")


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
