"""Parse the service's description of a job into the arguments of an estimator. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.errors import SpecError
from scriptmode.request.render import derived_model_dir
from scriptmode.spec.distribution import parse_distribution
from scriptmode.spec.inputs import MODEL_CONTENT_TYPE, parse_channel
from scriptmode.spec.monitoring import rules_of_next_job
from scriptmode.spec.names import base_of_job
from scriptmode.spec.training_job import CODE_CHANNEL, RESERVED_TAGS, InstanceGroup
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.spec.distribution import Distribution
    from scriptmode.spec.inputs import Input


#: The field of the description for each argument that needs no conversion.
_FIELDS: dict[str, tuple[str, ...]] = {
    "image_uri": ("AlgorithmSpecification", "TrainingImage"),
    "role": ("RoleArn",),
    "input_mode": ("AlgorithmSpecification", "TrainingInputMode"),
    "metric_definitions": ("AlgorithmSpecification", "MetricDefinitions"),
    "container_entry_point": ("AlgorithmSpecification", "ContainerEntrypoint"),
    "container_arguments": ("AlgorithmSpecification", "ContainerArguments"),
    "enable_sagemaker_metrics": ("AlgorithmSpecification", "EnableSageMakerMetricsTimeSeries"),
    "instance_count": ("ResourceConfig", "InstanceCount"),
    "instance_type": ("ResourceConfig", "InstanceType"),
    "volume_size": ("ResourceConfig", "VolumeSizeInGB"),
    "volume_kms_key": ("ResourceConfig", "VolumeKmsKeyId"),
    "keep_alive_period_in_seconds": ("ResourceConfig", "KeepAlivePeriodInSeconds"),
    "training_plan": ("ResourceConfig", "TrainingPlanArn"),
    "instance_placement_config": ("ResourceConfig", "InstancePlacementConfig"),
    "output_path": ("OutputDataConfig", "S3OutputPath"),
    "output_kms_key": ("OutputDataConfig", "KmsKeyId"),
    "checkpoint_s3_uri": ("CheckpointConfig", "S3Uri"),
    "checkpoint_local_path": ("CheckpointConfig", "LocalPath"),
    "training_repository_access_mode": (
        "AlgorithmSpecification",
        "TrainingImageConfig",
        "TrainingRepositoryAccessMode",
    ),
    "training_repository_credentials_provider_arn": (
        "AlgorithmSpecification",
        "TrainingImageConfig",
        "TrainingRepositoryAuthConfig",
        "TrainingRepositoryCredentialsProviderArn",
    ),
    "enable_session_tag_chaining": ("SessionChainingConfig", "EnableSessionTagChaining"),
    "max_run": ("StoppingCondition", "MaxRuntimeInSeconds"),
    "max_wait": ("StoppingCondition", "MaxWaitTimeInSeconds"),
    "use_spot_instances": ("EnableManagedSpotTraining",),
    "max_retry_attempts": ("RetryStrategy", "MaximumRetryAttempts"),
    "subnets": ("VpcConfig", "Subnets"),
    "security_group_ids": ("VpcConfig", "SecurityGroupIds"),
    "enable_network_isolation": ("EnableNetworkIsolation",),
    "encrypt_inter_container_traffic": ("EnableInterContainerTrafficEncryption",),
    "enable_infra_check": ("InfraCheckConfig", "EnableInfraCheck"),
    "enable_remote_debug": ("RemoteDebugConfig", "EnableRemoteDebug"),
    "environment": ("Environment",),
    "debugger_hook_config": ("DebugHookConfig",),
    "rules": ("DebugRuleConfigurations",),
    "profiler_config": ("ProfilerConfig",),
    "tensorboard_output_config": ("TensorBoardOutputConfig",),
}
#: Fields of a request without an argument: an attached estimator keeps them unchanged.
OTHER_FIELDS: tuple[tuple[str, ...], ...] = (
    ("AlgorithmSpecification", "AlgorithmName"),
    ("StoppingCondition", "MaxPendingTimeInSeconds"),
    ("ProfilerRuleConfigurations",),
    ("MlflowConfig",),
    ("ModelPackageConfig",),
)
#: Each kind of distribution: its hyperparameter, and those of its options.
_DISTRIBUTIONS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "parameter_server",
        contract.PARAMETER_SERVER_ENABLED,
        {
            "coordinator": contract.PARAMETER_SERVER_COORDINATOR,
            "evaluator": contract.PARAMETER_SERVER_EVALUATOR,
            "roles": contract.PARAMETER_SERVER_ROLES,
            "chief": contract.PARAMETER_SERVER_CHIEF,
        },
    ),
    (
        "multi_worker_mirrored_strategy",
        contract.MULTI_WORKER_MIRRORED_ENABLED,
        {"evaluator": contract.MULTI_WORKER_MIRRORED_EVALUATOR, "roles": contract.MULTI_WORKER_MIRRORED_ROLES},
    ),
    (
        "mpi",
        contract.MPI_ENABLED,
        {
            "processes_per_host": contract.MPI_PROCESSES_PER_HOST,
            "custom_mpi_options": contract.MPI_CUSTOM_OPTIONS,
            "bind_gpus": contract.MPI_BIND_GPUS,
        },
    ),
)
#: Script mode's hyperparameters that arguments stand for.
_OWN = frozenset(
    {
        contract.PROGRAM,
        contract.SUBMIT_DIRECTORY,
        contract.LOG_LEVEL,
        contract.JOB_NAME,
        contract.REGION,
        contract.PARAMETER_SERVER_ENABLED,
        contract.PARAMETER_SERVER_COORDINATOR,
        contract.PARAMETER_SERVER_CHIEF,
        contract.PARAMETER_SERVER_EVALUATOR,
        contract.PARAMETER_SERVER_ROLES,
        contract.MULTI_WORKER_MIRRORED_ENABLED,
        contract.MULTI_WORKER_MIRRORED_EVALUATOR,
        contract.MULTI_WORKER_MIRRORED_ROLES,
        contract.MPI_ENABLED,
        contract.MPI_PROCESSES_PER_HOST,
        contract.MPI_CUSTOM_OPTIONS,
        contract.MPI_BIND_GPUS,
        contract.DISTRIBUTION_INSTANCE_GROUPS,
    }
)


def estimator_arguments(description: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the keyword arguments of an `Estimator` that would start the described job again, without its inputs.

    They are not checked: the service may have accepted what an estimator refuses.
    """
    resources = description.get("ResourceConfig", {})
    found = {name: _at(description, path) for name, path in _FIELDS.items()}
    # A new job gets a new secret.
    found["environment"] = {
        name: value for name, value in (found["environment"] or {}).items() if name != contract.SECRET_VARIABLE
    } or None
    found["base_job_name"] = base_of_job(description["TrainingJobName"])
    found["tags"] = {key: value for key, value in tags.items() if not key.startswith(RESERVED_TAGS)} or None
    found["rules"] = rules_of_next_job(found["rules"] or (), description["TrainingJobName"]) or None
    found["instance_groups"] = _groups(resources)
    if found["instance_groups"]:
        found["instance_count"] = found["instance_type"] = None
    found["disable_output_compression"] = _at(description, ("OutputDataConfig", "CompressionType")) == "NONE"
    for channel in description.get("InputDataConfig", ()):
        if _carries_model(channel):
            found["model_uri"] = channel["DataSource"]["S3DataSource"]["S3Uri"]
            found["model_channel_name"] = channel["ChannelName"]
    encoded = description.get("HyperParameters", {})
    source = source_uri(description)
    has_script = contract.PROGRAM in encoded and source is not None
    parameters = _decoded(encoded) if has_script else dict(encoded)
    own = {key for key in parameters if has_script and _is_own(key)}
    found["hyperparameters"] = {key: each for key, each in parameters.items() if key not in own}
    kept = {key: encoded[key] for key in own - _OWN if key != contract.MODEL_DIR_PARAMETER}
    found["additional_request_fields"] = {**_others(description), **({"HyperParameters": kept} if kept else {})} or None
    if has_script:
        found.update(_script(description, parameters), source_dir=source)
    return {name: value for name, value in found.items() if value is not None}


