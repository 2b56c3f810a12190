"""The constructor's arguments: unknown names, conversion and validation."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from scriptmode._core.spec.names import base_of_image
from scriptmode._core.spec.training_job import InstanceGroup
from scriptmode._core.spec.whole_numbers import truth_value
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import SpecError, invalid
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest

#: The SageMaker SDK's words for ``logs``, and whether each shows the log.
LOGS = {"All": True, "Training": True, "Rules": True, "None": False}
#: The types of values that are passed as they are, as an error says them; every other but a switch is a dict.
_KINDS = {int: "a whole number", str: "a string"}


def of_latest_job(job: JobRequest) -> dict[str, object]:
    """Return what arguments that were left out are for a job, as the SageMaker SDK says.

    An output path that is a whole bucket ends with a slash there.
    """
    path = job.output.path or ""
    arguments: dict[str, object] = {"output_path": f"{path}/" if re.fullmatch("s3://[^/]+", path) else path}
    if contract.MODEL_DIR_PARAMETER in job.hyperparameters:
        arguments["model_dir"] = job.parameter(contract.MODEL_DIR_PARAMETER)
    return arguments


def shows_logs(value: object) -> bool:
    """Return whether ``logs`` asks for the log: a truth value, or one or a list of the SageMaker SDK's words.

    Its ``"All"``, ``"Training"`` and ``"Rules"`` all show the log; ``"None"`` does not.
    """
    if not isinstance(value, (str, list, tuple)):
        return truth_value("logs", value)
    shown = [LOGS.get(str(word).title()) for word in ([value] if isinstance(value, str) else value)]
    if None in shown:
        raise invalid(
            "logs", f"is {value!r}", "give True or False, or 'All', 'Training', 'Rules' or 'None', or a list of them"
        )
    return any(shown)


def of_type(name: str, value: Any, annotation: Any) -> Any:
    """Return a value that an ``Optional`` annotation allows, a copy of a dict; raise `SpecError` for another."""
    kind = get_args(annotation)[0]
    if value is None:
        return None
    if kind is bool:
        return truth_value(name, value)
    if kind not in _KINDS:
        return copied(name, value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise invalid(name, f"is {value!r}", f"give {_KINDS[kind]}")
    return value


def copied(name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a deep copy of a dict of the caller."""
    if value is not None and not isinstance(value, Mapping):
        raise invalid(name, f"is {value!r}", "give a dict")
    try:
        return copy.deepcopy(dict(value or {}))
    except TypeError as error:
        raise invalid(name, f"has a value that cannot be copied: {error}", "give plain values") from error


def kept(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with copies of dicts and lists; sessions, platforms and other objects are not copied."""
    return {name: copy.deepcopy(value) if isinstance(value, (dict, list)) else value for name, value in given.items()}


def base_name(given: object, image_uri: object) -> str | None:
    """Return the beginning of job names: the argument, else the image's name; raise `SpecError` for another type."""
    if given is not None and not isinstance(given, str):
        raise invalid("base_job_name", f"is {given!r}", "give a string")
    return given or (base_of_image(str(image_uri)) if image_uri else None)


def tags(value: object) -> tuple[tuple[str, str], ...]:
    """Parse tags: a list of ``{"Key": ..., "Value": ...}``, or a dict."""
    if value is None or value == {}:
        return ()
    if isinstance(value, Mapping) and not set(value) <= {"Key", "Value"}:
        return _checked_tags(list(value.items()))
    if isinstance(value, Mapping):
        value = [value]
    try:
        return _checked_tags([(tag["Key"], tag["Value"]) for tag in value])  # type: ignore[attr-defined]
    except (TypeError, LookupError) as error:
        raise invalid("tags", f"is {value!r}", "give a dict or a list of {'Key': ..., 'Value': ...}") from error


def _checked_tags(pairs: list[tuple[Any, Any]]) -> tuple[tuple[str, str], ...]:
    for key, value in pairs:
        if value is None:
            raise SpecError(f"tags[{key!r}] is None", "give a string, '' for a tag without a value", argument="tags")
    return tuple((str(key), str(value)) for key, value in pairs)


def metric_definitions(value: object) -> tuple[tuple[str, str], ...]:
    """Parse metric definitions: a list of ``{"Name": ..., "Regex": ...}`` and names of presets, or one such name."""
    if value is None:
        return ()
    from scriptmode._core.spec.metric_definitions import PRESETS

    known = ", ".join(map(repr, PRESETS))
    similar = did_you_mean(value, PRESETS, most=0) if isinstance(value, str) else ""
    advice = similar or f"give a list of {{'Name': ..., 'Regex': ...}}, or {known}"
    problem = invalid("metric_definitions", f"is {value!r}", advice)
    given: Any = [value] if isinstance(value, str) else value
    try:
        pairs = (PRESETS[item] if isinstance(item, str) else [(item["Name"], item["Regex"])] for item in given)
        definitions = tuple(pair for part in pairs for pair in part)
    except (TypeError, KeyError) as error:
        raise problem from error
    if not all(isinstance(text, str) for pair in definitions for text in pair):
        raise problem
    return definitions


def instance_groups(value: Iterable[Any] | None) -> tuple[InstanceGroup, ...]:
    """Parse instance groups: ours, or any object with the same three attributes."""
    if value is None:
        return ()
    if isinstance(value, InstanceGroup) or not isinstance(value, Iterable):
        raise invalid("instance_groups", f"is {value!r}", "give a list of InstanceGroup")
    groups = tuple(map(_instance_group, value))
    if not groups:
        raise invalid(
            "instance_groups", "is empty", "give at least one InstanceGroup, or instance_type and instance_count"
        )
    return groups


def _instance_group(group: Any) -> InstanceGroup:
    if isinstance(group, InstanceGroup):
        return group
    try:
        return InstanceGroup(group.instance_group_name, group.instance_type, group.instance_count)
    except AttributeError as error:
        raise invalid("instance_groups", f"has {group!r}", "give InstanceGroup(name, instance_type, count)") from error


def texts(name: str, value: Iterable[str] | None) -> tuple[str, ...]:
    """Parse a list of strings; a single string is refused, since it would become a list of its letters."""
    if isinstance(value, str):
        raise invalid(name, f"is one string, {value!r}", "give a list of strings")
    return tuple(str(text) for text in value or ())
