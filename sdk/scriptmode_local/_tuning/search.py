"""The search of a tuning job: which values to try next, and which training jobs to stop early. By Optuna.

Optuna's study is in memory. It is built from the record of the tuning job when the agent starts, so that the record
alone is kept, and any version of Optuna can continue it. Each suggestion has a random generator of its own, seeded by
the tuning job's seed and the training job's number: a resumed search does not repeat its first values.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scriptmode._core.machine.installation import install_command, missing_package
from scriptmode._core.spec.parameter_ranges import CategoricalParameter, IntegerParameter, ParameterRange

if TYPE_CHECKING:
    from scriptmode._core.spec.tuning_job import TuningJobSpec

#: With scaling type Auto, positive values are searched on a logarithmic scale from this ratio of the bounds on.
_WIDE_RATIO = 100.0
#: Training jobs with random values, before which Bayesian search has nothing to learn from, and before which the median
#: says little. Optuna's defaults, 10 and 5, are too many for a tuning job of ten training jobs.
_MOST_RANDOM_JOBS, _MOST_UNSTOPPED_JOBS = 10, 5


def require_optuna() -> None:
    """Raise `MissingPackageError` where Optuna is not installed."""
    import importlib.util

    if importlib.util.find_spec("optuna") is None:
        raise missing_package("a tuning job on this machine", "Optuna", command=install_command("tuner"))


class _Range:
    """One range: its distribution in Optuna, and its values as texts of the request."""

    def __init__(self, given: ParameterRange) -> None:
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        self._is_reversed = False
        self._parse: Callable[[str], Any] = str
        self.distribution: Any
        if isinstance(given, CategoricalParameter):
            self.distribution = CategoricalDistribution(given.values)
            return
        low, high, scaling = given.min_value, given.max_value, given.scaling_type
        is_log = scaling == "Logarithmic" or (scaling == "Auto" and low > 0 and high / low >= _WIDE_RATIO)
        self._parse = float
        if isinstance(given, IntegerParameter):
            self._parse, self.distribution = int, IntDistribution(int(low), int(high), log=is_log)
        elif scaling == "ReverseLogarithmic":
            # The distance from 1 is searched on a logarithmic scale.
            self._is_reversed, self.distribution = True, FloatDistribution(1 - high, 1 - low, log=True)
        else:
            self.distribution = FloatDistribution(low, high, log=is_log)

    def encode(self, value: Any) -> str:
        return str(1 - value if self._is_reversed else value)

    def decode(self, text: str) -> Any:
        value = self._parse(text)
        # Rounding of the difference may leave the range.
        return min(max(1 - value, self.distribution.low), self.distribution.high) if self._is_reversed else value


class Search:
    """The search of one tuning job.

    Training jobs are numbered from 0 in the order of their suggestions; `restore` comes before `suggest`. The values of
    categorical parameters are texts of the request; ``seed`` is that of the random numbers, where ``spec`` has none.
    """

    def __init__(self, name: str, spec: TuningJobSpec, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna, self._spec = optuna, spec
        self._seed = seed if spec.random_seed is None else spec.random_seed
        self._ranges = {name: _Range(given) for name, given in spec.ranges.items()}
        self._sign = 1 if spec.objective_type == "Maximize" else -1
        self._resources = spec.strategy_config.get("HyperbandStrategyConfig", {})
        #: A training job that logs more values of the objective is stopped.
        self._most_values = self._resources.get("MaxResource", math.inf)
        pruner = self._create_pruner()
        #: Whether training jobs may be stopped early, so that their values are needed as they come.
        self.stops_early = pruner is not None
        self._study = optuna.create_study(
            # Hyperband deals the training jobs to its brackets by the study's name.
            study_name=name,
            direction="maximize",
            sampler=optuna.samplers.RandomSampler(seed=0),
            pruner=pruner or optuna.pruners.NopPruner(),
        )
        self._trials: list[Any] = []
        self._steps: Counter[int] = Counter()

    def _create_pruner(self) -> Any:
        pruners, spec = self._optuna.pruners, self._spec
        if spec.strategy == "Hyperband":
            least = self._resources.get("MinResource", 1)
            return pruners.HyperbandPruner(min_resource=least, max_resource=self._most_values)
        if spec.early_stopping == "Auto":
            first = min(_MOST_UNSTOPPED_JOBS, max(1, spec.jobs // 4))
            return pruners.MedianPruner(n_startup_trials=first, n_warmup_steps=1)
        return None

    def _create_sampler(self, number: int) -> Any:
        samplers = self._optuna.samplers
        seed = (self._seed * 1_000_003 + number) % 2**32
        if self._spec.strategy == "Random":
            return samplers.RandomSampler(seed=seed)
        first = min(_MOST_RANDOM_JOBS, max(2, self._spec.jobs // 3))
        # The running training jobs count as bad ones, so that parallel ones differ.
        return samplers.TPESampler(seed=seed, n_startup_trials=first, constant_liar=True)

    def suggest(self) -> dict[str, str]:
        """Return the hyperparameters of the next training job, by name, as the request has them."""
        if self._spec.strategy == "Grid":
            combinations = itertools.product(*(parameter.distribution.choices for parameter in self._ranges.values()))
            values = next(itertools.islice(combinations, len(self._trials), None))
            return self.restore(dict(zip(self._ranges, values)))
        self._study.sampler = self._create_sampler(len(self._trials))
        return self._ask()

    def restore(self, tuned: Mapping[str, str]) -> dict[str, str]:
        """Add a training job whose hyperparameters are known, in the order of the numbers."""
        self._study.enqueue_trial({name: parameter.decode(tuned[name]) for name, parameter in self._ranges.items()})
        self._ask()
        return dict(tuned)

    def _ask(self) -> dict[str, str]:
        trial = self._study.ask({name: parameter.distribution for name, parameter in self._ranges.items()})
        self._trials.append(trial)
        return {name: parameter.encode(trial.params[name]) for name, parameter in self._ranges.items()}

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
