"""A job in a TOML or YAML file: the estimator's arguments, the inputs and the name of the job."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from scriptmode import FileSystemInput, InstanceGroup, ShuffleConfig, SpecError, TrainingInput
from scriptmode.cli import locations, structured_files
from scriptmode.core.machine.yaml_files import parse_yaml
from scriptmode.core.spec.estimator_arguments import INSTEAD_IN_TEXT, EstimatorArguments
from scriptmode.core.spec.whole_numbers import whole_number
from scriptmode.core.text.messages import did_you_mean, validate_keys

#: Keys of a job file that are arguments of ``Estimator.fit``.
JOB_KEYS = ("inputs", "job_name")
#: For a type of an argument: the types of a file's values, how they are called, and an example in every format.
_TYPES: dict[type, tuple[type, str, str]] = {
    str: (str, "a string", '"text"'),
    int: (int, "a whole number", "2"),
    bool: (bool, "true or false", "true"),
    Iterable: (list, "a list", '["a", "b"]'),
    Mapping: (dict, "names and values", ""),
}
#: Arguments of the estimator that are Python objects, and what to use instead of them.
_INSTEAD = {
    each.name: each.metadata[INSTEAD_IN_TEXT] for each in fields(EstimatorArguments) if INSTEAD_IN_TEXT in each.metadata
}


@dataclass(frozen=True)
class Place:
    """Where values are written: a file or ``--set``, with the keys in it; and how names and values are written there.

    ``pair`` and ``table`` are formats of a name and a value, ``joint`` is what separates the first key from the text.
    """

    text: str
    pair: str
    table: str
    joint: str = ": "

    @classmethod
    def of_file(cls, path: Path) -> Place:
        """Return the place of a TOML or YAML file."""
        if path.suffix == ".toml":
            return cls(str(path), "{} = {}", "{{{} = {}}}")
        return cls(str(path), "{}: {}", "{{{}: {}}}")

    def __str__(self) -> str:
        return self.text

    def key(self, name: str) -> Place:
        """Return the place of a key's value."""
        return replace(self, text=f"{self.text}{self.joint}{name}", joint=".")


#: The option --set, whose values are JSON.
SETTING = Place("--set", "{}={}", '{{"{}": {}}}', " ")


def estimator_arguments() -> dict[str, tuple[type, ...]]:
    """Return the estimator's arguments that text can represent, with the types that each accepts."""
    hints = get_type_hints(EstimatorArguments)
    return {
        each.name: tuple(_accepted_types(hints[each.name]))
        for each in fields(EstimatorArguments)
        if each.name not in _INSTEAD
    }


def _accepted_types(hint: Any) -> Iterator[type]:
    for each in get_args(hint) if get_origin(hint) is Union else (hint,):
        found = get_origin(each) or each
        if found not in (type(None), os.PathLike):
            yield found


def read_job_file(path: Path) -> dict[str, Any]:
    """Read a job file; raise `SpecError` if it is unreadable, has an unknown key or a value of the wrong type."""
    content, where = _read_content(path), Place.of_file(path)
    for key, value in content.items():
        if key not in JOB_KEYS:
            validate_argument(where, key, value)
        elif value is None or (key == "job_name" and not isinstance(value, str)):
            allowed = "a string" if key == "job_name" else _channels_text(where)
            raise SpecError(f"{where.key(key)} is {value!r}", argument=key, advice=f"write {allowed}")
    return content


def _channels_text(where: Place) -> str:
    return f"channels, such as {where.pair.format('train', json.dumps('s3://bucket/train'))}"


def validate_argument(where: Place, key: str, value: object) -> None:
    """Raise `SpecError` unless a name is an argument of the estimator, and its value of an accepted type."""
    known = estimator_arguments()
    if instead := _INSTEAD.get(key):
        raise SpecError(f"{where}: {key} cannot be written as text", advice=instead)
    if key not in known:
        advice = did_you_mean(str(key), (*known, *JOB_KEYS)) or "use an argument of scriptmode.Estimator"
        raise SpecError(f"{where}: there is no argument {key!r}", advice=advice)
    types = known[key]
    if not is_accepted_type(types, value):
        allowed = " or ".join(_TYPES[each][1] for each in types if each in _TYPES) or "a value"
        example = next((_TYPES[each][2] for each in types if each in _TYPES), "...")
        example = where.pair.format(key, example or where.table.format("name", '"value"'))
        advice = _advice_on_number(key, types, value) or f"write {allowed}, such as {example}"
        raise SpecError(f"{where.key(key)} is {value!r}", argument=key, advice=advice)

    if key == "dependencies" and not all(isinstance(each, str) for each in value):  # type: ignore[attr-defined]
        allowed = f"a list of files and directories, such as {where.pair.format(key, json.dumps(['lib']))}"
        raise SpecError(f"{where.key(key)} is {value!r}", argument=key, advice=f"write {allowed}")


