"""The summary of a training job as lines of text, from its description. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scriptmode.cli.output import escape_unprintable, format_time
from scriptmode.messages import format_duration
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The hyperparameter that enables each distribution, and the name that is printed.
_DISTRIBUTIONS = {
    contract.MPI_ENABLED: "MPI",
    contract.PARAMETER_SERVER_ENABLED: "parameter servers",
    contract.MULTI_WORKER_MIRRORED_ENABLED: "multi-worker mirrored",
}


def render_description(description: Mapping[str, Any]) -> str:
    """Render a description as lines, each a label and its value; the further lines of a value have no label.

    Secrets are masked, and control characters are escaped.
    """
    rows: list[tuple[str, str]] = []
    for label, value in _rows(description):
        lines = value.splitlines() or [""]
        rows += [(label, lines[0]), *(("", each) for each in lines[1:])]
    width = max(len(label) for label, _ in rows)
    lines = [contract.without_userinfo(f"{label:<{width}}  {value}".rstrip()) for label, value in rows]
    return "\n".join(map(escape_unprintable, lines))


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
        # Only the names: the values may be secrets.
        yield "environment", ", ".join(sorted(variables))
    if uri := description.get("CheckpointConfig", {}).get("S3Uri"):
        yield "checkpoints", uri
    yield "output", description.get("OutputDataConfig", {}).get("S3OutputPath", "")
    if model := (description.get("ModelArtifacts") or {}).get("S3ModelArtifacts"):
        yield "model", model


def _message(description: Mapping[str, Any]) -> str:
    """Return the newest message about a job that has not ended, or ""."""
    transitions = description.get("SecondaryStatusTransitions") or [{}]
    is_running = description["TrainingJobStatus"] in ("InProgress", "Stopping")
    return str(transitions[-1].get("StatusMessage", "")) if is_running else ""


def _status(description: Mapping[str, Any]) -> str:
    status, secondary = description["TrainingJobStatus"], description.get("SecondaryStatus", "")
    shown = status if secondary in ("", status) else f"{status} ({secondary})"
    seconds = description.get("TrainingTimeInSeconds")
    return shown if seconds is None else f"{shown}, {format_duration(seconds)} of training"


def _hosts(description: Mapping[str, Any], parameters: Mapping[str, str]) -> str:
    resources = description.get("ResourceConfig", {})
    groups = resources.get("InstanceGroups")
    if groups:
        each = (f"{one['InstanceGroupName']}: {one['InstanceCount']} x {one['InstanceType']}" for one in groups)
        hosts = ", ".join(each)
    else:
        hosts = f"{resources.get('InstanceCount', 1)} x {resources.get('InstanceType', 'instances of a plan')}"
    for switch, name in _DISTRIBUTIONS.items():
        if parameters.get(switch) in ("true", "True"):
            hosts += f", {name}"
    return hosts


def _channel(channel: Mapping[str, Any]) -> str:
    source = channel["DataSource"]
    stored, files = source.get("S3DataSource"), source.get("FileSystemDataSource")
    if stored is not None:
        location = stored["S3Uri"]
    elif files is not None:
        location = f"{files['FileSystemType']} {files['FileSystemId']}:{files['DirectoryPath']}"
    else:
        location = ", ".join(source)
    mode = channel.get("InputMode")
    return f"{channel['ChannelName']} = {location}" + (f" ({mode})" if mode else "")


def _value(name: str, encoded: str) -> str:
    """Return a hyperparameter as the script gets it: in script mode texts are encoded as JSON."""
    value = contract.decode(encoded)
    shown = _without_secrets(name, value)
    if isinstance(shown, str):
        return shown
    return encoded if shown == value else json.dumps(shown)


def _without_secrets(name: str, value: object) -> object:
    """Mask a value whose name marks it as a secret, and such values nested in it."""
    if value not in ("", None) and contract.is_secret(name, value):
        return contract.MASK
    if isinstance(value, dict):
        return {key: _without_secrets(key, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_secrets("", each) for each in value]
    return value
