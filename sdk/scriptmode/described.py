"""From a service's description of a job back to the estimator's arguments, whoever made the job. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.distribution import MPI, MultiWorkerMirrored, ParameterServer
from scriptmode.request import derived_model_dir
from scriptmode.spec import CODE_CHANNEL, InstanceGroup
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.distribution import Distribution


#: Where in the description each plain argument stands.
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
}


def arguments(description: Mapping[str, Any]) -> dict[str, Any]:
    """Give the keyword arguments of an `Estimator` that would start the described job again."""
    found = {name: _at(description, path) for name, path in _FIELDS.items()}
    found["instance_groups"] = _groups(description["ResourceConfig"])
    found["disable_output_compression"] = _at(description, ("OutputDataConfig", "CompressionType")) == "NONE"
    parameters = _decoded(description.get("HyperParameters", {}))
    found["hyperparameters"] = {key: each for key, each in parameters.items() if not _is_own(key)}
    if contract.PROGRAM in parameters:
        found["entry_point"] = parameters[contract.PROGRAM]
        found["source_dir"] = _source(description, parameters)
        found["container_log_level"] = parameters.get(contract.LOG_LEVEL)
        found["distribution"] = _distribution(parameters)
        found["model_dir"] = _model_dir(description, parameters, found["distribution"])
    return {name: value for name, value in found.items() if value is not None}


def _at(description: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = description
    for key in path:
        value = value.get(key)
        if value is None:
            return None
    return value


def _decoded(encoded: Mapping[str, str]) -> dict[str, Any]:
    if contract.PROGRAM not in encoded:
        return dict(encoded)
    return {key: contract.decode(text) for key, text in encoded.items()}


def _is_own(key: str) -> bool:
    return key.startswith(contract.RESERVED_PREFIX) or key in (contract.MODEL_DIR_PARAMETER, contract.TUNING_METRIC)


def _source(description: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """Give where the source archive is stored; under network isolation its channel tells."""
    submitted = parameters.get(contract.SUBMIT_DIRECTORY)
    for channel in description.get("InputDataConfig", ()):
        if channel["ChannelName"] == CODE_CHANNEL and str(submitted).startswith(contract.DEFAULT_BASE_DIR):
            return str(channel["DataSource"]["S3DataSource"]["S3Uri"])
    return submitted


def _model_dir(
    description: Mapping[str, Any], parameters: Mapping[str, Any], distribution: Distribution | None
) -> str | bool:
    """Give the job's own model_dir; ``True`` where it was derived, so that the next job gets one of its own."""
    given: str | bool = parameters.get(contract.MODEL_DIR_PARAMETER, False)
    output_path = description["OutputDataConfig"]["S3OutputPath"]
    return True if given == derived_model_dir(output_path, description["TrainingJobName"], distribution) else given


def _groups(resources: Mapping[str, Any]) -> list[InstanceGroup] | None:
    groups = resources.get("InstanceGroups")
    if not groups:
        return None
    return [InstanceGroup(each["InstanceGroupName"], each["InstanceType"], each["InstanceCount"]) for each in groups]


def _distribution(parameters: Mapping[str, Any]) -> Distribution | None:
    groups = tuple(parameters.get(contract.DISTRIBUTION_INSTANCE_GROUPS) or ())
    if parameters.get(contract.PARAMETER_SERVER_ENABLED):
        return ParameterServer(bool(parameters.get(contract.PARAMETER_SERVER_COORDINATOR)), groups)
    if parameters.get(contract.MULTI_WORKER_MIRRORED_ENABLED):
        return MultiWorkerMirrored(groups)
    if parameters.get(contract.MPI_ENABLED):
        options = parameters.get(contract.MPI_CUSTOM_OPTIONS) or ""
        return MPI(parameters.get(contract.MPI_PROCESSES_PER_HOST), options, groups)
    return None
