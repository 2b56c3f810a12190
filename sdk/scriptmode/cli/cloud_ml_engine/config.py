"""What Cloud ML Engine's job file and flags say of a training job: the file first, the command line over it.

Keys and their meaning are those of the resources Job and TrainingInput (AI Platform Training & Prediction API, v1,
projects.jobs); that the command line wins is in the reference of ``gcloud ai-platform jobs submit training``, --config.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable

from scriptmode import SpecError
from scriptmode.cli import structured_files
from scriptmode.messages import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

_TRAINING_INPUT = "trainingInput"
_JOB_KEYS = ("jobId", _TRAINING_INPUT, "labels")
#: What Google's service knows besides, and what there is instead.
_ELSEWHERE = {
    "hyperparameters": "it tunes; start one job for each set of values, given after --",
    "packageUris": "the package is given by --package-path",
    "evaluatorType": "the master evaluates; remove it",
    "evaluatorCount": "the master evaluates; remove it",
    "evaluatorConfig": "the master evaluates; remove it",
    "masterConfig": "choose a machine type with GPUs, and an image by --image-uri",
    "workerConfig": "choose a machine type with GPUs, and an image by --image-uri",
    "parameterServerConfig": "choose a machine type with GPUs, and an image by --image-uri",
    "serviceAccount": "the role of the job is given by --role",
    "network": "give subnets and security_group_ids to scriptmode.Estimator instead",
    "encryptionConfig": "give output_kms_key and volume_kms_key to scriptmode.Estimator instead",
    "enableWebAccess": "give enable_remote_debug to scriptmode.Estimator instead",
}


@dataclass(frozen=True)
class Settings:
    """One training job, as Google's service is told of it; ``None`` is what nobody said."""

    scale_tier: str = "BASIC"
    master_type: str | None = None
    worker_type: str | None = None
    parameter_server_type: str | None = None
    worker_count: int | None = None
    parameter_server_count: int | None = None
    module: str | None = None
    args: tuple[str, ...] = ()
    job_dir: str | None = None
    region: str | None = None
    runtime_version: str | None = None
    python_version: str | None = None
    uses_chief: bool = False
    #: Seconds.
    max_run: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def _text(key: str, value: object) -> str:
    if isinstance(value, str) and value:
        return value
    hint = ", in quotes: YAML takes 3.10 for the number 3.1" if isinstance(value, float) else ""
    raise SpecError(f"{key} is {value!r}; write a text{hint}")


def _count(key: str, value: object) -> int:
    # The API's JSON writes its 64-bit integers as strings.
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise SpecError(f"{key} is {value!r}; write a whole number, 0 or more")
    return number


def _truth(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise SpecError(f"{key} is {value!r}; write true or false")


def _words(key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise SpecError(f'{key} is {value!r}; write a list of texts, such as ["--max_steps=1000"]')


def _seconds(key: str, value: object) -> int:
    """Read a duration as the API spells it, seconds that end in s: ``7200s``."""
    _check_keys(key, _mapping(key, value), ("maxRunningTime",))
    said = _mapping(key, value).get("maxRunningTime")
    found = re.fullmatch(r"(\d+)s", str(said))
    if found is None:
        raise SpecError(f"{key}.maxRunningTime is {said!r}; write seconds, such as 7200s")
    return int(found.group(1))


def _tier(_key: str, value: object) -> str:
    # gcloud's flag spells STANDARD_1 as standard-1; which there are the machines' own room knows.
    return str(value).upper().replace("-", "_")


_KEYS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "scaleTier": ("scale_tier", _tier),
    "masterType": ("master_type", _text),
    "workerType": ("worker_type", _text),
    "parameterServerType": ("parameter_server_type", _text),
    "workerCount": ("worker_count", _count),
    "parameterServerCount": ("parameter_server_count", _count),
    "pythonModule": ("module", _text),
    "args": ("args", _words),
    "jobDir": ("job_dir", _text),
    "region": ("region", _text),
    "runtimeVersion": ("runtime_version", _text),
    "pythonVersion": ("python_version", _text),
    "useChiefInTfConfig": ("uses_chief", _truth),
    "scheduling": ("max_run", _seconds),
}


def parse_settings(path: Path | None, flags: Mapping[str, Any]) -> Settings:
    """Read the file, if there is one, and lay the flags over it: ``flags`` has TrainingInput's keys.

    Flags that are ``None`` or empty were not given. Raises `SpecError` for a file that cannot be read, for keys that
    are not known and for values of another kind, each with the next step.
    """
    job = {} if path is None else _job(path)
    where = "" if path is None else f"{path}: "
    said = _mapping(f"{where}{_TRAINING_INPUT}", job.get(_TRAINING_INPUT) or {})
    _check_keys(f"{where}{_TRAINING_INPUT}", said, tuple(_KEYS))
    found = {name: convert(f"{where}{key}", said[key]) for key, (name, convert) in _KEYS.items() if key in said}
    given = {key: value for key, value in flags.items() if value not in (None, ())}
    found.update({_KEYS[key][0]: _KEYS[key][1](key, value) for key, value in given.items()})
    labels = _mapping(f"{where}labels", job.get("labels") or {}, "labels: {team: vision}")
    return Settings(**found, labels={str(key): str(value) for key, value in labels.items()})


def _job(path: Path) -> Mapping[str, Any]:
    document = structured_files.parse_yaml(path, structured_files.read_text("--config", path, "YAML"))
    job = _mapping(str(path), document or {})
    for key in job:
        if key in _KEYS:
            raise SpecError(f"{path}: {key!r} stands beside {_TRAINING_INPUT}; indent it below {_TRAINING_INPUT}:")
    _check_keys(str(path), job, _JOB_KEYS)
    return job


def _mapping(where: str, value: object, example: str = f"{_TRAINING_INPUT}: {{scaleTier: BASIC}}") -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise SpecError(f"{where} is {value!r}; write keys and values, such as {example}")


def _check_keys(where: str, said: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in said:
        if key in _ELSEWHERE and key not in known:
            raise SpecError(f"{where} has {key!r}, which has no counterpart here: {_ELSEWHERE[key]}")
        if key not in known:
            raise SpecError(f"{where} has no key {key!r}{did_you_mean(str(key), known)}")
