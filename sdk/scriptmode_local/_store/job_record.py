"""The record of a created job, ``job.json``, which is validated before any code relies on its content. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode._core.spec.hosts import LOCAL_CONTAINER, HostKind, host_kind
from scriptmode_local._store import shapes
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest

#: More hosts than one machine can have. A damaged count must not make a loop of billions of turns.
_MOST_HOSTS = 100_000
#: In place of the number of jobs that run at once: as many as the machine has processors and memory for.
FITTING = -1
_TEXTS = {"*": str}
#: The parts of a request that are parsed without validating them again.
_REQUEST: Mapping[str, object] = {
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
        "TrainingImageConfig": {"TrainingRepositoryAuthConfig": dict},
    },
    "InputDataConfig": [
        {
            "ChannelName!": str,
            "InputMode": str,
            "ShuffleConfig": dict,
            "DataSource!": {
                "S3DataSource": {
                    "S3Uri!": str,
                    "S3DataType": str,
                    "InstanceGroupNames": [str],
                    "AttributeNames": [str],
                    "HubAccessConfig": dict,
                    "ModelAccessConfig": dict,
                },
                "FileSystemDataSource": {"FileSystemId!": str, "FileSystemType!": str, "DirectoryPath!": str},
            },
        }
    ],
    "OutputDataConfig": {"S3OutputPath!": str},
    "ResourceConfig!": {
        "InstanceType": str,
        "InstanceCount": int,
        "InstancePlacementConfig": dict,
        "InstanceGroups": [{"InstanceGroupName!": str, "InstanceType!": str, "InstanceCount!": int}],
    },
    "StoppingCondition": {"MaxRuntimeInSeconds": int, "MaxWaitTimeInSeconds": int},
    "CheckpointConfig": {"S3Uri!": str, "LocalPath": str},
    "Tags": [{"Key!": str, "Value!": str}],
    "VpcConfig": {"Subnets": [str], "SecurityGroupIds": [str]},
    "RetryStrategy": dict,
    "InfraCheckConfig": dict,
    "RemoteDebugConfig": dict,
    "SessionChainingConfig": dict,
    "ExperimentConfig": dict,
    "DebugHookConfig": dict,
    "DebugRuleConfigurations": [dict],
    "ProfilerConfig": dict,
    "ProfilerRuleConfigurations": [dict],
    "TensorBoardOutputConfig": dict,
}
_JOB: Mapping[str, object] = {
    "request!": _REQUEST,
    "arn!": str,
    "region!": str,
    "python!": str,
    "file_systems": _TEXTS,
    "engine": dict,
    "queue": int,
}
_FIELDS = {"stop_grace", *(key.rstrip("!") for key in _JOB)}


def _is_more(asked: str, granted: float) -> bool:
    """Return whether a job requests more seconds than the platform grants; `train` refuses other text."""
    try:
        return granted < float(asked) < float("inf")
    except ValueError:
        return False


@dataclass(frozen=True)
class Job:
    """The part of a job that does not change after its creation."""

    request: JobRequest
    arn: str
    region: str
    python: str
    stop_grace: float
    #: Directories of this machine by the ids of the file systems that they stand for.
    file_systems: Mapping[str, str] = field(default_factory=dict)
    #: The settings of the hosts' engine, as `Engine.settings` returned them; empty for hosts that are processes.
    engine: Mapping[str, Any] = field(default_factory=dict)
    #: The job waits until fewer than this many jobs run, or for `FITTING` until the machine has room for it;
    #: 0 for a job that does not wait.
    queue: int = 0
    #: The service's JSON of the request, where it is at hand.
    fields: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    def with_hosts(self, count: int) -> Job:
        """Return the job with the hosts of one run, which may be fewer than those that were asked for."""
        from scriptmode._core.request.fields import changed

        resources = self.request.resources
        if count == resources.count:
            return self
        return replace(self, request=replace(self.request, resources=changed(resources, instance_count=count)))

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return variables of a host with the Region, the job's name and ARN, and the grace period of a stop."""
        made = dict(given)
        if contract.REGION_VARIABLE not in self.request.environment:
            made[contract.REGION_VARIABLE] = self.region
        made[contract.JOB_NAME_VARIABLE] = self.request.name
        made[contract.JOB_ARN_VARIABLE] = self.arn
        asked = made.get(contract.STOP_GRACE_VARIABLE, "")
        if not asked or _is_more(asked, self.stop_grace):
            made[contract.STOP_GRACE_VARIABLE] = f"{self.stop_grace:g}"
        return made

    def to_json(self) -> dict[str, object]:
        """Return the content of ``job.json``."""
        from scriptmode._core.request.render import render_request

        content = {**vars(self), "request": self.fields or render_request(self.request)}
        del content["fields"]
        return content


