"""A training job in short lines, from its description. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scriptmode.cli.output import escape_unprintable, format_time
from scriptmode.display.formatting import format_duration
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: What switches each distribution on, and its name for people.
_DISTRIBUTIONS = {
    contract.MPI_ENABLED: "MPI",
    contract.PARAMETER_SERVER_ENABLED: "parameter servers",
    contract.MULTI_WORKER_MIRRORED_ENABLED: "multi-worker mirrored",
}


def render_description(description: Mapping[str, Any]) -> str:
    """Give the lines: a label and what there is of it; a label with several lines has them below one another.

    Without secrets, and with what a terminal obeys spelled out.
    """
    rows: list[tuple[str, str]] = []
    for label, said in _rows(description):
        lines = said.splitlines() or [""]
        rows += [(label, lines[0]), *(("", each) for each in lines[1:])]
    width = max(len(label) for label, _ in rows)
    told = (contract.without_userinfo(f"{label:<{width}}  {said}".rstrip()) for label, said in rows)
    return "\n".join(map(escape_unprintable, told))


def _rows(description: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "job", description["TrainingJobName"]
    yield "status", _status(description)
    if message := _message(description):
        yield "message", message
    yield "created", format_time(description["CreationTime"])
    if reason := description.get("FailureReason"):
        yield "failed", reason
    parameters = {key: _value(key, each) for key, each in description.get("HyperParameters", {}).items()}
    yield "hosts", _hosts(description, parameters)
    if contract.PROGRAM in parameters:
        source = parameters.get(contract.SUBMIT_DIRECTORY, "the image")
        yield "script", f"{parameters[contract.PROGRAM]} from {source}"
    if image := description.get("AlgorithmSpecification", {}).get("TrainingImage"):
        yield "image", image
    channels = description.get("InputDataConfig", ())
    if channels:
        yield "inputs", "\n".join(_channel(each) for each in channels)
    given = {key: each for key, each in parameters.items() if not key.startswith(contract.RESERVED_PREFIX)}
    if given:
        yield "hyperparameters", "\n".join(escape_unprintable(f"{key} = {each}") for key, each in given.items())
    if variables := description.get("Environment"):
        # Values may be secrets.
        yield "environment", ", ".join(sorted(variables))
    if place := description.get("CheckpointConfig", {}).get("S3Uri"):
        yield "checkpoints", place
    yield "output", description.get("OutputDataConfig", {}).get("S3OutputPath", "")
    if model := (description.get("ModelArtifacts") or {}).get("S3ModelArtifacts"):
        yield "model", model


def _message(description: Mapping[str, Any]) -> str:
    """Return the newest message about a job that has not ended, or ""."""
    transitions = description.get("SecondaryStatusTransitions") or [{}]
    is_running = description["TrainingJobStatus"] in ("InProgress", "Stopping")
    return str(transitions[-1].get("StatusMessage", "")) if is_running else ""


def _status(description: Mapping[str, Any]) -> str:
    status, finer = description["TrainingJobStatus"], description.get("SecondaryStatus", "")
    said = status if finer in ("", status) else f"{status} ({finer})"
    seconds = description.get("TrainingTimeInSeconds")
    return said if seconds is None else f"{said}, {format_duration(seconds)} of training"


def _hosts(description: Mapping[str, Any], parameters: Mapping[str, str]) -> str:
    resources = description.get("ResourceConfig", {})
    groups = resources.get("InstanceGroups")
    if groups:
        each = (f"{one['InstanceGroupName']}: {one['InstanceCount']} x {one['InstanceType']}" for one in groups)
        said = ", ".join(each)
    else:
        said = f"{resources.get('InstanceCount', 1)} x {resources.get('InstanceType', 'instances of a plan')}"
    for switch, name in _DISTRIBUTIONS.items():
        if parameters.get(switch) in ("true", "True"):
            said += f", {name}"
    return said


def _channel(channel: Mapping[str, Any]) -> str:
    source = channel["DataSource"]
    stored, files = source.get("S3DataSource"), source.get("FileSystemDataSource")
    if stored is not None:
        place = stored["S3Uri"]
    elif files is not None:
        place = f"{files['FileSystemType']} {files['FileSystemId']}:{files['DirectoryPath']}"
    else:
        place = ", ".join(source)
    mode = channel.get("InputMode")
    return f"{channel['ChannelName']} = {place}" + (f" ({mode})" if mode else "")


def _value(name: str, encoded: str) -> str:
    """Give a hyperparameter as the script is given it: texts are JSON's own in script mode."""
    value = contract.decode(encoded)
    shown = _without_secrets(name, value)
    if isinstance(shown, str):
        return shown
    return encoded if shown == value else json.dumps(shown)


def _without_secrets(name: str, value: object) -> object:
    """Hide a value whose name says that it is a secret, and those within it."""
    if value not in ("", None) and contract.is_secret(name, value):
        return contract.MASK
    if isinstance(value, dict):
        return {key: _without_secrets(key, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_secrets("", each) for each in value]
    return value
