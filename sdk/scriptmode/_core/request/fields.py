"""The fields of a CreateTrainingJob request: one table for rendering, parsing and the estimator's arguments. Pure.

A row says where a value is in the request and in `JobRequest`, how it is converted, and which argument of an estimator
sets it. A field that is not in a request has the attribute's default.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import fields as dataclass_fields
from typing import Any, Callable, NamedTuple, TypeVar

from scriptmode._core.spec.inputs import Channel, FileSystemInput, OtherInput, ShuffleConfig, TrainingInput
from scriptmode._core.spec.training_job import InstanceGroup

_T = TypeVar("_T")


class Conversion(NamedTuple):
    """How an attribute becomes the request's value, and back. ``None`` and empty values are left out."""

    render: Callable[[Any], Any]
    parse: Callable[[Any], Any]


class Field(NamedTuple):
    """One field: its path in the request and its attribute, dots between the parts; the argument that sets it."""

    path: str
    attribute: str
    argument: str = ""
    conversion: Conversion | None = None


def _pairs(first: str, second: str) -> Conversion:
    """Return the conversion of pairs, which are objects of two fields in the request."""
    return Conversion(
        lambda value: [{first: pair[0], second: pair[1]} for pair in value],
        lambda value: tuple((pair[first], pair[second]) for pair in value),
    )


_TEXTS = Conversion(list, tuple)
_OBJECT = Conversion(lambda value: None if value is None else dict(value), copy.deepcopy)
_OBJECTS = Conversion(lambda value: [dict(item) for item in value], lambda value: tuple(copy.deepcopy(list(value))))
#: A switch that is off where the request does not have it.
_SWITCH = Conversion(lambda value: value or None, bool)
_UNCOMPRESSED = Conversion(lambda value: None if value else "NONE", lambda value: value != "NONE")
_SHUFFLE = Conversion(
    lambda value: None if value is None else value.seed, lambda value: unchecked(ShuffleConfig, seed=value)
)

_GROUP_FIELDS = (
    Field("InstanceGroupName", "instance_group_name"),
    Field("InstanceType", "instance_type"),
    Field("InstanceCount", "instance_count"),
)
_S3_FIELDS = (
    Field("DataSource.S3DataSource.S3DataType", "s3_data_type"),
    Field("DataSource.S3DataSource.S3Uri", "s3_data"),
    Field("DataSource.S3DataSource.S3DataDistributionType", "distribution"),
    Field("DataSource.S3DataSource.AttributeNames", "attribute_names", "", _TEXTS),
    Field("DataSource.S3DataSource.InstanceGroupNames", "instance_groups", "", _TEXTS),
    Field("DataSource.S3DataSource.HubAccessConfig", "hub_access_config", "", _OBJECT),
    Field("DataSource.S3DataSource.ModelAccessConfig", "model_access_config", "", _OBJECT),
    Field("ContentType", "content_type"),
    Field("CompressionType", "compression"),
    Field("RecordWrapperType", "record_wrapping"),
    Field("InputMode", "input_mode"),
    Field("ShuffleConfig.Seed", "shuffle_config", "", _SHUFFLE),
    Field("TargetAttributeName", "target_attribute_name"),
)
_FILE_SYSTEM_FIELDS = (
    Field("DataSource.FileSystemDataSource.FileSystemId", "file_system_id"),
    Field("DataSource.FileSystemDataSource.FileSystemType", "file_system_type"),
    Field("DataSource.FileSystemDataSource.DirectoryPath", "directory_path"),
    Field("DataSource.FileSystemDataSource.FileSystemAccessMode", "file_system_access_mode"),
    Field("ContentType", "content_type"),
)
#: The class and the fields of a channel's source for each member of DataSource.
SOURCES: dict[str, tuple[type[TrainingInput | FileSystemInput], tuple[Field, ...]]] = {
    "S3DataSource": (TrainingInput, _S3_FIELDS),
    "FileSystemDataSource": (FileSystemInput, _FILE_SYSTEM_FIELDS),
}


def render_channel(channel: Channel) -> dict[str, object]:
    """Return a channel as the request's InputDataConfig has it."""
    rows = next((rows for kind, rows in SOURCES.values() if isinstance(channel.source, kind)), ())
    return {"ChannelName": channel.name, **render_fields(rows, channel.source)}