def parse_job(content: Any, name: str) -> Job:
    """Return the job of a record; raise what `validate_job_record` raises, or ``TypeError``."""
    validate_job_record(content, name)
    from scriptmode._core.request.parse import parse_request

    return Job(**{**content, "request": parse_request(content["request"])})


class RecordedHosts(NamedTuple):
    """The instance types of a job's hosts, and the settings of their engine: by them is found what it has elsewhere."""

    types: tuple[str, ...]
    settings: Mapping[str, Any]


def parse_hosts(content: Any, _name: str) -> RecordedHosts:
    """Return the hosts of a record; raise ``TypeError`` or ``ValueError``."""
    shapes.validate_shape(content, {"types!": [str], "engine!": dict}, "")
    return RecordedHosts(tuple(content["types"]), content["engine"])


class JobFacts(NamedTuple):
    """What the list of jobs needs of a request."""

    hosts: int
    #: As the command line names it; "" without one.
    distribution: str
    #: Names and regular expressions.
    metrics: tuple[tuple[str, str], ...]
    kind: HostKind

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names of the hosts, in the order of their numbers."""
        return tuple(f"algo-{number}" for number in range(1, self.hosts + 1))


def summarize_job_record(content: Any, name: str) -> JobFacts:
    """Return the facts of a record, in less time than `parse_job` takes; raise what `validate_job_record` raises."""
    validate_job_record(content, name)
    request = content["request"]
    resources, parameters = request["ResourceConfig"], request.get("HyperParameters", {})
    groups = resources.get("InstanceGroups") or [resources]
    switches = (switch for switch in contract.DISTRIBUTION_SWITCHES if contract.enabled(parameters.get(switch, "")))
    definitions = request.get("AlgorithmSpecification", {}).get("MetricDefinitions", ())
    return JobFacts(
        sum(group["InstanceCount"] for group in groups),
        next((contract.STRATEGIES[switch].replace("_", "-") for switch in switches), ""),
        tuple((definition["Name"], definition["Regex"]) for definition in definitions),
        host_kind([group["InstanceType"] for group in groups]),
    )


def validate_job_record(content: Any, name: str) -> None:
    """Raise ``ValueError`` for content that is not the record of the job ``name``."""
    shapes.validate_shape(content, _JOB, "")
    request = content["request"]
    if request["TrainingJobName"] != name:
        raise ValueError(f"it is of the job {request['TrainingJobName']!r}")
    if unknown := content.keys() - _FIELDS:
        raise ValueError(f"it has {', '.join(map(repr, sorted(unknown)))}, which this version does not know")
    if not shapes.is_number(content.get("stop_grace")):
        raise ValueError(f"stop_grace is {content.get('stop_grace')!r}, not a number of seconds")
    groups = request["ResourceConfig"].get("InstanceGroups") or [request["ResourceConfig"]]
    for group in groups:
        count = group.get("InstanceCount")
        if "InstanceType" not in group or not isinstance(count, int) or not 0 < count <= _MOST_HOSTS:
            raise ValueError(f"its ResourceConfig has {count!r} hosts of type {group.get('InstanceType')!r}")
    is_in_containers = any(group["InstanceType"] in LOCAL_CONTAINER for group in groups)
    if is_in_containers and "TrainingImage" not in request.get("AlgorithmSpecification", {}):
        raise ValueError("its AlgorithmSpecification has no 'TrainingImage'")
