"""Errors of requests that Amazon SageMaker refuses, by its model and by its documentation, in its words. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scriptmode._core.request import service_model
from scriptmode._core.request.service_model import SELECTED_HOSTS, MapKey, Violation
from scriptmode._core.text.messages import did_you_mean
from scriptmode_serve._operations.aws_json import ApiError, validation_error

_COLLECTIONS = ("structure", "list", "map")
#: The most characters of a value in an error.
_LONGEST = 1000
#: (InstancePreferences of ResourceConfig, API reference)
_NOT_WITH_PREFERENCES = ("InstanceType", "InstanceGroups", "InstancePlacementConfig", "EnableManagedSpotTraining")
_RESERVED_PATH = "/opt/ml/input"
#: Seconds that a job may run by default, and at most (StoppingCondition, API reference).
_DAY, _LONGEST_RUN = 86_400, 28 * 86_400


def validate(
    root: str, arguments: Mapping[str, Any], extension: Callable[[str, object], bool] = lambda _field, _value: False
) -> None:
    """Raise `ApiError` for arguments that the shape ``root`` does not accept; ``extension`` is as of `violations`."""
    violations = list(service_model.violations(arguments, extension, root))
    # Types are checked by the parser, before there is a request.
    for violation in violations:
        if violation.constraint == "type" and violation.value is not None:
            text = f"The value at '{_locate(violation, root)}' is not of the type {violation.shape['type']}"
            raise ApiError("SerializationException", text)
    texts: dict[str, str] = {}
    for violation in violations:
        value, constraint = _describe(violation, root)
        texts.setdefault(constraint, value)
    if texts:
        errors = "1 validation error" if len(texts) == 1 else f"{len(texts)} validation errors"
        listed = (f"{value} at {constraint}" for constraint, value in texts.items())
        raise validation_error(f"{errors} detected: {'; '.join(listed)}")


def check_training_job(request: Mapping[str, Any], place: str = "") -> None:
    """Raise `ApiError` for a CreateTrainingJob request of the right shape that the service's documentation excludes.

    With ``place`` it is a definition of training jobs: the member of a tuning job's request that has it.
    """
    for member, text in (*_stopping_problems(request), *_algorithm_problems(request), *_group_problems(request)):
        raise validation_error(f"{text} (at '{place}.{member}')" if place else text)


def name_used_error(arn: str) -> ApiError:
    """Return the error of CreateTrainingJob for the name of a job that exists."""
    return ApiError(
        "ResourceInUse",
        "Training job names must be unique within an AWS account and region, "
        f"and a training job with this name already exists ({arn})",
    )


def status_error(status: str, kind: str = "training job") -> ApiError:
    """Return the error of an operation that a job's status excludes."""
    return validation_error(f"The request was rejected because the {kind} is in status {status}.")