def parse_input(channel: Mapping[str, Any]) -> tuple[type[TrainingInput | FileSystemInput] | None, dict[str, Any]]:
    """Return the class of a channel's source and its arguments; no class for a source that estimators do not have."""
    given = [member for member, source in channel["DataSource"].items() if source is not None]
    if len(given) == 1 and given[0] in SOURCES:
        kind, rows = SOURCES[given[0]]
        return kind, parse_fields(rows, channel)
    return None, {}


def parse_channel(channel: Mapping[str, Any]) -> Channel:
    """Return an entry of InputDataConfig as a value."""
    kind, given = parse_input(channel)
    source = OtherInput(", ".join(channel["DataSource"])) if kind is None else unchecked(kind, **given)
    return unchecked(Channel, name=channel["ChannelName"], source=source)


_CHANNELS = Conversion(
    lambda value: [render_channel(channel) for channel in value], lambda value: tuple(map(parse_channel, value))
)
_GROUPS = Conversion(
    lambda value: [render_fields(_GROUP_FIELDS, group) for group in value],
    lambda value: tuple(unchecked(InstanceGroup, **parse_fields(_GROUP_FIELDS, group)) for group in value),
)


def _plain(path: str, argument: str, conversion: Conversion | None = None) -> Field:
    """Return the row of an argument that is a field as it is, of which the service's model knows what is right."""
    return Field(path, f"plain_fields.{argument}", argument, conversion)


#: In the order of a rendered request. An argument that is made of several fields is not named here.
FIELDS = (
    Field("TrainingJobName", "name"),
    Field("RoleArn", "role", "role"),
    Field("AlgorithmSpecification.TrainingImage", "algorithm.image_uri", "image_uri"),
    Field("AlgorithmSpecification.TrainingInputMode", "algorithm.input_mode", "input_mode"),
    Field(
        "AlgorithmSpecification.MetricDefinitions",
        "algorithm.metric_definitions",
        "metric_definitions",
        _pairs("Name", "Regex"),
    ),
    Field(
        "AlgorithmSpecification.ContainerEntrypoint", "algorithm.container_entry_point", "container_entry_point", _TEXTS
    ),
    Field("AlgorithmSpecification.ContainerArguments", "algorithm.container_arguments", "container_arguments", _TEXTS),
    _plain("AlgorithmSpecification.EnableSageMakerMetricsTimeSeries", "enable_sagemaker_metrics"),
    _plain(
        "AlgorithmSpecification.TrainingImageConfig.TrainingRepositoryAccessMode", "training_repository_access_mode"
    ),
    _plain(
        "AlgorithmSpecification.TrainingImageConfig.TrainingRepositoryAuthConfig"
        ".TrainingRepositoryCredentialsProviderArn",
        "training_repository_credentials_provider_arn",
    ),
    Field("HyperParameters", "hyperparameters", "", _OBJECT),
    Field("Environment", "environment", "environment", _OBJECT),
    Field("InputDataConfig", "channels", "", _CHANNELS),
    Field("OutputDataConfig.S3OutputPath", "output.path", "output_path"),
    Field("OutputDataConfig.KmsKeyId", "output.kms_key", "output_kms_key"),
    Field("OutputDataConfig.CompressionType", "output.compress", "", _UNCOMPRESSED),
    Field("ResourceConfig.InstanceCount", "resources.instance_count", "instance_count"),
    Field("ResourceConfig.InstanceType", "resources.instance_type", "instance_type"),
    Field("ResourceConfig.InstanceGroups", "resources.instance_groups", "instance_groups", _GROUPS),
    Field("ResourceConfig.VolumeSizeInGB", "resources.volume_size", "volume_size"),
    Field("ResourceConfig.VolumeKmsKeyId", "resources.volume_kms_key", "volume_kms_key"),
    Field("ResourceConfig.KeepAlivePeriodInSeconds", "resources.keep_alive_period", "keep_alive_period_in_seconds"),
    _plain("ResourceConfig.TrainingPlanArn", "training_plan"),
    _plain("ResourceConfig.InstancePlacementConfig", "instance_placement_config", _OBJECT),
    Field("StoppingCondition.MaxRuntimeInSeconds", "limits.max_run", "max_run"),
    Field("StoppingCondition.MaxWaitTimeInSeconds", "limits.max_wait", "max_wait"),
    Field("EnableManagedSpotTraining", "limits.use_spot_instances", "use_spot_instances", _SWITCH),
    Field("RetryStrategy.MaximumRetryAttempts", "limits.max_retry_attempts", "max_retry_attempts"),
    Field("CheckpointConfig.S3Uri", "output.checkpoint_uri", "checkpoint_s3_uri"),
    Field("CheckpointConfig.LocalPath", "output.checkpoint_local_path", "checkpoint_local_path"),
    Field("VpcConfig.Subnets", "network.subnets", "subnets", _TEXTS),
    Field("VpcConfig.SecurityGroupIds", "network.security_group_ids", "security_group_ids", _TEXTS),
    Field("EnableNetworkIsolation", "network.isolation", "enable_network_isolation", _SWITCH),
    Field(
        "EnableInterContainerTrafficEncryption", "network.encrypt_traffic", "encrypt_inter_container_traffic", _SWITCH
    ),
    _plain("InfraCheckConfig.EnableInfraCheck", "enable_infra_check"),
    _plain("RemoteDebugConfig.EnableRemoteDebug", "enable_remote_debug"),
    _plain("SessionChainingConfig.EnableSessionTagChaining", "enable_session_tag_chaining"),
    Field("Tags", "tags", "", _pairs("Key", "Value")),
    Field("ExperimentConfig", "experiment", "", _OBJECT),
    Field("DebugRuleConfigurations", "monitoring.debug_rules", "rules", _OBJECTS),
    Field("ProfilerRuleConfigurations", "monitoring.profiler_rules", "", _OBJECTS),
    Field("DebugHookConfig", "monitoring.debug_hook", "debugger_hook_config", _OBJECT),
    Field("TensorBoardOutputConfig", "monitoring.tensorboard", "tensorboard_output_config", _OBJECT),
    Field("ProfilerConfig", "monitoring.profiler", "profiler_config", _OBJECT),
)
#: The arguments that are fields as they are, by the paths of the fields.
PLAIN_ARGUMENTS = {row.path: row.argument for row in FIELDS if row.attribute.startswith("plain_fields.")}


