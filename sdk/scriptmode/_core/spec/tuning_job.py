"""One tuning job as a value: the search, its objective and its limits, validated when it is created. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.names import check_job_name, mended
from scriptmode._core.spec.parameter_ranges import ParameterRange, check_ranges, grid_size
from scriptmode._core.spec.whole_numbers import set_truth, set_whole, whole_number
from scriptmode.errors import invalid

if TYPE_CHECKING:
    from datetime import datetime


#: The limit of CreateHyperParameterTuningJob: the names of its training jobs continue it.
TUNING_NAME_LIMIT = 32


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
        set_truth(self, "autotune", "autotune")
        if self.kept_static and not self.autotune:
            what = f"is {list(self.kept_static)!r}, but autotune is False"
            raise invalid("hyperparameters_to_keep_static", what, "set autotune=True")
        is_chosen = self.autotune and not self.ranges
        object.__setattr__(self, "ranges", {} if is_chosen else check_ranges(self.ranges))
        self._set_counts()
        object.__setattr__(self, "strategy_config", _check_strategy_config(self.strategy, self.strategy_config))
        if self.strategy == "Hyperband" and self.early_stopping != "Off":
            what = f"is {self.early_stopping!r}, but strategy 'Hyperband' stops training jobs by its own rule"
            raise invalid("early_stopping_type", what, "leave it out")

    @property
    def jobs(self) -> int:
        """The number of training jobs: those of a grid are all its combinations."""
        return self.max_jobs or grid_size(self.ranges)

    def _set_counts(self) -> None:
        """Validate the numbers, and fill in the number of training jobs."""
        grid = grid_size(self.ranges) if self.strategy == "Grid" else None
        jobs = (grid or 1) if self.max_jobs is None else whole_number("max_jobs", self.max_jobs, 1)
        if grid is not None and jobs != grid:
            raise invalid("max_jobs", f"is {jobs}, but the grid has {grid} combinations", "leave it out for all")
        parallel = whole_number("max_parallel_jobs", self.max_parallel_jobs, 1)
        if parallel > jobs and grid is None:
            what = f"is {parallel}, which is more than max_jobs, {jobs}"
            raise invalid("max_parallel_jobs", what, f"give 1 to {jobs}, or more max_jobs")
        object.__setattr__(self, "max_jobs", None if grid is not None else jobs)
        object.__setattr__(self, "max_parallel_jobs", parallel)
        set_whole(self, "random_seed", "random_seed", 0, optional=True)
        # The service's model has the least and the most.
        set_whole(self, "max_runtime", "max_runtime_in_seconds", 1, optional=True)


def _check_strategy_config(strategy: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the service's StrategyConfig without values that are ``None``; raise `SpecError` for another value."""
    argument = "strategy_config"
    if given and strategy != "Hyperband":
        raise invalid(argument, f"is {given!r}, but strategy is {strategy!r}", "leave it out, or use 'Hyperband'")
    resources = given.get("HyperbandStrategyConfig", {})
    if given.keys() - {"HyperbandStrategyConfig"} or not isinstance(resources, dict):
        raise invalid(argument, f"is {given!r}", 'give {"HyperbandStrategyConfig": {"MaxResource": 20}}')
    checked = {name: whole_number(argument, value, 1) for name, value in resources.items() if value is not None}
    if checked.get("MinResource", 0) >= checked.get("MaxResource", math.inf):
        raise invalid(argument, f"is {given!r}", "give a MinResource that is less than MaxResource")
    return {**given, "HyperbandStrategyConfig": checked} if given else {}


def tuning_job_name(base: str, moment: datetime) -> str:
    """Return a tuning job's name: ``base`` and the UTC time in seconds, at most 32 characters, the service's limit."""
    stamp = moment.strftime("%y%m%d-%H%M%S")
    head = re.sub(r"[^a-zA-Z0-9]+", "-", base).strip("-")[: TUNING_NAME_LIMIT - len(stamp) - 1].rstrip("-")
    return f"{head or 'tuning'}-{stamp}"


def check_tuning_job_name(name: str) -> str:
    """Return a tuning job's name that the service accepts; raise `SpecError` for another."""
    if check_job_name(name) and len(name) > TUNING_NAME_LIMIT:
        what = f"{name!r} has {len(name)} characters"
        step = f"names of tuning jobs have at most {TUNING_NAME_LIMIT}: write {mended(name[:TUNING_NAME_LIMIT])!r}"
        raise invalid("job_name", what, step)
    return name


def base_of_tuning_job(name: str) -> str:
    """Return the base of a tuning job's name; a name of another form is its own base."""
    return re.sub(r"-\d{6}-\d{4,6}(-\d+)?$", "", name)
