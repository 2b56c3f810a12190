"""Configurations of tuning jobs that Amazon SageMaker executes, with the classes of the SageMaker SDK v2. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from scriptmode.errors import invalid


class WarmStartTypes(Enum):
    """What a tuning job has in common with the earlier ones that it starts from."""

    IDENTICAL_DATA_AND_ALGORITHM = "IdenticalDataAndAlgorithm"
    TRANSFER_LEARNING = "TransferLearning"


@dataclass(frozen=True)
class WarmStartConfig:
    """Earlier tuning jobs whose training jobs a new one learns from.

    Args:
        warm_start_type: A `WarmStartTypes`.
        parents: Names of one to five tuning jobs.

    Raises:
        SpecError: An argument is wrong.
    """

    warm_start_type: WarmStartTypes
    parents: Collection[str]

    def __post_init__(self) -> None:
        if not isinstance(self.warm_start_type, WarmStartTypes):
            advice = f"give one of {', '.join(f'WarmStartTypes.{each.name}' for each in WarmStartTypes)}"
            raise invalid("warm_start_type", f"is {self.warm_start_type!r}", advice)
        given: Any = self.parents
        names = () if isinstance(given, str) or not isinstance(given, Collection) else tuple(given)
        if not names or not all(isinstance(name, str) for name in names):
            raise invalid("parents", f"is {given!r}", "give a set of the names of tuning jobs")
        object.__setattr__(self, "parents", frozenset(names))

    @property
    def type(self) -> WarmStartTypes:
        """The type, under the attribute's name of the SageMaker SDK."""
        return self.warm_start_type

    def to_input_req(self) -> dict[str, Any]:
        """Return the service's WarmStartConfig."""
        parents = [{"HyperParameterTuningJobName": name} for name in sorted(self.parents)]
        return {"WarmStartType": self.warm_start_type.value, "ParentHyperParameterTuningJobs": parents}


@dataclass(frozen=True)
class TuningJobCompletionCriteriaConfig:
    """Conditions that end a tuning job before its limits.

    Args:
        max_number_of_training_jobs_not_improving: Number of training jobs without a better objective, at least 3.
        complete_on_convergence: Whether it ends where the service expects no better objective.
        target_objective_metric_value: Value of the objective that is good enough.
    """

    max_number_of_training_jobs_not_improving: int | None = None
    complete_on_convergence: bool | None = None
    target_objective_metric_value: float | None = None

    def to_input_req(self) -> dict[str, Any]:
        """Return the service's TuningJobCompletionCriteria."""
        found: dict[str, Any] = {}
        if self.max_number_of_training_jobs_not_improving is not None:
            number = self.max_number_of_training_jobs_not_improving
            found["BestObjectiveNotImproving"] = {"MaxNumberOfTrainingJobsNotImproving": number}
        if self.target_objective_metric_value is not None:
            found["TargetObjectiveMetricValue"] = self.target_objective_metric_value
        if self.complete_on_convergence is not None:
            mode = "Enabled" if self.complete_on_convergence else "Disabled"
            found["ConvergenceDetected"] = {"CompleteOnConvergence": mode}
        return found


@dataclass(frozen=True)
class InstanceConfig:
    """Hosts of the training jobs of a tuning job, one of several kinds that the service may use.

    Args:
        instance_count: Number of hosts.
        instance_type: An instance type of Amazon SageMaker.
        volume_size: Size of each host's storage volume in GB.
    """

    instance_count: int | None = None
    instance_type: str | None = None
    volume_size: int = 30

    def to_input_req(self) -> dict[str, Any]:
        """Return the service's HyperParameterTuningInstanceConfig."""
        return {
            "InstanceCount": self.instance_count,
            "InstanceType": self.instance_type,
            "VolumeSizeInGB": self.volume_size,
        }


@dataclass(frozen=True)
class HyperbandStrategyConfig:
    """Bounds of Hyperband: how many values of the objective a training job logs.

    Args:
        max_resource: The greatest number.
        min_resource: The least number, after which a training job may be stopped.
    """

    max_resource: int
    min_resource: int

    def to_input_req(self) -> dict[str, Any]:
        """Return the service's HyperbandStrategyConfig."""
        return {"MinResource": self.min_resource, "MaxResource": self.max_resource}


@dataclass(frozen=True)
class StrategyConfig:
    """The configuration of a strategy.

    Args:
        hyperband_strategy_config: That of Hyperband.
    """

    hyperband_strategy_config: HyperbandStrategyConfig

    def to_input_req(self) -> dict[str, Any]:
        """Return the service's StrategyConfig."""
        return {"HyperbandStrategyConfig": self.hyperband_strategy_config.to_input_req()}


def parse_configuration(argument: str, given: Any) -> dict[str, Any]:
    """Return the service's dict of a configuration: one of these classes, one of the SageMaker SDK v2's, or a dict."""
    found = given.to_input_req() if hasattr(given, "to_input_req") else given
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise invalid(argument, f"is {given!r}", "give the class of that name, or the service's dict")
    return dict(found)


def parse_instance_configs(given: Any) -> tuple[dict[str, Any], ...] | None:
    """Return the service's InstanceConfigs, in the order of preference; ``None`` for the estimator's own hosts."""
    argument = "instance_configs"
    if given is None:
        return None
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise invalid(argument, f"is {given!r}", "give a list of InstanceConfig")
    found = tuple(parse_configuration(argument, each) for each in given)
    if not found:
        raise invalid(argument, "is empty", "give a list of InstanceConfig, or None for the estimator's hosts")
    return found
