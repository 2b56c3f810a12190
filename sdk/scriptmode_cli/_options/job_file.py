"""A job in a TOML or YAML file: the estimator's arguments, the inputs and the name of the job."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from scriptmode import FileSystemInput, InstanceGroup, ShuffleConfig, SpecError, TrainingInput
from scriptmode._core.machine.yaml_files import parse_yaml
from scriptmode._core.spec.estimator_arguments import INSTEAD_IN_TEXT, EstimatorArguments
from scriptmode._core.text.messages import did_you_mean, validate_keys
from scriptmode_cli._options import locations, structured_files

if TYPE_CHECKING:
    from pathlib import Path

#: Keys of a job file that are arguments of ``Estimator.fit``.
JOB_KEYS = ("inputs", "job_name")
#: For a type of an argument: the types of a file's values, and how they are called.
_TYPES: dict[type, tuple[type, str]] = {
    str: (str, "a string"),
    int: (int, "a whole number"),
    bool: (bool, "true or false"),
    Iterable: (list, "a list"),
    Mapping: (dict, "names and values"),
}
#: Arguments of the estimator that are Python objects, and what to use instead of them.
_INSTEAD = {
    field.name: field.metadata[INSTEAD_IN_TEXT]
    for field in fields(EstimatorArguments)
    if INSTEAD_IN_TEXT in field.metadata
}


def estimator_arguments() -> dict[str, tuple[type, ...]]:
    """Return the estimator's arguments that text can represent, with the types that each accepts."""
    hints = get_type_hints(EstimatorArguments)
    return {
        field.name: tuple(_accepted_types(hints[field.name]))
        for field in fields(EstimatorArguments)
        if field.name not in _INSTEAD
    }


def _accepted_types(hint: Any) -> Iterator[type]:
    for part in get_args(hint) if get_origin(hint) is Union else (hint,):
        kind = get_origin(part) or part
        if kind not in (type(None), os.PathLike):
            yield kind


def read_job_file(path: Path) -> dict[str, Any]:
    """Read a job file; raise `SpecError` if it is unreadable, has an unknown key or a value of the wrong type."""
    content = _read_content(path)
    for key, value in content.items():
        if key not in JOB_KEYS:
            validate_argument(f"{path}:", key, value)
        elif not isinstance(value, str if key == "job_name" else (str, dict)):
            allowed = "a string" if key == "job_name" else "a table of channels"
            raise SpecError(f"{path}: {key} is {value!r}", argument=key, advice=f"write {allowed}")
    return content


def validate_argument(where: str, key: str, value: object) -> None:
    """Raise `SpecError` unless a name is an argument of the estimator, and its value of an accepted type."""
    known = estimator_arguments()
    if instead := _INSTEAD.get(key):
        raise SpecError(f"{where} {key} cannot be written as text", argument=key, advice=instead)
    if key not in known:
        advice = did_you_mean(str(key), (*known, *JOB_KEYS)) or "use an argument of scriptmode.Estimator"
        raise SpecError(f"{where} there is no argument {key!r}", advice=advice)
    types = known[key]
    if not is_accepted_type(types, value):
        allowed = " or ".join(_TYPES[kind][1] for kind in types if kind in _TYPES) or "a value"
        raise SpecError(f"{where} {key} is {value!r}", argument=key, advice=f"write {allowed}")


def is_accepted_type(types: Iterable[type], value: object) -> bool:
    """Return whether a value has one of an argument's types, given as `estimator_arguments` names them."""
    accepted = tuple(_TYPES[kind][0] if kind in _TYPES else object for kind in types)
    is_bool_for_int = isinstance(value, bool) and bool not in accepted and object not in accepted
    return value is not None and isinstance(value, accepted) and not is_bool_for_int


def _read_content(path: Path) -> dict[str, Any]:
    text = structured_files.read_text("--file", path, "TOML or YAML")
    if path.suffix == ".toml":
        content = structured_files.parse_toml(path, text)
    elif path.suffix in (".yaml", ".yml"):
        content = parse_yaml(str(path), text)
    else:
        raise SpecError(f"--file {str(path)!r} ends in {path.suffix!r}", "rename it to end in .toml, .yaml or .yml")
    if not content or not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise SpecError(f"{path} has no names and values", argument="file", advice="write arguments of the estimator")
    return content


def parse_instance_groups(where: str, value: list[Any]) -> list[InstanceGroup]:
    """Parse a list of tables; raise `SpecError` for unknown and for missing keys."""
    return [_construct(f"{where} instance_groups", InstanceGroup, group) for group in value]


def parse_channels(path: Path, inputs: object, *, is_local: bool, replaced: Container[str] = ()) -> dict[str, object]:
    """Parse a file's inputs, by channel: locations, or tables with the fields of TrainingInput or FileSystemInput.

    Channels in ``replaced`` are left out. Relative paths begin at the directory of the file. Raises `SpecError`.
    """
    channels = {"training": inputs} if isinstance(inputs, str) else dict(inputs)  # type: ignore[call-overload]
    return {
        str(name): _parse_channel(path, f"{path}: inputs.{name}", value, is_local=is_local)
        for name, value in channels.items()
        if str(name) not in replaced
    }


def _parse_channel(path: Path, where: str, value: object, *, is_local: bool) -> Any:
    if isinstance(value, str):
        return locations.existing_location_uri(where, value, is_local=is_local, base=path.parent)
    if not isinstance(value, dict):
        raise SpecError(f"{where} is {value!r}", argument="inputs", advice="write a location, or a table of its fields")
    if "file_system_id" in value:
        return _construct(where, FileSystemInput, value)
    table = dict(value)
    if isinstance(table.get("s3_data"), str):
        uri = locations.existing_location_uri(f"{where}.s3_data", table["s3_data"], is_local=is_local, base=path.parent)
        table["s3_data"] = uri
    if "shuffle_config" in table:
        table["shuffle_config"] = _construct(f"{where}.shuffle_config", ShuffleConfig, table["shuffle_config"])
    return _construct(where, TrainingInput, table)


def _construct(where: str, kind: Any, table: object) -> Any:
    """Return an object of a table with the fields of its class; raise `SpecError` for another table."""
    if not isinstance(table, dict):
        raise SpecError(f"{where} is {table!r}", advice=f"write the fields of {kind.__name__}")
    validate_keys(where, table, [field.name for field in fields(kind)])
    try:
        return kind(**table)
    except SpecError as error:
        raise SpecError(f"{where}: {error.message}", argument=error.argument, advice=error.advice) from error
    except TypeError as error:
        # Python's text names the missing fields, or the value of another type.
        raise SpecError(f"{where}: {error}", advice=f"write the fields of {kind.__name__}") from error
