"""A training job's CreateTrainingJob request. Pure; it and its inverse, `described`, spell the service's fields out."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scriptmode.errors import SpecError
from scriptmode.spec import hyperparameters
from scriptmode.spec.distribution import MPI, MultiWorkerMirrored, ParameterServer
from scriptmode.spec.inputs import MODEL_CONTENT_TYPE, Channel, FileSystemInput, TrainingInput
from scriptmode.spec.monitoring import rule_for_job
from scriptmode.spec.training_job import CODE_CHANNEL
from scriptmode_runtime import contract, settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.spec.training_job import Network, Resources, TrainingJobSpec


@dataclass(frozen=True)
class RenderContext:
    """What a request says beside the spec: the job's name, the Region, where its source archive is."""

    job_name: str
    region: str
    source_uri: str | None = None


def render(spec: TrainingJobSpec, context: RenderContext) -> dict[str, Any]:
    """Return the CreateTrainingJob request of a spec that its platform completed.

    Nothing is set that the job did not ask for.
    """
    fields = _without_empty(
        {
            "TrainingJobName": context.job_name,
            "RoleArn": spec.role,
            "AlgorithmSpecification": _algorithm(spec),
            "HyperParameters": _hyperparameters(spec, context),
            "Environment": _environment(spec),
            "InputDataConfig": [_channel(channel) for channel in _channels(spec, context)],
            "OutputDataConfig": {
                "S3OutputPath": _output_path(spec),
                "KmsKeyId": spec.output.kms_key,
                "CompressionType": None if spec.output.compress else "NONE",
            },
            "ResourceConfig": _resources(spec.resources),
            "StoppingCondition": {
                "MaxRuntimeInSeconds": spec.limits.max_run,
                "MaxWaitTimeInSeconds": spec.limits.max_wait,
            },
            "EnableManagedSpotTraining": spec.limits.use_spot_instances or None,
            "RetryStrategy": {"MaximumRetryAttempts": spec.limits.max_retry_attempts},
            "CheckpointConfig": {
                "S3Uri": spec.output.checkpoint_uri,
                "LocalPath": spec.output.checkpoint_local_path,
            },
            **_network(spec.network),
            "InfraCheckConfig": {"EnableInfraCheck": spec.features.infra_check},
            "RemoteDebugConfig": {"EnableRemoteDebug": spec.features.remote_debug},
            "SessionChainingConfig": {"EnableSessionTagChaining": spec.features.session_tag_chaining},
            "Tags": [{"Key": key, "Value": value} for key, value in spec.tags],
            "ExperimentConfig": dict(spec.experiment),
            **_monitoring(spec, context.job_name),
        }
    )
    # A caller that changes a request must not change the next one.
    return copy.deepcopy(_with_additional(fields, spec.additional_fields))


def _environment(spec: TrainingJobSpec) -> dict[str, str]:
    """Return the job's environment variables; raise `SpecError` for a setting that its hosts would refuse."""
    variables = dict(spec.environment or {})
    try:
        settings.read(variables)
    except settings.SettingError as error:
        raise SpecError(f"environment[{error.name!r}] is {error.value!r}; give {error.allowed}") from error
    return variables


def names_algorithm(spec: TrainingJobSpec) -> bool:
    """Return whether the additional fields name an algorithm resource, which has an image."""
    algorithm = spec.additional_fields.get("AlgorithmSpecification")
    return isinstance(algorithm, dict) and "AlgorithmName" in algorithm


def source_key(request: Mapping[str, Any], uri: str) -> str | None:
    """Return the KMS key for the source archive at ``uri``: the output's, where both are in one bucket."""
    output = request["OutputDataConfig"]
    same_bucket = output["S3OutputPath"].split("/")[:3] == uri.split("/")[:3]
    return output.get("KmsKeyId") if same_bucket else None


def _monitoring(spec: TrainingJobSpec, job_name: str) -> dict[str, Any]:
    """Return the fields of debugger, profiler and TensorBoard where they were asked for, or refused."""
    monitoring, place = spec.monitoring, {"S3OutputPath": _output_path(spec)}
    fields: dict[str, Any] = {
        "DebugRuleConfigurations": [rule_for_job(rule, job_name) for rule in monitoring.debug_rules],
        "ProfilerRuleConfigurations": [dict(rule) for rule in monitoring.profiler_rules],
    }
    if monitoring.debug_hook not in (None, False):
        asked = monitoring.debug_hook if isinstance(monitoring.debug_hook, dict) else {}
        fields["DebugHookConfig"] = {**place, **_without_empty(asked)}
    if monitoring.tensorboard is not None:
        fields["TensorBoardOutputConfig"] = {**place, **_without_empty(monitoring.tensorboard)}
    profiler = monitoring.profiler
    if profiler is None and (monitoring.profiler_off is not None or monitoring.profiler_rules):
        profiler = {"DisableProfiler": bool(monitoring.profiler_off)}
    if profiler is not None:
        stored = {} if profiler.get("DisableProfiler") else place
        fields["ProfilerConfig"] = {**stored, **_without_empty(profiler)}
    return fields


