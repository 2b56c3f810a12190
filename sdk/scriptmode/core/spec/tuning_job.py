"""One tuning job as a value: the search, its objective and its limits, validated when it is created. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scriptmode.core.spec.parameter_ranges import check_ranges, grid_size
from scriptmode.core.spec.training_job import require_bool
from scriptmode.core.spec.whole_numbers import set_whole, whole_number
from scriptmode.core.text.messages import did_you_mean
from scriptmode.errors import SpecError, invalid

if TYPE_CHECKING:
    from scriptmode.core.spec.parameter_ranges import ParameterRange

STRATEGIES = ("Bayesian", "Random", "Grid", "Hyperband")
OBJECTIVE_TYPES = ("Maximize", "Minimize")
EARLY_STOPPING_TYPES = ("Off", "Auto")
#: The service's range of MaxRuntimeInSeconds, in seconds.
_LEAST_RUNTIME, _MOST_RUNTIME = 120, 15768000
_HYPERBAND = "HyperbandStrategyConfig"
_RESOURCES = ("MinResource", "MaxResource")


@dataclass(frozen=True)
class TuningJobSpec:
    """What a tuning job searches, for which objective, and within which limits.

    Attributes:
        max_jobs: Number of training jobs; ``None`` for a grid is all its combinations.
        max_runtime: Seconds after which the tuning job ends.
        strategy_config: The service's StrategyConfig.
        warm_start: The service's WarmStartConfig; empty for none, as the next.
        completion_criteria: The service's TuningJobCompletionCriteria.
        autotune: Whether the service chooses the ranges of other hyperparameters.
        kept_static: Names of hyperparameters that the service does not choose then.
    """

    objective: str
    ranges: dict[str, ParameterRange]
    objective_type: str = "Maximize"
    strategy: str = "Bayesian"
    max_jobs: int | None = None
    max_parallel_jobs: int = 1
    early_stopping: str = "Off"
    random_seed: int | None = None
    max_runtime: int | None = None
    strategy_config: dict[str, Any] = field(default_factory=dict)
    warm_start: dict[str, Any] = field(default_factory=dict)
    completion_criteria: dict[str, Any] = field(default_factory=dict)
    autotune: bool = False
    kept_static: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.objective, str) or not self.objective:
            raise invalid("objective_metric_name", f"is {self.objective!r}", "give a metric's name, such as 'accuracy'")
        _choice("strategy", self.strategy, STRATEGIES)
        _choice("objective_type", self.objective_type, OBJECTIVE_TYPES)
        _choice("early_stopping_type", self.early_stopping, EARLY_STOPPING_TYPES)
        self._check_autotune()
        is_chosen = self.autotune and not self.ranges
        object.__setattr__(self, "ranges", {} if is_chosen else check_ranges(self.ranges))
        self._set_counts()
        object.__setattr__(self, "strategy_config", _strategy_config(self.strategy, self.strategy_config))
        if self.strategy == "Hyperband" and self.early_stopping != "Off":
            what = f"is {self.early_stopping!r}, but strategy 'Hyperband' stops training jobs by its own rule"
            raise invalid("early_stopping_type", what, "leave it out")

    @property
    def jobs(self) -> int:
        """The number of training jobs: those of a grid are all its combinations."""
        return self.max_jobs or grid_size(self.ranges)

    def _check_autotune(self) -> None:
        require_bool("autotune", self.autotune)
        argument = "hyperparameters_to_keep_static"
        if self.kept_static and not self.autotune:
            raise invalid(argument, f"is {list(self.kept_static)!r}, but autotune is False", "set autotune=True")
        if len(set(self.kept_static)) < len(self.kept_static):
            raise invalid(argument, f"is {list(self.kept_static)!r}, which has a name twice", "keep one")

    def _set_counts(self) -> None:
        """Validate the numbers, and fill in the number of training jobs."""
        grid = grid_size(self.ranges) if self.strategy == "Grid" else None
        jobs = (grid or 1) if self.max_jobs is None else whole_number("max_jobs", self.max_jobs, 1)
        if grid is not None and jobs != grid:
            raise invalid("max_jobs", f"is {jobs}, but the grid has {grid} combinations", "leave it out for all")
        parallel = whole_number("max_parallel_jobs", self.max_parallel_jobs, 1)
        if parallel > jobs:
            what = f"is {parallel}, which is more than max_jobs, {jobs}"
            raise invalid("max_parallel_jobs", what, f"give 1 to {jobs}, or more max_jobs")
        object.__setattr__(self, "max_jobs", None if grid is not None else jobs)
        object.__setattr__(self, "max_parallel_jobs", parallel)
        set_whole(self, "random_seed", "random_seed", 0, optional=True)
        set_whole(self, "max_runtime", "max_runtime_in_seconds", _LEAST_RUNTIME, optional=True)
        if self.max_runtime is not None and self.max_runtime > _MOST_RUNTIME:
            raise invalid("max_runtime_in_seconds", f"is {self.max_runtime}", f"give at most {_MOST_RUNTIME}")


def _choice(argument: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        advice = did_you_mean(str(value), allowed) if isinstance(value, str) else ""
        raise invalid(argument, f"is {value!r}", advice or f"give one of {', '.join(allowed)}")


def _strategy_config(strategy: str, given: Any) -> dict[str, Any]:
    """Return the service's StrategyConfig; objects of the SageMaker SDK v2 are converted."""
    argument = "strategy_config"
    if hasattr(given, "to_input_req"):
        given = given.to_input_req()
    if not given:
        return {}
    example = '{"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 27}}'
    if strategy != "Hyperband":
        raise invalid(argument, f"is {given!r}, but strategy is {strategy!r}", "leave it out, or use 'Hyperband'")
    inner = given.get(_HYPERBAND) if isinstance(given, dict) else None
    if not isinstance(inner, dict) or set(given) != {_HYPERBAND} or not set(inner) <= set(_RESOURCES):
        raise invalid(argument, f"is {given!r}", f"give {example}")
    values = {key: whole_number(f"{argument}[{key!r}]", value, 1) for key, value in inner.items() if value is not None}
    least, most = (values.get(key) for key in _RESOURCES)
    if least is not None and most is not None and least >= most:
        what = f"{argument} has MinResource {least}, which is not less than MaxResource, {most}"
        raise SpecError(what, f"give for example {example}", argument=argument)
    return {_HYPERBAND: values}
