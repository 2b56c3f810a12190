"""The hosts of this machine that stand for SageMaker's instance types, and the images that stand for others.

A request is changed to one that the local platform runs. What was asked is kept in three tags of the job, so that it is
created together with the job, and is described again.
"""

from __future__ import annotations

import copy
import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scriptmode._core.request import tuning
from scriptmode._core.request.service_model import REQUEST_SHAPE, shapes
from scriptmode._core.spec import instance_types
from scriptmode._core.spec.hosts import LOCAL_PROCESS, HostKind, instance_kind
from scriptmode._core.spec.names import RESERVED_TAGS, SERVER_TAGS
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import invalid
from scriptmode_local._data import file_uris
from scriptmode_local._service.validation import FILE_URI_FIELDS, INSTANCE_TYPE_FIELDS
from scriptmode_serve._operations.aws_json import validation_error

_TYPES, _IMAGE = f"{SERVER_TAGS}instance-types", f"{SERVER_TAGS}training-image"
#: The fields of a description that have what was asked for.
_MAPPED = ("ResourceConfig", tuning.RESOURCES, "AlgorithmSpecification")
#: The name of the tuning job of a training job.
_TUNING_JOB = f"{SERVER_TAGS}tuning-job"
#: The channel that starts a function of the SageMaker SDK's ``@remote``.
_REMOTE_FUNCTION = "sagemaker_remote_function_bootstrap"
#: The most characters of a tag's value (Tag, API reference).
_LONGEST_TAG = 256
#: Images whose scripts hosts that are processes run with the server's Python: those of TensorFlow, and this project's.
_SCRIPT_IMAGES = (
    "*.dkr.ecr.*.amazonaws.com*/tensorflow-training:*",
    "*.dkr.ecr.*.amazonaws.com*/tensorflow-scriptmode:*",
    "*.dkr.ecr.*.amazonaws.com*/sagemaker-tensorflow-scriptmode:*",
    "scriptmode/*",
    "scriptmode:*",
)


@dataclass(frozen=True)
class HostTable:
    """The table of the server's configuration.

    Attributes:
        hosts: Hosts of the instance types that the table does not have.
        instance_types: Hosts by pattern of an instance type (``ml.p3.*``); the first that matches counts.
        images: Image to use by pattern of the image that a request names; the first that matches counts.
    """

    hosts: str = LOCAL_PROCESS
    instance_types: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)

    def hosts_for(self, instance_type: str) -> str:
        """Return the hosts for an instance type, with its GPUs where they take them; hosts stand for themselves.

        Raises `ApiError` for a type whose number of GPUs is not known.
        """
        if instance_kind(instance_type).has_local_jobs:
            return instance_type
        hosts = next(_matching(self.instance_types, instance_type), self.hosts)
        if ":" in hosts or not instance_kind(hosts).takes_gpus:
            return hosts
        from scriptmode._core.aws.instance_gpus import gpu_count

        gpus = gpu_count(instance_type)
        if gpus is None:
            advice = f"add it to [instance_types] of the server's --config, such as '{hosts}:gpu=8'"
            raise validation_error(f"The number of GPUs of '{instance_type}' is not known; {advice}.")
        return f"{hosts}:gpu={gpus}" if gpus else hosts

    @property
    def is_elsewhere(self) -> bool:
        """Whether hosts are on other machines."""
        return not all(instance_kind(name).is_here for name in (self.hosts, *self.instance_types.values()))


def require_hosts(hosts: object, name: str) -> None:
    """Raise `SpecError` for a value of a setting that is not the name of hosts."""
    if not isinstance(hosts, str) or not instance_kind(hosts).has_local_jobs:
        forms = ", ".join(instance_types.local_forms())
        raise invalid(name, f"is {hosts!r}", instance_types.suggest(str(hosts)) or f"give one of {forms}")


def is_extension(table: HostTable, field: str, value: object) -> bool:
    """Return whether a field of a training job's request has a value that this server accepts beside the service's."""
    if not isinstance(value, str) or field not in (*FILE_URI_FIELDS, *INSTANCE_TYPE_FIELDS):
        return False
    if field in FILE_URI_FIELDS:
        return file_uris.is_file(value)
    return instance_kind(value).has_local_jobs or any(_matching(table.instance_types, value))


class MappedRequest(NamedTuple):
    """A request for the local platform, the kind of its hosts, and why its job cannot run, "" if it can."""

    request: Mapping[str, Any]
    kind: HostKind
    failure: str = ""
    #: Tags of a tuning job's training jobs.
    tags: Sequence[Mapping[str, str]] = ()


