"""A job in a TOML or YAML file: an estimator's arguments, its inputs and its name."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from scriptmode import Estimator, FileSystemInput, InstanceGroup, ShuffleConfig, SpecError, TrainingInput
from scriptmode.cli import locations, structured_files
from scriptmode.messages import did_you_mean

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
        raise SpecError(f"{where}: there is no argument {key!r}{did_you_mean(str(key), (*known, *beside), most=5)}")
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


def parse_instance_groups(where: str, value: list[Any]) -> list[InstanceGroup]:
    """Read a list of tables; raise `SpecError` for keys that are not known or are missing."""
    return [_made(where, InstanceGroup, _fields(where, each, InstanceGroup)) for each in value]


def parse_channels(path: Path, inputs: object, *, is_local: bool) -> dict[str, Any]:
    """Read a file's inputs, by channel: places, or tables of what TrainingInput and FileSystemInput take.

    Places begin at the file's own folder. Raises `SpecError`.
    """
    if isinstance(inputs, str):
        inputs = {"training": inputs}
    if not isinstance(inputs, dict):
        raise SpecError(f'{path}: inputs is {inputs!r}; write channels, such as train = "s3://bucket/train"')
    return {str(name): _channel(path, str(name), value, is_local=is_local) for name, value in inputs.items()}


def _channel(path: Path, name: str, value: object, *, is_local: bool) -> Any:
    where = f"{path}: inputs.{name}"
    if isinstance(value, str):
        return locations.location_uri(where, value, is_local=is_local, base=path.parent)
    if isinstance(value, dict) and "file_system_id" in value:
        return _made(where, FileSystemInput, _fields(where, value, FileSystemInput))
    found = _fields(where, value, TrainingInput)
    if not isinstance(found["s3_data"], str):
        raise SpecError(f"{where}.s3_data is {found['s3_data']!r}; write a place, such as s3://bucket/prefix")
    found["s3_data"] = locations.location_uri(f"{where}.s3_data", found["s3_data"], is_local=is_local, base=path.parent)
    for key in ("instance_groups", "attribute_names"):
        names = found.get(key, [])
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise SpecError(f"{where}.{key} is {names!r}; write a list of names")
    if "shuffle_config" in found:
        seed = _fields(f"{where}.shuffle_config", found["shuffle_config"], ShuffleConfig)
        found["shuffle_config"] = _made(where, ShuffleConfig, seed)
    return _made(where, TrainingInput, found)


def _made(where: str, kind: Any, found: dict[str, Any]) -> Any:
    try:
        return kind(**found)
    except SpecError as error:
        raise SpecError(f"{where}: {error}") from error


def _fields(where: str, value: object, kind: Any) -> dict[str, Any]:
    """Check a table's keys against a class's arguments."""
    known = {each.name: each for each in fields(kind)}
    first = next(iter(known))
    if not isinstance(value, dict):
        raise SpecError(f"{where} is {value!r}; write what {kind.__name__} takes, such as {{{first} = ...}}")
    for key in value:
        if key not in known:
            raise SpecError(f"{where} has no key {key!r}{did_you_mean(str(key), known)}")
    for name, each in known.items():
        if name not in value and each.default is MISSING and each.default_factory is MISSING:
            raise SpecError(f"{where} has no {name}, which {kind.__name__} needs; add it")
    return dict(value)
