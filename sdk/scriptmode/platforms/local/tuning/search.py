"""The search of a tuning job: which values to try next, and which training jobs to stop early. By Optuna.

Optuna's study is in memory. It is built from the record of the tuning job when the agent starts, so that the record
alone is kept, and any version of Optuna can continue it. Each suggestion has a random generator of its own, seeded by
the tuning job's seed and the training job's number: a resumed search does not repeat its first values.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from scriptmode.core.machine.installation import install_command
from scriptmode.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: With scaling type Auto, positive values are searched on a logarithmic scale from this ratio of the bounds on.
_WIDE_RATIO = 100.0
#: Training jobs with random values, before which Bayesian search has nothing to learn from, and before which the median
#: says little. Optuna's defaults, 10 and 5, are too many for a tuning job of ten training jobs.
_MOST_RANDOM_JOBS, _MOST_UNSTOPPED_JOBS = 10, 5


def require_optuna() -> None:
    """Raise `MissingPackageError` where Optuna is not installed."""
    import importlib.util

    if importlib.util.find_spec("optuna") is None:
        raise MissingPackageError(
            "tuning jobs on this machine need Optuna, which is not installed", advice=f"use {install_command('tuner')}"
        )


class _Range:
    """One range of the request: its distribution in Optuna, and its values as texts of the request."""

    def __init__(self, kind: str, fields: Mapping[str, Any]) -> None:
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        self.name: str = fields["Name"]
        self._is_reversed = fields.get("ScalingType") == "ReverseLogarithmic"
        self._is_categorical = kind == "CategoricalParameterRanges"
        self._is_integer = kind == "IntegerParameterRanges"
        if self._is_categorical:
            self.values: tuple[str, ...] = tuple(fields["Values"])
            self.distribution: Any = CategoricalDistribution(self.values)
            return
        low, high = float(fields["MinValue"]), float(fields["MaxValue"])
        scaling = fields.get("ScalingType", "Auto")
        is_log = scaling == "Logarithmic" or (scaling == "Auto" and low > 0 and high / low >= _WIDE_RATIO)
        if self._is_integer:
            self.distribution = IntDistribution(int(fields["MinValue"]), int(fields["MaxValue"]), log=is_log)
        elif self._is_reversed:
            # The distance from 1 is searched on a logarithmic scale.
            self.distribution = FloatDistribution(1 - high, 1 - low, log=True)
        else:
            self.distribution = FloatDistribution(low, high, log=is_log)

    def encode(self, value: Any) -> str:
        if self._is_categorical:
            return str(value)
        return str(int(value)) if self._is_integer else repr(1 - value if self._is_reversed else float(value))

    def decode(self, text: str) -> Any:
        if self._is_categorical:
            return text
        number = int(text) if self._is_integer else float(text)
        # Rounding of the difference may leave the range.
        return min(max(1 - number, self.distribution.low), self.distribution.high) if self._is_reversed else number


class Search:
    """The search of one tuning job.

    Training jobs are numbered in the order of their suggestions; `restore` comes before `suggest`.
    ``config`` is the HyperParameterTuningJobConfig; ``seed`` is that of the random numbers, where the request has none.
    ``max_resource`` is Hyperband's: a training job that logs more values of the objective is stopped.
    """

    def __init__(self, name: str, config: Mapping[str, Any], seed: int, *, max_resource: int | None = None) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna = optuna
        self._strategy: str = config["Strategy"]
        self._seed = config.get("RandomSeed", seed)
        self._ranges = [_Range(kind, each) for kind, found in config["ParameterRanges"].items() for each in found]
        self._is_grid = self._strategy == "Grid"
        self._grid_size = math.prod(len(each.values) for each in self._ranges) if self._is_grid else 0
        limits = config["ResourceLimits"]
        self.most_jobs: int = limits.get("MaxNumberOfTrainingJobs") or self._grid_size
        self._sign = 1 if config["HyperParameterTuningJobObjective"]["Type"] == "Maximize" else -1
        self._most_values = max_resource if max_resource and self._strategy == "Hyperband" else math.inf
        pruner = self._create_pruner(config)
        #: Whether training jobs may be stopped early, so that their values are needed as they come.
        self.stops_early = pruner is not None
        self._study = optuna.create_study(
            # Hyperband deals the training jobs to its brackets by the study's name.
            study_name=name,
            direction="maximize",
            sampler=optuna.samplers.RandomSampler(seed=0),
            pruner=pruner or optuna.pruners.NopPruner(),
        )
        self._trials: dict[int, Any] = {}
        self._steps: dict[int, int] = {}

    @property
    def count(self) -> int:
        """The number of training jobs."""
        return len(self._trials)

    @property
    def is_exhausted(self) -> bool:
        """Whether a grid has no more values."""
        return self._is_grid and self.count >= self._grid_size

    def _create_pruner(self, config: Mapping[str, Any]) -> Any:
        pruners = self._optuna.pruners
        if self._strategy == "Hyperband":
            given = config.get("StrategyConfig", {}).get("HyperbandStrategyConfig", {})
            most = "auto" if math.isinf(self._most_values) else self._most_values
            return pruners.HyperbandPruner(min_resource=given.get("MinResource", 1), max_resource=most)
        if config.get("TrainingJobEarlyStoppingType") == "Auto":
            first = min(_MOST_UNSTOPPED_JOBS, max(1, self.most_jobs // 4))
            return pruners.MedianPruner(n_startup_trials=first, n_warmup_steps=1)
        return None

    def _create_sampler(self, number: int) -> Any:
        samplers = self._optuna.samplers
        seed = (self._seed * 1_000_003 + number) % 2**32
        if self._strategy in ("Random", "Grid"):
            return samplers.RandomSampler(seed=seed)
        first = min(_MOST_RANDOM_JOBS, max(2, self.most_jobs // 3))
        # The running training jobs count as bad ones, so that parallel ones differ.
        return samplers.TPESampler(seed=seed, n_startup_trials=first, constant_liar=True)

    def suggest(self, number: int) -> dict[str, str]:
        """Return the hyperparameters of the next training job, by name, as the request has them."""
        if self._is_grid:
            # A list of all combinations may exceed any memory.
            combinations = itertools.product(*(each.values for each in self._ranges))
            values = next(itertools.islice(combinations, self.count, None))
            return self.restore(number, dict(zip((each.name for each in self._ranges), values)))
        self._study.sampler = self._create_sampler(number)
        return self._ask(number)

    def restore(self, number: int, tuned: Mapping[str, str]) -> dict[str, str]:
        """Add a training job whose hyperparameters are known, in the order of the numbers."""
        known = {each.name: each.decode(tuned[each.name]) for each in self._ranges}
        self._study.enqueue_trial(known)
        self._ask(number)
        return dict(tuned)

    def _ask(self, number: int) -> dict[str, str]:
        trial = self._study.ask({each.name: each.distribution for each in self._ranges})
        self._trials[number], self._steps[number] = trial, 0
        return {each.name: each.encode(trial.params[each.name]) for each in self._ranges}

    def report(self, number: int, values: Sequence[float]) -> bool:
        """Add values of the objective of a running training job; return whether to stop it early."""
        trial, is_bad = self._trials[number], False
        for value in values:
            self._steps[number] += 1
            if math.isfinite(value):
                trial.report(self._sign * value, self._steps[number])
                is_bad = is_bad or trial.should_prune()
        return is_bad or self._steps[number] > self._most_values

    def finish(self, number: int, value: float | None, *, is_complete: bool) -> None:
        """Add the outcome of a training job: its objective, ``None`` for one that failed or printed none.

        ``is_complete``: the training job was not stopped before its end, so that its objective is its last word.
        """
        states = self._optuna.trial.TrialState
        if value is None or not math.isfinite(value):
            self._study.tell(self._trials[number], state=states.FAIL)
        elif is_complete or self._steps[number] >= self._most_values:
            self._study.tell(self._trials[number], self._sign * value)
        else:
            self._study.tell(self._trials[number], state=states.PRUNED)
