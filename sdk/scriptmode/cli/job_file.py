"""A job in a TOML or YAML file: an estimator's arguments, its inputs and its name."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scriptmode import Estimator, SpecError
from scriptmode.errors import suggestion

if TYPE_CHECKING:
    from pathlib import Path

#: Keys beside the estimator's arguments.
JOB_KEYS = ("inputs", "job_name")
#: Arguments that are Python objects, and what says the same here.
_OBJECTS = {
    "platform": "instance_type says where the job runs, and --platform that it must be there",
    "sagemaker_session": "say --region and --profile",
}
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a text"),
    "int": ((int,), "a whole number"),
    "bool": ((bool,), "true or false"),
    "Iterable": ((list,), "a list"),
    "Mapping": ((dict,), "names and values"),
}
_EXAMPLES = {
    "str": '"text"',
    "int": "2",
    "bool": "true",
    "Iterable": '["a", "b"]',
    "Mapping": '{"name": "value"}',
}


def accepted() -> dict[str, tuple[str, ...]]:
    """Give the estimator's arguments that text can say, each with the kinds of values that it takes."""
    found = {}
    for name, parameter in list(inspect.signature(Estimator.__init__).parameters.items())[1:]:
        if parameter.kind is not parameter.VAR_KEYWORD and name not in _OBJECTS:
            kinds = (part.strip().partition("[")[0] for part in str(parameter.annotation).split("|"))
            found[name] = tuple(kind for kind in kinds if kind not in ("None", "os.PathLike"))
    return found


def read(path: Path) -> dict[str, Any]:
    """Read a file; raise `SpecError` for one that cannot be read, for unknown keys and for values of another kind."""
    content = _content(path)
    for key, value in content.items():
        if key not in JOB_KEYS:
            check(str(path), key, value)
        elif value is None or (key == "job_name" and not isinstance(value, str)):
            raise SpecError(f"{path}: {key} is {value!r}; write {'a text' if key == 'job_name' else 'channels'}")
    return content


def check(where: str, key: str, value: object) -> None:
    """Raise `SpecError` for a name that is no argument of an estimator, and for a value that the argument cannot be."""
    known = accepted()
    if key in _OBJECTS:
        raise SpecError(f"{where}: {key} cannot be written as text; {_OBJECTS[key]}")
    if key not in known:
        raise SpecError(f"{where}: there is no argument {key!r}{suggestion(str(key), (*known, *JOB_KEYS), most=5)}")
    kinds = known[key]
    types = tuple(each for kind in kinds for each in _TYPES.get(kind, ((object,), ""))[0])
    is_wrong_number = isinstance(value, bool) and bool not in types and object not in types
    # A distribution's name stands for a dict with it.
    if value is None or not isinstance(value, types) or is_wrong_number:
        wanted = " or ".join(_TYPES[kind][1] for kind in kinds if kind in _TYPES) or "a value"
        example = next((_EXAMPLES[kind] for kind in kinds if kind in _EXAMPLES), "...")
        raise SpecError(f"{where}: {key} is {value!r}; write {wanted}, such as {key} = {example}")


def _content(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"--file {str(path)!r} cannot be read: {error}; name a TOML or YAML file") from error
    if path.suffix == ".toml":
        found = _toml(path, text)
    elif path.suffix in (".yaml", ".yml"):
        found = _yaml(path, text)
    else:
        raise SpecError(f"--file {str(path)!r} ends in {path.suffix!r}; give it a name that ends in .toml or .yaml")
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise SpecError(f"{path} is {_shown(found)}; write names and values, such as entry_point: train.py")
    return found


def _toml(path: Path, text: str) -> Any:
    # The standard library has it from Python 3.11 on.
    parser = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        return parser.loads(text)
    except ValueError as error:
        raise SpecError(f"{path} is no TOML: {error}; correct it") from error


def _yaml(path: Path, text: str) -> Any:
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SpecError(f"{path} is no YAML: {' '.join(str(error).split())}; correct it") from error
    return {} if found is None else found


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."  # noqa: PLR2004 - a line's worth
