"""The settings of a training job, from Cloud ML Engine's job file and options. Options override the file.

Keys and their meaning are those of the resources Job and TrainingInput (AI Platform Training & Prediction API, v1,
projects.jobs). That the command line overrides the file is in the reference of
``gcloud ai-platform jobs submit training``, --config.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

from scriptmode import SpecError
from scriptmode.cli import structured_files
from scriptmode.core.machine.yaml_files import parse_yaml
from scriptmode.core.text.messages import validate_keys

_TRAINING_INPUT = "trainingInput"
_JOB_KEYS = ("jobId", _TRAINING_INPUT, "labels")
#: Other keys of Google's service, with the alternative here.
_ALTERNATIVES = {
    "hyperparameters": "it configures tuning; start one job for each set of values, given after --",
    "packageUris": "name the package with --package-path",
    **dict.fromkeys(
        ("evaluatorType", "evaluatorCount", "evaluatorConfig"), "the master evaluates the model; remove the key"
    ),
    **dict.fromkeys(
        ("masterConfig", "workerConfig", "parameterServerConfig"),
        "choose a machine type with GPUs, and an image with --image-uri",
    ),
    "serviceAccount": "name the role of the job with --role",
    "network": "use scriptmode.Estimator with subnets and security_group_ids",
    "encryptionConfig": "use scriptmode.Estimator with output_kms_key and volume_kms_key",
    "enableWebAccess": "use scriptmode.Estimator with enable_remote_debug",
}


def _parse_text(key: str, value: object) -> str:
    if isinstance(value, str) and value:
        return value
    hint = " in quotes, because YAML reads 3.10 as the number 3.1" if isinstance(value, float) else ""
    raise SpecError(f"{key} is {value!r}", advice=f"write a string{hint}")


def _parse_count(key: str, value: object) -> int:
    # The JSON of the API represents 64-bit integers as strings.
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise SpecError(f"{key} is {value!r}", advice="write a whole number of at least 0")
    return number


def _parse_bool(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise SpecError(f"{key} is {value!r}", advice="write true or false")


def _parse_words(key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise SpecError(f"{key} is {value!r}", advice='write a list of strings, such as ["--max_steps=1000"]')


def _parse_scheduling(key: str, value: object) -> int:
    """Parse the limit in ``scheduling``, which the API writes as seconds that end in s: ``7200s``."""
    _check_keys(key, _mapping(key, value), ("maxRunningTime",))
    limit = _mapping(key, value).get("maxRunningTime")
    found = re.fullmatch(r"(\d+)s", str(limit))
    if found is None:
        raise SpecError(f"{key}.maxRunningTime is {limit!r}", advice="write seconds with an s, such as 7200s")
    return int(found.group(1))


def _parse_tier(_key: str, value: object) -> str:
    # gcloud's option writes STANDARD_1 as standard-1. `machines` validates the tier.
    return str(value).upper().replace("-", "_")


#: The parser of the value of each key of trainingInput.
_KEYS: dict[str, Callable[[str, Any], Any]] = {
    "scaleTier": _parse_tier,
    "masterType": _parse_text,
    "workerType": _parse_text,
    "parameterServerType": _parse_text,
    "workerCount": _parse_count,
    "parameterServerCount": _parse_count,
    "pythonModule": _parse_text,
    "args": _parse_words,
    "jobDir": _parse_text,
    "region": _parse_text,
    "runtimeVersion": _parse_text,
    "pythonVersion": _parse_text,
    "useChiefInTfConfig": _parse_bool,
    "scheduling": _parse_scheduling,
}


def parse_settings(path: Path | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the file, if one is given, and override it with the options that have the keys of TrainingInput.

    Returns the values of ``scaleTier``, of the other keys that are given, ``scheduling`` in seconds, and the job's
    ``labels``. Options that are ``None`` or empty were not given. Raises `SpecError` for an unreadable file, for
    unknown keys and for values of the wrong type.
    """
    job = {} if path is None else _read_job(path)
    where = "" if path is None else f"{path}: "
    training = _mapping(f"{where}{_TRAINING_INPUT}", job.get(_TRAINING_INPUT) or {})
    _check_keys(f"{where}{_TRAINING_INPUT}", training, tuple(_KEYS))
    found = {key: parse(f"{where}{key}", training[key]) for key, parse in _KEYS.items() if key in training}
    given = {key: value for key, value in options.items() if key in _KEYS and value not in (None, ())}
    found.update({key: _KEYS[key](key, value) for key, value in given.items()})
    labels = _mapping(f"{where}labels", job.get("labels") or {}, "labels: {team: vision}")
    return {"scaleTier": "BASIC", **found, "labels": {str(key): str(value) for key, value in labels.items()}}


def _read_job(path: Path) -> Mapping[str, Any]:
    document = parse_yaml(str(path), structured_files.read_text("--config", path, "YAML"))
    job = _mapping(str(path), document or {})
    for key in job:
        if key in _KEYS:
            raise SpecError(
                f"{path}: {key!r} is outside {_TRAINING_INPUT}", advice=f"indent it below {_TRAINING_INPUT}:"
            )
    _check_keys(str(path), job, _JOB_KEYS)
    return job


def _mapping(where: str, value: object, example: str = f"{_TRAINING_INPUT}: {{scaleTier: BASIC}}") -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise SpecError(f"{where} is {value!r}", advice=f"write keys and values, such as {example}")


def _check_keys(where: str, found: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in found:
        if key in _ALTERNATIVES and key not in known:
            raise SpecError(f"{where} has {key!r}, which is not supported here: {_ALTERNATIVES[key]}")
    validate_keys(where, found, known)