def _with_additional(fields: dict[str, Any], additional: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Merge in the fields that no argument says; raise `SpecError` for one that an argument says already."""
    merged = dict(fields)
    for key, value in additional.items():
        if key not in merged:
            merged[key] = value
        elif isinstance(value, dict) and isinstance(merged[key], dict):
            merged[key] = _with_additional(merged[key], value, f"{path}{key}.")
        elif merged[key] != value:
            # Values of these maps may be secrets.
            said = "" if path in ("Environment.", "HyperParameters.") else f", {value!r} and {merged[key]!r}"
            raise SpecError(
                f"additional_request_fields and the estimator's arguments both say {path}{key}{said}; "
                "say it by the argument alone"
            )
    return merged


def _network(network: Network) -> dict[str, Any]:
    return {
        "VpcConfig": {
            "Subnets": list(network.subnets),
            "SecurityGroupIds": list(network.security_group_ids),
        },
        "EnableNetworkIsolation": network.isolation or None,
        "EnableInterContainerTrafficEncryption": network.encrypt_traffic or None,
    }


def _algorithm(spec: TrainingJobSpec) -> dict[str, Any]:
    algorithm = spec.algorithm
    return {
        "TrainingImage": algorithm.image_uri,
        "TrainingInputMode": algorithm.input_mode,
        "MetricDefinitions": [{"Name": name, "Regex": regex} for name, regex in algorithm.metric_definitions],
        "ContainerEntrypoint": list(algorithm.container_entry_point),
        "ContainerArguments": list(algorithm.container_arguments),
        "EnableSageMakerMetricsTimeSeries": spec.features.sagemaker_metrics,
        "TrainingImageConfig": {
            "TrainingRepositoryAccessMode": algorithm.repository_access_mode,
            "TrainingRepositoryAuthConfig": {
                "TrainingRepositoryCredentialsProviderArn": algorithm.repository_credentials_provider_arn,
            },
        },
    }


def _hyperparameters(spec: TrainingJobSpec, context: RenderContext) -> dict[str, str]:
    encoded = hyperparameters.encode_hyperparameters(spec.hyperparameters, script_mode=spec.script is not None)
    if spec.script is not None:
        own: dict[str, Any] = {
            contract.PROGRAM: spec.script.entry_point,
            contract.SUBMIT_DIRECTORY: _source_for_the_host(spec, context),
            contract.LOG_LEVEL: spec.script.log_level,
            contract.JOB_NAME: context.job_name,
            contract.REGION: context.region,
            **_distribution(spec),
        }
        model_dir = _model_dir(spec, context)
        if model_dir is not None and contract.MODEL_DIR_PARAMETER not in encoded:
            own[contract.MODEL_DIR_PARAMETER] = model_dir
        encoded.update({key: contract.encode(value) for key, value in own.items()})
    return hyperparameters.check_limits(encoded)


def _channels(spec: TrainingJobSpec, context: RenderContext) -> tuple[Channel, ...]:
    """Add the channel of a model to start from, and the one that carries the source to hosts that cannot fetch it."""
    channels = list(spec.channels)
    if spec.model is not None:
        given = TrainingInput(spec.model.uri, content_type=MODEL_CONTENT_TYPE, input_mode="File")
        channels.append(Channel(spec.model.channel_name, given))
    if spec.network.isolation and context.source_uri is not None:
        mode = None if spec.algorithm.input_mode == "File" else "File"
        channels.append(Channel(CODE_CHANNEL, TrainingInput(context.source_uri, input_mode=mode)))
    return tuple(channels)


def _source_for_the_host(spec: TrainingJobSpec, context: RenderContext) -> str | None:
    if not spec.network.isolation or context.source_uri is None:
        return context.source_uri
    return f"{contract.DEFAULT_BASE_DIR}/{contract.DATA_DIR}/{CODE_CHANNEL}/{context.source_uri.rsplit('/', 1)[-1]}"


def _distribution(spec: TrainingJobSpec) -> dict[str, Any]:
    distribution = spec.distribution
    fields: dict[str, Any] = {}
    if isinstance(distribution, ParameterServer):
        fields[contract.PARAMETER_SERVER_ENABLED] = True
        if distribution.coordinator:
            fields[contract.PARAMETER_SERVER_COORDINATOR] = True
        if distribution.chief:
            fields[contract.PARAMETER_SERVER_CHIEF] = True
        fields.update(_roles(distribution, contract.PARAMETER_SERVER_EVALUATOR, contract.PARAMETER_SERVER_ROLES))
    elif isinstance(distribution, MultiWorkerMirrored):
        fields[contract.MULTI_WORKER_MIRRORED_ENABLED] = True
        fields.update(
            _roles(distribution, contract.MULTI_WORKER_MIRRORED_EVALUATOR, contract.MULTI_WORKER_MIRRORED_ROLES)
        )
    elif isinstance(distribution, MPI):
        fields[contract.MPI_ENABLED] = True
        if distribution.processes_per_host is not None:
            fields[contract.MPI_PROCESSES_PER_HOST] = distribution.processes_per_host
        fields[contract.MPI_CUSTOM_OPTIONS] = distribution.custom_mpi_options
        if distribution.bind_gpus:
            fields[contract.MPI_BIND_GPUS] = True
    if distribution is not None and distribution.instance_groups:
        fields[contract.DISTRIBUTION_INSTANCE_GROUPS] = list(distribution.instance_groups)
    return fields


def _roles(distribution: ParameterServer | MultiWorkerMirrored, evaluator: str, roles: str) -> dict[str, Any]:
    """Return the hyperparameters for the evaluator or the roles; images without roles read the groups that train."""
    if not distribution.roles:
        return {evaluator: True} if distribution.evaluator else {}
    named = {role: list(groups) for role, groups in distribution.roles.items()}
    together = [group for groups in named.values() for group in groups]
    return {roles: named, contract.DISTRIBUTION_INSTANCE_GROUPS: together}


def _output_path(spec: TrainingJobSpec) -> str:
    return (spec.output.path or "").rstrip("/")


def _model_dir(spec: TrainingJobSpec, context: RenderContext) -> str | None:
    if isinstance(spec.model_dir, str):
        return spec.model_dir
    if not spec.model_dir:
        return None
    return derived_model_dir(_output_path(spec), context.job_name, with_mpi=isinstance(spec.distribution, MPI))


def derived_model_dir(output_path: str, job_name: str, *, with_mpi: bool) -> str:
    """Return ``--model_dir`` as the TensorFlow estimator gives it: on the host under MPI, else below the output."""
    if with_mpi:
        return f"{contract.DEFAULT_BASE_DIR}/{contract.MODEL_DIR}"
    return f"{output_path}/{job_name}/model"


def _channel(channel: Channel) -> dict[str, Any]:
    source = channel.source
    if isinstance(source, FileSystemInput):
        return {
            "ChannelName": channel.name,
            "DataSource": {
                "FileSystemDataSource": {
                    "FileSystemId": source.file_system_id,
                    "FileSystemType": source.file_system_type,
                    "DirectoryPath": source.directory_path,
                    "FileSystemAccessMode": source.file_system_access_mode,
                }
            },
            "ContentType": source.content_type,
        }
    return _s3_channel(channel.name, source)


def _s3_channel(name: str, source: TrainingInput) -> dict[str, Any]:
    return {
        "ChannelName": name,
        "DataSource": {
            "S3DataSource": {
                "S3DataType": source.s3_data_type,
                "S3Uri": source.s3_data,
                "S3DataDistributionType": source.distribution,
                "AttributeNames": list(source.attribute_names),
                "InstanceGroupNames": list(source.instance_groups),
                "HubAccessConfig": dict(source.hub_access_config or {}),
                "ModelAccessConfig": dict(source.model_access_config or {}),
            }
        },
        "ContentType": source.content_type,
        "CompressionType": source.compression,
        "RecordWrapperType": source.record_wrapping,
        "InputMode": source.input_mode,
        "ShuffleConfig": {"Seed": source.shuffle_config.seed if source.shuffle_config else None},
    }


def _resources(resources: Resources) -> dict[str, Any]:
    return {
        "InstanceCount": None if resources.instance_groups else resources.count,
        "InstanceType": resources.instance_type,
        "InstanceGroups": [
            {
                "InstanceGroupName": group.instance_group_name,
                "InstanceType": group.instance_type,
                "InstanceCount": group.instance_count,
            }
            for group in resources.instance_groups
        ],
        "VolumeSizeInGB": resources.volume_size,
        "VolumeKmsKeyId": resources.volume_kms_key,
        "KeepAlivePeriodInSeconds": resources.keep_alive_period,
        "TrainingPlanArn": resources.training_plan,
        "InstancePlacementConfig": dict(resources.instance_placement or {}),
    }


def _without_empty(value: Mapping[str, Any]) -> dict[str, Any]:
    """Drop members that say nothing: ``None``, empty lists and empty objects, at any depth."""
    kept = {}
    for key, each in value.items():
        if isinstance(each, dict):
            each = _without_empty(each)  # noqa: PLW2901 - the emptied member is what counts
        elif isinstance(each, list):
            each = [_without_empty(item) if isinstance(item, dict) else item for item in each]  # noqa: PLW2901
        if each is not None and each not in ([], {}):
            kept[key] = each
    return kept