def render_fields(rows: Iterable[Field], value: object) -> dict[str, Any]:
    """Return the fields that the attributes of ``value`` have a value for."""
    fields: dict[str, Any] = {}
    for row in rows:
        attribute = value
        for name in row.attribute.split("."):
            attribute = attribute.get(name) if isinstance(attribute, dict) else getattr(attribute, name)
        rendered = row.conversion.render(attribute) if row.conversion else attribute
        rendered = without_empty(rendered)
        if rendered is None or rendered in ([], {}):
            continue
        *parents, last = row.path.split(".")
        target = fields
        for key in parents:
            target = target.setdefault(key, {})
        target[last] = rendered
    return fields


def render_field(name: str, spec: object) -> dict[str, Any] | None:
    """Return an object of the request as the arguments of a spec say it, ``None`` where they leave it out."""
    rows = [row for row in FIELDS if row.path.startswith(f"{name}.")]
    return render_fields(rows, spec).get(name)


def parse_fields(rows: Iterable[Field], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of the fields that are given, by their names in the table."""
    attributes: dict[str, Any] = {}
    for row in rows:
        value = field_at(fields, row.path)
        if value is not None:
            attributes[row.attribute] = row.conversion.parse(value) if row.conversion else value
    return attributes


def field_at(fields: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path, ``None`` where there is none."""
    value: Any = fields
    for key in path.split("."):
        value = None if value is None else value.get(key)
    return value


def without_empty(value: Any) -> Any:
    """Drop members that say nothing: ``None``, empty lists and empty objects, at any depth."""
    if isinstance(value, list):
        return [without_empty(item) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without_empty(item) for key, item in value.items()}
    return {key: item for key, item in kept.items() if item is not None and item not in ([], {})}


def unchecked(kind: type[_T], **given: Any) -> _T:
    """Create a value without the validation of its constructor: it is part of a job that exists."""
    made = object.__new__(kind)
    missing = [field for field in dataclass_fields(kind) if field.name not in given]  # type: ignore[arg-type]
    vars(made).update({field.name: getattr(kind, field.name, None) for field in missing}, **given)
    return made


def changed(value: _T, **given: Any) -> _T:
    """Return a copy with other attributes, without validation."""
    return unchecked(type(value), **{**vars(value), **given})