def _advice_on_number(key: str, types: Iterable[type], value: object) -> str:
    """Return how the estimator advises to write a text as the number that it means; "" for any other text."""
    if int in types and isinstance(value, str):
        try:
            whole_number(key, value)
        except SpecError as error:
            return error.advice if error.advice and error.advice.startswith("write ") else ""
    return ""


def is_accepted_type(types: Iterable[type], value: object) -> bool:
    """Return whether a value has one of an argument's types, given as `estimator_arguments` names them."""
    accepted = tuple(_TYPES[each][0] if each in _TYPES else object for each in types)
    is_bool_for_int = isinstance(value, bool) and bool not in accepted and object not in accepted
    return value is not None and isinstance(value, accepted) and not is_bool_for_int


def _read_content(path: Path) -> dict[str, Any]:
    text = structured_files.read_text("--file", path, "TOML or YAML")
    if path.suffix == ".toml":
        found = structured_files.parse_toml(path, text)
    elif path.suffix in (".yaml", ".yml"):
        found = parse_yaml(str(path), text)
    else:
        raise SpecError(
            f"--file {str(path)!r} ends in {path.suffix!r}", advice="rename it to end in .toml, .yaml or .yml"
        )
    if not found or not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        example = Place.of_file(path).pair.format("entry_point", json.dumps("train.py"))
        what = _shorten(found) if found else "empty"
        raise SpecError(f"{path} is {what}", argument="file", advice=f"write names and values, such as {example}")
    return found


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."  # noqa: PLR2004 - about one line


def parse_instance_groups(place: Place, value: list[Any]) -> list[InstanceGroup]:
    """Parse the list of tables at a place; raise `SpecError` for unknown and for missing keys."""
    where = place.key("instance_groups")
    return [_construct(where, InstanceGroup, _parse_fields(where, each, InstanceGroup)) for each in value]


def parse_channels(path: Path, inputs: object, *, is_local: bool, replaced: Container[str] = ()) -> dict[str, Any]:
    """Parse a file's inputs, by channel: locations, or tables with the fields of TrainingInput or FileSystemInput.

    Channels in ``replaced`` are left out.

    Relative paths begin at the directory of the file. Raises `SpecError`.
    """
    if isinstance(inputs, str):
        inputs = {"training": inputs}
    if not isinstance(inputs, dict):
        advice = f"write {_channels_text(Place.of_file(path))}"
        raise SpecError(f"{path}: inputs is {inputs!r}", argument="inputs", advice=advice)
    return {
        str(name): _parse_channel(path, str(name), value, is_local=is_local)
        for name, value in inputs.items()
        if str(name) not in replaced
    }


def _parse_channel(path: Path, name: str, value: object, *, is_local: bool) -> Any:
    where = Place.of_file(path).key("inputs").key(name)
    if isinstance(value, str):
        return locations.existing_location_uri(where.text, value, is_local=is_local, base=path.parent)
    if isinstance(value, dict) and "file_system_id" in value:
        return _construct(where, FileSystemInput, _parse_fields(where, value, FileSystemInput))
    found = _parse_fields(where, value, TrainingInput)
    if not isinstance(found["s3_data"], str):
        raise SpecError(
            f"{where}.s3_data is {found['s3_data']!r}", advice="write one URI as a string, such as s3://bucket/prefix"
        )
    found["s3_data"] = locations.existing_location_uri(
        f"{where}.s3_data", found["s3_data"], is_local=is_local, base=path.parent
    )
    for key in ("instance_groups", "attribute_names"):
        names = found.get(key, [])
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise SpecError(f"{where}.{key} is {names!r}", advice='write a list of names, such as ["a", "b"]')
    if "shuffle_config" in found:
        seed = _parse_fields(where.key("shuffle_config"), found["shuffle_config"], ShuffleConfig)
        found["shuffle_config"] = _construct(where, ShuffleConfig, seed)
    return _construct(where, TrainingInput, found)


def _construct(where: Place, kind: Any, found: dict[str, Any]) -> Any:
    try:
        return kind(**found)
    except SpecError as error:
        raise SpecError(f"{where}: {error.message}", argument=error.argument, advice=error.advice) from error


def _parse_fields(where: Place, value: object, kind: Any) -> dict[str, Any]:
    """Return a table as the fields of a class; raise `SpecError` for unknown and for missing keys."""
    known = {each.name: each for each in fields(kind)}
    first = next(iter(known))
    if not isinstance(value, dict):
        example = where.table.format(first, "...")
        raise SpecError(f"{where} is {value!r}", advice=f"write the fields of {kind.__name__}, such as {example}")
    validate_keys(where.text, value, known)
    for name, each in known.items():
        if name not in value and each.default is MISSING and each.default_factory is MISSING:
            example = where.table.format(name, "...")
            raise SpecError(f"{where} has no {name}, which {kind.__name__} needs", advice=f"add {example}")
    return dict(value)
