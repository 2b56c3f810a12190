"""Configurations of tuning jobs under the names of the SageMaker SDK v2: each returns the service's dict. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from scriptmode.errors import invalid


class WarmStartTypes(Enum):
    """What a tuning job has in common with the earlier ones that it starts from."""

    IDENTICAL_DATA_AND_ALGORITHM = "IdenticalDataAndAlgorithm"
    TRANSFER_LEARNING = "TransferLearning"


def WarmStartConfig(warm_start_type: WarmStartTypes, parents: Iterable[str]) -> dict[str, object]:  # noqa: N802
    """Return the service's WarmStartConfig: earlier tuning jobs whose training jobs a new one learns from.

    Args:
        warm_start_type: A `WarmStartTypes`.
        parents: A set of the names of one to five tuning jobs.
    """
    if isinstance(parents, str):
        raise invalid("parents", f"is {parents!r}", "give a set of the names of tuning jobs")
    earlier = [{"HyperParameterTuningJobName": name} for name in sorted(parents)]
    return {"WarmStartType": WarmStartTypes(warm_start_type).value, "ParentHyperParameterTuningJobs": earlier}


def TuningJobCompletionCriteriaConfig(  # noqa: N802
    max_number_of_training_jobs_not_improving: int | None = None,
    complete_on_convergence: bool | None = None,  # noqa: FBT001 - the order of the SageMaker SDK
    target_objective_metric_value: float | None = None,
) -> dict[str, object]:
    """Return the service's TuningJobCompletionCriteria: conditions that end a tuning job before its limits.

    Args:
        max_number_of_training_jobs_not_improving: Number of training jobs without a better objective, at least 3.
        complete_on_convergence: Whether it ends where the service expects no better objective.
        target_objective_metric_value: Value of the objective that is good enough.
    """
    config: dict[str, object] = {}
    if max_number_of_training_jobs_not_improving is not None:
        number = max_number_of_training_jobs_not_improving
        config["BestObjectiveNotImproving"] = {"MaxNumberOfTrainingJobsNotImproving": number}
    if target_objective_metric_value is not None:
        config["TargetObjectiveMetricValue"] = target_objective_metric_value
    if complete_on_convergence is not None:
        config["ConvergenceDetected"] = {"CompleteOnConvergence": "Enabled" if complete_on_convergence else "Disabled"}
    return config


def InstanceConfig(  # noqa: N802
    instance_count: int | None = None, instance_type: str | None = None, volume_size: int = 30
) -> dict[str, object]:
    """Return the service's HyperParameterTuningInstanceConfig: one of several kinds of hosts that it may use.

    Args:
        instance_count: Number of hosts.
        instance_type: An instance type of Amazon SageMaker.
        volume_size: Size of each host's storage volume in GB.
    """
    return {"InstanceCount": instance_count, "InstanceType": instance_type, "VolumeSizeInGB": volume_size}


def HyperbandStrategyConfig(max_resource: int, min_resource: int) -> dict[str, object]:  # noqa: N802
    """Return the service's HyperbandStrategyConfig: how many values of the objective a training job logs."""
    return {"MinResource": min_resource, "MaxResource": max_resource}


def StrategyConfig(hyperband_strategy_config: Mapping[str, object]) -> dict[str, object]:  # noqa: N802
    """Return the service's StrategyConfig with that of Hyperband."""
    return {"HyperbandStrategyConfig": dict(hyperband_strategy_config)}


def parse_configuration(argument: str, given: object) -> dict[str, object]:
    """Return the service's dict of a configuration: such a dict, or an object of the SageMaker SDK v2."""
    config = given.to_input_req() if hasattr(given, "to_input_req") else given
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise invalid(argument, f"is {given!r}", f"give what scriptmode's function for {argument} returns")
    return dict(config)


def parse_instance_configs(given: object) -> tuple[dict[str, object], ...] | None:
    """Return the service's InstanceConfigs, in the order of preference; ``None`` for the estimator's own hosts."""
    if given is None:
        return None
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable) or not (entries := tuple(given)):
        raise invalid("instance_configs", f"is {given!r}", "give a list of InstanceConfig")
    return tuple(parse_configuration("instance_configs", entry) for entry in entries)
