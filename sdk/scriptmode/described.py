"""From a service's description of a job back to the estimator's arguments, whoever made the job. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.distribution import MPI, MultiWorkerMirrored, ParameterServer
from scriptmode.spec import InstanceGroup
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.distribution import Distribution


def arguments(description: Mapping[str, Any]) -> dict[str, Any]:
    """Give the keyword arguments of an `Estimator` that would start the described job again."""
    parameters = _decoded(description.get("HyperParameters", {}))
    algorithm = description["AlgorithmSpecification"]
    resources = description["ResourceConfig"]
    output = description["OutputDataConfig"]
    stopping = description.get("StoppingCondition", {})
    vpc = description.get("VpcConfig", {})
    checkpoint = description.get("CheckpointConfig", {})
    found = {
        "image_uri": algorithm.get("TrainingImage"),
        "role": description.get("RoleArn"),
        "input_mode": algorithm.get("TrainingInputMode"),
        "metric_definitions": algorithm.get("MetricDefinitions"),
        "container_entry_point": algorithm.get("ContainerEntrypoint"),
        "container_arguments": algorithm.get("ContainerArguments"),
        "instance_count": resources.get("InstanceCount"),
        "instance_type": resources.get("InstanceType"),
        "instance_groups": _groups(resources),
        "volume_size": resources.get("VolumeSizeInGB"),
        "volume_kms_key": resources.get("VolumeKmsKeyId"),
        "keep_alive_period_in_seconds": resources.get("KeepAlivePeriodInSeconds"),
        "training_plan": resources.get("TrainingPlanArn"),
        "output_path": output.get("S3OutputPath"),
        "output_kms_key": output.get("KmsKeyId"),
        "disable_output_compression": output.get("CompressionType") == "NONE",
        "checkpoint_s3_uri": checkpoint.get("S3Uri"),
        "checkpoint_local_path": checkpoint.get("LocalPath"),
        "max_run": stopping.get("MaxRuntimeInSeconds"),
        "max_wait": stopping.get("MaxWaitTimeInSeconds"),
        "use_spot_instances": description.get("EnableManagedSpotTraining", False),
        "max_retry_attempts": description.get("RetryStrategy", {}).get("MaximumRetryAttempts"),
        "subnets": vpc.get("Subnets"),
        "security_group_ids": vpc.get("SecurityGroupIds"),
        "enable_network_isolation": description.get("EnableNetworkIsolation", False),
        "encrypt_inter_container_traffic": description.get("EnableInterContainerTrafficEncryption", False),
        "environment": description.get("Environment"),
        "hyperparameters": {key: each for key, each in parameters.items() if not _is_own(key)},
    }
    if contract.PROGRAM in parameters:
        found["entry_point"] = parameters[contract.PROGRAM]
        found["source_dir"] = parameters.get(contract.SUBMIT_DIRECTORY)
        found["container_log_level"] = parameters.get(contract.LOG_LEVEL, 20)
        found["model_dir"] = parameters.get(contract.MODEL_DIR_PARAMETER, False)
        found["distribution"] = _distribution(parameters)
    return {name: value for name, value in found.items() if value is not None}


def _decoded(encoded: Mapping[str, str]) -> dict[str, Any]:
    if contract.PROGRAM not in encoded:
        return dict(encoded)
    return {key: contract.decode(text) for key, text in encoded.items()}


def _is_own(key: str) -> bool:
    return key.startswith(contract.RESERVED_PREFIX) or key in (contract.MODEL_DIR_PARAMETER, contract.TUNING_METRIC)


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