def to_local(request: Mapping[str, Any], table: HostTable) -> MappedRequest:
    """Return the request that the local platform runs.

    Raises `ApiError` for tags that a client cannot have, for an instance type that neither Amazon SageMaker nor the
    table has, and for a remote function whose hosts are not containers.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(request))
    check_tags(changed.get("Tags"))
    _refuse_unknown_types(changed, table)
    asked: dict[str, str] = {}
    parts = list(_resource_parts(changed))
    types = [part["InstanceType"] for part in parts]
    for part in parts:
        part["InstanceType"] = table.hosts_for(part["InstanceType"])
    if [part["InstanceType"] for part in parts] != types:
        asked[_TYPES] = " ".join(types)
    # Another kind beside it is refused by the platform.
    kind = instance_kind(parts[0]["InstanceType"] if parts else LOCAL_PROCESS)
    failure = _map_image(changed.get("AlgorithmSpecification"), table, kind, asked)
    runs_image = kind.runs_images and "TrainingImage" in changed.get("AlgorithmSpecification", {})
    channels = {channel["ChannelName"] for channel in changed.get("InputDataConfig", ())}
    if kind.runs_scripts and not runs_image and _REMOTE_FUNCTION in channels:
        text = "A remote function installs packages and writes into the directory '/', which would be this machine's"
        raise validation_error(f"{text}: start scriptmode serve with --hosts local, which runs it in a container.")
    if asked:
        changed["Tags"] = [*changed.get("Tags", ()), *({"Key": key, "Value": value} for key, value in asked.items())]
    return MappedRequest(changed, kind, failure)


def tuning_to_local(request: Mapping[str, Any], table: HostTable) -> MappedRequest:
    """Return the valid request of a tuning job whose training jobs the local platform runs; as `to_local`."""
    check_tags(request.get("Tags"))
    if tuning.DEFINITION not in request:
        # The platform refuses it.
        return MappedRequest(request, instance_kind(LOCAL_PROCESS))
    mapped = to_local(request[tuning.DEFINITION], table)
    definition = {key: value for key, value in mapped.request.items() if key != "Tags"}
    tags = [{"Key": _TUNING_JOB, "Value": request["HyperParameterTuningJobName"]}, *mapped.request.get("Tags", ())]
    return MappedRequest({**request, tuning.DEFINITION: definition}, mapped.kind, mapped.failure, tags)


def tuning_to_described(description: Mapping[str, Any], server_tags: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return the description of a tuning job with the instance type and the image that were asked for.

    ``server_tags`` are those that `tuning_to_local` returned.
    """
    definition = to_described(description[tuning.DEFINITION], {tag["Key"]: tag["Value"] for tag in server_tags})
    # The SDK v2 sends the hosts in another field, and reads them in ResourceConfig.
    return {**description, tuning.DEFINITION: tuning.with_resource_config(definition)}


def _map_image(algorithm: object, table: HostTable, kind: HostKind, asked: dict[str, str]) -> str:
    """Change the image of a request; return why its hosts cannot run it, "" if they can."""
    image = algorithm.get("TrainingImage") if isinstance(algorithm, dict) else None
    if not isinstance(image, str) or not isinstance(algorithm, dict):
        return ""
    other = next(_matching(table.images, image), None)
    is_of_scripts = any(fnmatch.fnmatchcase(image, pattern) for pattern in _SCRIPT_IMAGES)
    if kind.runs_scripts and other is None and not is_of_scripts:
        return (
            f"ClientError: The image '{image}' cannot be used: the hosts are not containers. Start scriptmode serve "
            "with --hosts local to run it in containers. If its script runs with the server's Python, start it with "
            f"--config FILE, and write into FILE, below a line [images]: '{image}' = 'scriptmode/tensorflow'"
        )
    if kind.runs_scripts and kind.runs_images and other is None:
        del algorithm["TrainingImage"]
    elif kind.runs_images and other is not None:
        algorithm["TrainingImage"] = other
    if algorithm.get("TrainingImage") != image and len(image) <= _LONGEST_TAG:
        asked[_IMAGE] = image
    return ""


def to_described(description: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, Any]:
    """Return a description of a job of this machine with the instance types and the image that were asked for."""
    described = {name: copy.deepcopy(value) if name in _MAPPED else value for name, value in description.items()}
    for part, instance_type in zip(_resource_parts(described), tags.get(_TYPES, "").split()):
        part["InstanceType"] = instance_type
    if _IMAGE in tags:
        described["AlgorithmSpecification"]["TrainingImage"] = tags[_IMAGE]
    if _TUNING_JOB in tags and "TrainingJobArn" in described:
        account = described["TrainingJobArn"].rpartition(":")[0]
        described["TuningJobArn"] = f"{account}:hyper-parameter-tuning-job/{tags[_TUNING_JOB]}"
    return described


def without_own_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that the client gave."""
    return {key: value for key, value in tags.items() if not key.startswith(SERVER_TAGS)}


def check_tags(tags: object) -> None:
    """Raise `ApiError` for tags whose keys are reserved, for AWS or for the server, or occur twice."""
    keys = [str(tag.get("Key", "")) for tag in tags if isinstance(tag, dict)] if isinstance(tags, list) else []
    for key in keys:
        prefix = next((start for start in (RESERVED_TAGS, SERVER_TAGS) if key.lower().startswith(start)), "")
        if prefix:
            raise validation_error(f"The tag key '{key}' is reserved: keys cannot begin with '{prefix}'.")
    if len(keys) > len(set(keys)):
        raise validation_error("Duplicate tag key")


def _refuse_unknown_types(request: Mapping[str, Any], table: HostTable) -> None:
    known = shapes(REQUEST_SHAPE)["TrainingInstanceType"]["enum"]
    for name in {part["InstanceType"] for part in _resource_parts(request)}:
        is_cloud = not instance_kind(name).has_local_jobs
        if is_cloud and name not in known and not any(_matching(table.instance_types, name)):
            similar = did_you_mean(name, known, most=0)
            text = f"Value '{name}' at 'resourceConfig.instanceType' failed to satisfy constraint: "
            raise validation_error(f"{text}Member must satisfy enum value set{f'; {similar}' if similar else ''}")


def _resource_parts(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parts of a configuration of hosts that have an instance type."""
    for resources in (request.get("ResourceConfig"), request.get(tuning.RESOURCES)):
        if not isinstance(resources, dict):
            continue
        groups = resources.get("InstanceGroups")
        for part in (resources, *(groups if isinstance(groups, list) else ())):
            if isinstance(part, dict) and isinstance(part.get("InstanceType"), str):
                yield part


def _matching(table: Mapping[str, str], name: str) -> Iterator[str]:
    return (value for pattern, value in table.items() if fnmatch.fnmatchcase(name, pattern))