def job_inputs(description: Mapping[str, Any]) -> dict[str, Input]:
    """Return a described job's inputs by channel name, without the channels of the source archive and ``model_uri``."""
    carried = _source_channel(description)
    return {
        channel["ChannelName"]: parse_channel(f"channel {channel['ChannelName']!r}", channel)
        for channel in description.get("InputDataConfig", ())
        if not _carries_model(channel) and channel is not carried
    }


def _script(description: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "entry_point": parameters[contract.PROGRAM],
        "container_log_level": parameters.get(contract.LOG_LEVEL),
        "distribution": _distribution(parameters),
        "model_dir": _model_dir(description, parameters),
    }


def _carries_model(channel: Mapping[str, Any]) -> bool:
    return channel.get("ContentType") == MODEL_CONTENT_TYPE and "S3DataSource" in channel["DataSource"]


def _others(description: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for path in OTHER_FIELDS:
        value = _at(description, path)
        if value is None:
            continue
        target = kept
        for key in path[:-1]:
            target = target.setdefault(key, {})
        target[path[-1]] = value
    return kept


def _at(description: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = description
    for key in path:
        value = value.get(key)
        # The service describes some fields that were not given as empty.
        if value is None or value in ("", [], {}):
            return None
    return value


def _decoded(encoded: Mapping[str, str]) -> dict[str, Any]:
    return {key: contract.decode(text) for key, text in encoded.items()}


def _is_own(key: str) -> bool:
    return key.startswith(contract.RESERVED_PREFIX) or key in (contract.MODEL_DIR_PARAMETER, contract.TUNING_METRIC)


def source_uri(description: Mapping[str, Any]) -> str | None:
    """Return the URI of the source archive; ``None`` where the image has the script."""
    channel = _source_channel(description)
    if channel is not None:
        return str(channel["DataSource"]["S3DataSource"]["S3Uri"])
    submitted = _submitted(description)
    return submitted if "://" in submitted else None


def _source_channel(description: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the channel with the source archive, which a job has under network isolation."""
    for channel in description.get("InputDataConfig", ()):
        if channel["ChannelName"] == CODE_CHANNEL and _submitted(description).startswith(contract.DEFAULT_BASE_DIR):
            found: Mapping[str, Any] = channel
            return found
    return None


def _submitted(description: Mapping[str, Any]) -> str:
    return str(contract.decode(description.get("HyperParameters", {}).get(contract.SUBMIT_DIRECTORY, '""')))


def _model_dir(description: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | bool:
    """Return the job's own model_dir; ``True`` where it was derived, so that the next job gets one of its own."""
    given: str | bool = parameters.get(contract.MODEL_DIR_PARAMETER, False)
    output_path = description["OutputDataConfig"]["S3OutputPath"]
    with_mpi = bool(parameters.get(contract.MPI_ENABLED))
    return True if given == derived_model_dir(output_path, description["TrainingJobName"], with_mpi=with_mpi) else given


def _groups(resources: Mapping[str, Any]) -> list[InstanceGroup] | None:
    groups = resources.get("InstanceGroups")
    if not groups:
        return None
    return [InstanceGroup(each["InstanceGroupName"], each["InstanceType"], each["InstanceCount"]) for each in groups]


def _distribution(parameters: Mapping[str, Any]) -> Distribution | dict[str, Any] | None:
    """Return the distribution; as a dict, which the estimator validates, where it cannot be started."""
    found: dict[str, Any] = {}
    for kind, switch, options in _DISTRIBUTIONS:
        if parameters.get(switch):
            said = {name: parameters[key] for name, key in options.items() if parameters.get(key)}
            found[kind] = {"enabled": True, **said}
    groups = parameters.get(contract.DISTRIBUTION_INSTANCE_GROUPS)
    if found and groups and not any("roles" in options for options in found.values()):
        found["instance_groups"] = list(groups)
    try:
        return parse_distribution(found or None)
    except SpecError:
        return found
