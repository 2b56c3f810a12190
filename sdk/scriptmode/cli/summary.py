"""A training job in short lines, from its description. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scriptmode.cli.output import moment
from scriptmode.display.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Script mode's own hyperparameters, by what begins their names, and the one that names the program.
_OWN, _PROGRAM = "sagemaker_", "sagemaker_program"
#: What switches each distribution on, and its name for people.
_DISTRIBUTIONS = {
    "sagemaker_mpi_enabled": "MPI",
    "sagemaker_parameter_server_enabled": "parameter servers",
    "sagemaker_multi_worker_mirrored_strategy_enabled": "multi-worker mirrored",
}


def text(description: Mapping[str, Any]) -> str:
    """Give the lines: a label and what there is of it; a label with several lines has them below one another."""
    rows: list[tuple[str, str]] = []
    for label, said in _rows(description):
        lines = said.splitlines() or [""]
        rows += [(label, lines[0]), *(("", each) for each in lines[1:])]
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:<{width}}  {said}".rstrip() for label, said in rows)


def _rows(description: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "job", description["TrainingJobName"]
    yield "status", _status(description)
    yield "created", moment(description["CreationTime"])
    if reason := description.get("FailureReason"):
        yield "failed", reason
    parameters = {key: _value(each) for key, each in description.get("HyperParameters", {}).items()}
    yield "hosts", _hosts(description, parameters)
    if _PROGRAM in parameters:
        yield "script", f"{parameters[_PROGRAM]} from {parameters.get('sagemaker_submit_directory', 'the image')}"
    if image := description.get("AlgorithmSpecification", {}).get("TrainingImage"):
        yield "image", image
    channels = description.get("InputDataConfig", ())
    if channels:
        yield "inputs", "\n".join(_channel(each) for each in channels)
    given = {key: each for key, each in parameters.items() if not key.startswith(_OWN)}
    if given:
        yield "hyperparameters", "\n".join(f"{key} = {each}" for key, each in given.items())
    if variables := description.get("Environment"):
        # Values may be secrets.
        yield "environment", ", ".join(sorted(variables))
    if place := description.get("CheckpointConfig", {}).get("S3Uri"):
        yield "checkpoints", place
    yield "output", description.get("OutputDataConfig", {}).get("S3OutputPath", "")
    if model := (description.get("ModelArtifacts") or {}).get("S3ModelArtifacts"):
        yield "model", model


def _status(description: Mapping[str, Any]) -> str:
    status, finer = description["TrainingJobStatus"], description.get("SecondaryStatus", "")
    said = status if finer in ("", status) else f"{status} ({finer})"
    seconds = description.get("TrainingTimeInSeconds")
    return said if seconds is None else f"{said}, {duration(seconds)} of training"


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


def _value(encoded: str) -> str:
    """Give a hyperparameter as the script is given it: texts are JSON's own in script mode."""
    try:
        value = json.loads(encoded)
    except ValueError:
        return encoded
    return value if isinstance(value, str) else encoded