def _stopping_problems(request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    stopping = request.get("StoppingCondition", {})
    longest, wait = stopping.get("MaxRuntimeInSeconds", _DAY), stopping.get("MaxWaitTimeInSeconds")
    if longest > _LONGEST_RUN:
        text = f"Invalid MaxRuntimeInSeconds. It must be less than or equal to {_LONGEST_RUN}"
        yield "stoppingCondition.maxRuntimeInSeconds", text
    member = "stoppingCondition.maxWaitTimeInSeconds"
    if not request.get("EnableManagedSpotTraining"):
        # With RetryStrategy it is the time of all attempts. (MaxWaitTimeInSeconds, API reference)
        if wait is not None and not request.get("RetryStrategy"):
            text = "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set to true"
            yield member, text
    elif wait is None or wait < longest:
        text = "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds"
        yield member, text


def _algorithm_problems(request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    algorithm = request.get("AlgorithmSpecification")
    if algorithm is not None and ("TrainingImage" in algorithm) == ("AlgorithmName" in algorithm):
        has = "both" if "TrainingImage" in algorithm else "neither"
        text = f"AlgorithmSpecification must have either TrainingImage or AlgorithmName, and it has {has}"
        yield "algorithmSpecification", text
    local = request.get("CheckpointConfig", {}).get("LocalPath", "")
    if f"{posixpath.normpath(local)}/".startswith(f"{_RESERVED_PATH}/"):
        text = f'"LocalPath" of "CheckpointConfig" cannot start with the following reserved path: [{_RESERVED_PATH}]'
        yield "checkpointConfig.localPath", text


def _group_problems(request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    resources = request.get("ResourceConfig", {})
    given = {name for name in resources if resources[name]} | {name for name in request if request[name] is True}
    if "InstanceGroups" in given and {"InstanceType", "InstanceCount"} & resources.keys():
        text = "InstanceType or InstanceCount cannot be specified with InstanceGroups"
        yield "resourceConfig.instanceGroups", text
    if "InstancePreferences" in given and (others := [name for name in _NOT_WITH_PREFERENCES if name in given]):
        text = f"{' or '.join(others)} cannot be specified with InstancePreferences"
        yield "resourceConfig.instancePreferences", text
    for name in sorted(SELECTED_HOSTS & resources.keys()):
        yield f"resourceConfig.{name[0].lower()}{name[1:]}", f"{name} is read-only and cannot be specified"
    groups = {
        channel["ChannelName"]: channel["DataSource"].get("S3DataSource", {}).get("InstanceGroupNames", ())
        for channel in request.get("InputDataConfig", ())
    }
    with_groups, without = ([name for name in groups if bool(groups[name]) == has] for has in (True, False))
    if with_groups and without:
        listed = f"[{', '.join(with_groups)}] while others not: [{', '.join(without)}]"
        yield "inputDataConfig", f"Some channels have assigned instance groups: {listed}"


def _describe(violation: Violation, root: str) -> tuple[str, str]:
    """Return the value as an error shows it, and its member with what it does not meet."""
    member, failed = _locate(violation, root), violation.constraint
    if failed == "unknown":
        advice = did_you_mean(str(violation.path[-1]), violation.shape["members"])
        return "Value", f"'{member}' is not a member of the request{advice and f'; {advice}'}"
    if failed in ("type", "required"):
        value, text = "Value null", "Member must not be null"
    else:
        is_secret = bool(service_model.SECRETS.intersection(violation.path))
        value = "Value" if is_secret else f"Value '{_show(violation.value)}'"
        text = _constraint(violation.shape, failed)
    return value, f"'{member}' failed to satisfy constraint: {text}"


def _locate(violation: Violation, root: str) -> str:
    """Return the member in AWS's spelling: that of the list or map for a text or a number in one.

    AWS has no words for a text that is not UTF-8, which is named by its key or number.
    """
    shapes = service_model.shapes(root)
    shape, names = shapes[root], []
    for part in violation.path:
        kind = shape["type"]
        if kind == "structure":
            names.append(f"{part}"[:1].lower() + f"{part}"[1:])
            name = shape["members"].get(part, {"shape": root})["shape"]
        else:
            name = shape["member" if kind == "list" else "key" if isinstance(part, MapKey) else "value"]["shape"]
            if shapes[name]["type"] not in _COLLECTIONS and violation.constraint != "text":
                break
            key = part.key if isinstance(part, MapKey) else f"{part}"
            names.append(f"{part + 1}.member" if isinstance(part, int) else key)
        shape = shapes[name]
    return ".".join(names)


def _constraint(shape: Mapping[str, Any], name: str) -> str:
    if name == "enum":
        return f"Member must satisfy enum value set: [{', '.join(shape['enum'])}]"
    if name == "text":
        return "Member must be text in UTF-8 without NUL characters"
    limit = service_model.limits(shape)[name]
    if name == "pattern":
        return f"Member must satisfy regular expression pattern: {limit}"
    measure = "length" if shape["type"] in ("string", "list", "map") else "value"
    return f"Member must have {measure} {'greater' if name == 'min' else 'less'} than or equal to {limit}"


def _show(value: object) -> str:
    """Return a value as Java writes it, not more than the beginning of a long one."""
    if isinstance(value, dict):
        shown = {key: "..." if key in service_model.SECRETS else _show(member) for key, member in value.items()}
        text = "{" + ", ".join(f"{key}={member}" for key, member in shown.items()) + "}"
    elif isinstance(value, list):
        text = f"[{', '.join(map(_show, value))}]"
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
