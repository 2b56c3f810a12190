"""A job in a TOML or YAML file: an estimator's arguments, its inputs and its name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from scriptmode import Estimator, SpecError
from scriptmode.cli import structured_files
from scriptmode.errors import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
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


def estimator_arguments() -> dict[str, tuple[str, ...]]:
    """Give the estimator's arguments that text can say, each with the kinds of values that it takes."""
    found = {}
    for name, parameter in list(inspect.signature(Estimator.__init__).parameters.items())[1:]:
        if parameter.kind is not parameter.VAR_KEYWORD and name not in _OBJECTS:
            kinds = (part.strip().partition("[")[0] for part in str(parameter.annotation).split("|"))
            found[name] = tuple(kind for kind in kinds if kind not in ("None", "os.PathLike"))
    return found


def read_job_file(path: Path) -> dict[str, Any]:
    """Read a file; raise `SpecError` for one that cannot be read, for unknown keys and for values of another kind."""
    content = _content(path)
    for key, value in content.items():
        if key not in JOB_KEYS:
            validate_argument(str(path), key, value, beside=JOB_KEYS)
        elif value is None or (key == "job_name" and not isinstance(value, str)):
            raise SpecError(f"{path}: {key} is {value!r}; write {'a text' if key == 'job_name' else 'channels'}")
    return content


def validate_argument(where: str, key: str, value: object, *, beside: Sequence[str] = ()) -> None:
    """Raise `SpecError` for a name that is no argument of an estimator, and for a value that the argument cannot be.

    ``beside`` are names that are no arguments but may be meant.
    """
    known = estimator_arguments()
    if key in _OBJECTS:
        raise SpecError(f"{where}: {key} cannot be written as text; {_OBJECTS[key]}")
    if key not in known:
        raise SpecError(f"{where}: there is no argument {key!r}{suggestion(str(key), (*known, *beside), most=5)}")
    kinds = known[key]
    if not is_accepted_type(kinds, value):
        wanted = " or ".join(_TYPES[kind][1] for kind in kinds if kind in _TYPES) or "a value"
        example = next((_EXAMPLES[kind] for kind in kinds if kind in _EXAMPLES), "...")
        raise SpecError(f"{where}: {key} is {value!r}; write {wanted}, such as {key} = {example}")

    if key == "dependencies" and not all(isinstance(each, str) for each in value):  # type: ignore[attr-defined]
        raise SpecError(f'{where}: {key} is {value!r}; write files and folders, such as {key} = ["lib"]')


def is_accepted_type(kinds: Iterable[str], value: object) -> bool:
    """Say whether a value is of one of an argument's kinds, as `estimator_arguments` names them."""
    types = tuple(each for kind in kinds for each in _TYPES.get(kind, ((object,), ""))[0])
    is_wrong_number = isinstance(value, bool) and bool not in types and object not in types
    return value is not None and isinstance(value, types) and not is_wrong_number


def _content(path: Path) -> dict[str, Any]:
    text = structured_files.read_text("--file", path, "TOML or YAML")
    if path.suffix == ".toml":
        found = structured_files.parse_toml(path, text)
    elif path.suffix in (".yaml", ".yml"):
        found = structured_files.parse_yaml(path, text)
        found = {} if found is None else found
    else:
        raise SpecError(f"--file {str(path)!r} ends in {path.suffix!r}; give it a name that ends in .toml or .yaml")
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise SpecError(f"{path} is {_shown(found)}; write names and values, such as entry_point: train.py")
    return found


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."  # noqa: PLR2004 - a line's worth
