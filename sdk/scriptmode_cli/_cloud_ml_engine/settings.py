"""The settings of a training job of Cloud ML Engine, from its file and its options, as arguments of an estimator.

Keys are those of the resource TrainingInput (AI Platform Training & Prediction API, v1, projects.jobs). The machines of
a tier are those of "Specifying machine types or scale tiers" (cloud.google.com/ml-engine/docs, page machine-types).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from scriptmode import InstanceGroup, ParameterServer, SpecError
from scriptmode._core.machine.yaml_files import parse_yaml
from scriptmode._core.text.messages import did_you_mean, pluralize, validate_keys

_TRAINING_INPUT = "trainingInput"
_CUSTOM = "CUSTOM"
#: The numbers of workers and of parameter servers beside the master.
_TIERS = {"BASIC": (0, 0), "BASIC_GPU": (0, 0), "STANDARD_1": (4, 3), "PREMIUM_1": (19, 11)}
_TYPE_KEYS = ("masterType", "workerType", "parameterServerType")
_COUNT_KEYS = ("workerCount", "parameterServerCount")
#: What the value of each key is.
_KEYS: dict[str, tuple[type, str]] = {
    **dict.fromkeys((*_TYPE_KEYS, "scaleTier", "pythonModule", "jobDir", "runtimeVersion"), (str, "a text in quotes")),
    **dict.fromkeys(_COUNT_KEYS, (int, "a whole number of at least 0")),
    "args": (list, 'a list of strings, such as ["--max_steps=1000"]'),
    "useChiefInTfConfig": (bool, "true or false"),
}


def parse_settings(file: BinaryIO | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of ``trainingInput`` in the file, if one is given, and of the options, which override it.

    Options that are ``None`` or empty were not given. Raises `SpecError` for a file that is not YAML, for unknown keys
    and for values of the wrong type.
    """
    given = {key: value for key, value in options.items() if key in _KEYS and value not in (None, ())}
    return {**({} if file is None else _parse_training_input(file.name, file.read())), **given}


def _parse_training_input(path: str, content: bytes) -> dict[str, Any]:
    document = parse_yaml(path, content) or {}
    example = f"write {_TRAINING_INPUT}: {{scaleTier: BASIC}}"
    if not isinstance(document, Mapping):
        raise SpecError(f"{path} is {document!r}", advice=example)
    validate_keys(path, document, (_TRAINING_INPUT,))
    training_input = document.get(_TRAINING_INPUT) or {}
    if not isinstance(training_input, Mapping):
        raise SpecError(f"{path}: {_TRAINING_INPUT} is {training_input!r}", advice=example)
    validate_keys(f"{path}: {_TRAINING_INPUT}", training_input, tuple(_KEYS))
    return {key: _parse(f"{path}: {key}", key, value) for key, value in training_input.items()}


def _parse(where: str, key: str, value: Any) -> Any:
    kind, text = _KEYS[key]
    if key in _COUNT_KEYS and str(value).isdecimal():
        # The JSON of the API represents 64-bit integers as strings.
        return int(value)
    words = value if isinstance(value, list) else ()
    if key in _COUNT_KEYS or type(value) is not kind or not all(isinstance(word, str) for word in words):
        raise SpecError(f"{where} is {value!r}", advice=f"write {text}")
    return value


def count_machines(settings: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of machines of each role; raise `SpecError` for a tier or a cluster that cannot train."""
    tier = settings.get("scaleTier", "BASIC")
    if tier == _CUSTOM:
        workers, servers = (settings.get(key, 0) for key in _COUNT_KEYS)
    elif tier in _TIERS:
        if own := [key for key in (*_TYPE_KEYS, *_COUNT_KEYS) if key in settings]:
            what = f"{own[0]} is {settings[own[0]]!r}, but scaleTier {tier} sets it already"
            raise SpecError(what, advice=f"leave {own[0]} out, or write scaleTier: {_CUSTOM}")
        workers, servers = _TIERS[tier]
    else:
        raise SpecError(f"there is no scaleTier {tier!r}", advice=did_you_mean(tier, (*_TIERS, _CUSTOM)))
    if workers and not servers:
        step = "add parameterServerCount: 1, or train with scriptmode.Estimator(distribution=MultiWorkerMirrored())"
        raise SpecError("workers without a parameter server cannot share variables", advice=step)
    lead = "chief" if settings.get("useChiefInTfConfig") else "master"
    return {role: count for role, count in ((lead, 1), ("worker", workers), ("ps", servers)) if count}


def format_machines(machines: Mapping[str, int]) -> str:
    """Return the number of machines of each role as text, such as ``1 master, 4 workers, 3 parameter servers``."""
    return ", ".join(pluralize(count, "parameter server" if role == "ps" else role) for role, count in machines.items())


def instance_arguments(machines: Mapping[str, int], settings: Mapping[str, Any], *, is_local: bool) -> dict[str, Any]:
    """Return the estimator's arguments: one instance group for each role, or one instance.

    On this machine each machine is a process. Raises `SpecError` for types that Amazon SageMaker does not have.
    """
    keys = {"worker": _TYPE_KEYS[1], "ps": _TYPE_KEYS[2]}
    types = {role: _type(keys.get(role, _TYPE_KEYS[0]), settings, is_local=is_local) for role in machines}
    if sum(machines.values()) == 1:
        return {"instance_type": next(iter(types.values())), "instance_count": 1}
    return {
        "instance_groups": [InstanceGroup(role, types[role], count) for role, count in machines.items()],
        "distribution": ParameterServer(roles={role: role for role in machines}),
    }


def _type(key: str, settings: Mapping[str, Any], *, is_local: bool) -> str:
    if is_local:
        return "local_process"
    instance_type = str(settings.get(key, ""))
    if not instance_type.startswith("ml."):
        step = f"write scaleTier: {_CUSTOM} and {key}: ml.m5.xlarge or another one below {_TRAINING_INPUT} in --config"
        raise SpecError(f"{key} is {instance_type!r}, which is no instance type of Amazon SageMaker", advice=step)
    return instance_type
