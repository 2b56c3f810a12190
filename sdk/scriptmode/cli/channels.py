"""What a job's file says of its inputs and instance groups, as the library's own values."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from scriptmode import FileSystemInput, InstanceGroup, ShuffleConfig, SpecError, TrainingInput
from scriptmode.cli import locations
from scriptmode.errors import suggestion

if TYPE_CHECKING:
    from pathlib import Path


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
            raise SpecError(f"{where} has no key {key!r}{suggestion(str(key), known)}")
    for name, each in known.items():
        if name not in value and each.default is MISSING and each.default_factory is MISSING:
            raise SpecError(f"{where} has no {name}, which {kind.__name__} needs; add it")
    return dict(value)
