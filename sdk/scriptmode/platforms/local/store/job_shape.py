"""Validation of ``job.json``, the record of a created job, before any code relies on its content. Pure."""

from __future__ import annotations

from typing import Any

from scriptmode.platforms import requested_hosts
from scriptmode.platforms.base import instance_groups
from scriptmode.platforms.local.store import shapes

#: More hosts than one machine can have. A damaged count must not make a loop of billions of turns.
_MOST_HOSTS = 100_000
_TEXTS = {"*": str}
#: The parts of a request that other code reads without validating them again.
_REQUEST: dict[str, Any] = {
    "TrainingJobName!": str,
    "RoleArn": str,
    "HyperParameters": _TEXTS,
    "Environment": _TEXTS,
    "AlgorithmSpecification": {
        "TrainingImage": str,
        "TrainingInputMode": str,
        "ContainerEntrypoint": [str],
        "ContainerArguments": [str],
        "MetricDefinitions": [{"Name!": str, "Regex!": str}],
    },
    "InputDataConfig": [
        {
            "ChannelName!": str,
            "InputMode": str,
            "DataSource!": {
                "S3DataSource": {"S3Uri!": str, "S3DataType": str, "InstanceGroupNames": [str]},
                "FileSystemDataSource": {"FileSystemId!": str, "FileSystemType!": str, "DirectoryPath!": str},
            },
        }
    ],
    "OutputDataConfig": {"S3OutputPath!": str},
    "ResourceConfig!": {
        "InstanceType": str,
        "InstanceCount": int,
        "InstanceGroups": [{"InstanceGroupName!": str, "InstanceType!": str, "InstanceCount!": int}],
    },
    "StoppingCondition": {"MaxRuntimeInSeconds": int, "MaxWaitTimeInSeconds": int},
    "CheckpointConfig": {"S3Uri!": str, "LocalPath": str},
    "Tags": [{"Key!": str, "Value!": str}],
}
_JOB: dict[str, Any] = {
    "request!": _REQUEST,
    "arn!": str,
    "region!": str,
    "python!": str,
    "file_systems": _TEXTS,
    "limits": dict,
}


def validate_job_record(content: Any, name: str) -> None:
    """Raise ``ValueError`` for content that is not the record of the job ``name``."""
    shapes.validate_shape(content, _JOB, "")
    request = content["request"]
    if request["TrainingJobName"] != name:
        raise ValueError(f"it is of the job {request['TrainingJobName']!r}")
    if not shapes.is_number(content.get("stop_grace")):
        raise ValueError(f"stop_grace is {content.get('stop_grace')!r}, not a number of seconds")
    for group in instance_groups(request):
        count = group.get("InstanceCount")
        if "InstanceType" not in group or not isinstance(count, int) or not 0 < count <= _MOST_HOSTS:
            raise ValueError(f"its ResourceConfig has {count!r} hosts of type {group.get('InstanceType')!r}")
    if requested_hosts.has_container_hosts(request) and "TrainingImage" not in request.get(
        "AlgorithmSpecification", {}
    ):
        raise ValueError("its AlgorithmSpecification has no 'TrainingImage'")
