"""The search of tuning jobs on this machine."""

import math
import sys

import pytest

from scriptmode import CategoricalParameter, ContinuousParameter, IntegerParameter, MissingPackageError
from scriptmode._core.spec.tuning_job import TuningJobSpec
from scriptmode_local._tuning.search import Search, require_optuna

SEARCH_RANGES = {
    "lr": ContinuousParameter(1e-5, 1e-1),
    "momentum": ContinuousParameter(0.5, 0.999, "ReverseLogarithmic"),
    "dropout": ContinuousParameter(0.0, 0.5, "Linear"),
    "width": IntegerParameter(1, 1024, "Logarithmic"),
    "layers": IntegerParameter(-1, 3),
    "optimizer": CategoricalParameter(["adam", "sgd"]),
}


def spec(strategy="Bayesian", *, ranges=SEARCH_RANGES, most_values=27, **fields):
    if strategy != "Grid":
        fields = {"max_jobs": 20, **fields}
    if strategy == "Hyperband":
        fields["strategy_config"] = {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": most_values}}
    return TuningJobSpec("loss", ranges, "Minimize", strategy, **fields)


def loss(tuned):
    return abs(math.log10(float(tuned["lr"])) + 3) + abs(float(tuned["dropout"]) - 0.2)


def run(search, jobs):
    """Run training jobs one after the other; return their hyperparameters."""
    found = []
    for number in range(jobs):
        found.append(search.suggest())
        search.finish(number, loss(found[-1]), is_complete=True)
    return found


@pytest.mark.parametrize("strategy", ["Bayesian", "Random", "Hyperband"])
def test_values_are_within_their_ranges_and_differ(strategy):
    found = run(Search("search", spec(strategy), 1), 20)
    for tuned in found:
        assert set(tuned) == set(SEARCH_RANGES)
        assert tuned["optimizer"] in ("adam", "sgd")
        for name, given in SEARCH_RANGES.items():
            if name != "optimizer":
                kind = int if isinstance(given, IntegerParameter) else float
                assert given.min_value <= kind(tuned[name]) <= given.max_value
    assert len({tuned["lr"] for tuned in found}) == 20
    # A logarithmic scale: half of the values are below the middle of the exponents.
    assert 3 <= sum(float(tuned["momentum"]) > 0.95 for tuned in found) <= 17


@pytest.mark.parametrize("strategy", ["Bayesian", "Random", "Hyperband"])
def test_a_restored_search_goes_on_as_the_first_would_have(strategy):
    whole = run(Search("search", spec(strategy), 5), 15)
    restored = Search("search", spec(strategy), 5)
    for number, tuned in enumerate(whole[:9]):
        assert restored.restore(tuned) == tuned
        restored.finish(number, loss(tuned), is_complete=True)
    # But for the rounding of a value that is 1 less another.
    assert {**restored.suggest(), "momentum": ""} == {**whole[9], "momentum": ""}


def test_bayesian_search_learns_from_its_training_jobs():
    found = [loss(tuned) for tuned in run(Search("search", spec(max_jobs=40, random_seed=1), 1), 40)]
    assert sum(found[30:]) / 10 < sum(found[:10]) / 10
    assert min(found) < 0.5


def test_a_grid_has_each_combination_once_and_goes_on_where_it_was():
    given = spec("Grid", ranges={"a": CategoricalParameter(["1", "2", "3"]), "b": CategoricalParameter(["x", "y"])})
    assert given.jobs == 6
    search = Search("search", given, 1)
    found = [search.suggest() for _ in range(6)]
    assert len({tuple(tuned.values()) for tuned in found}) == 6
    again = Search("search", given, 1)
    again.restore(found[0])
    assert again.suggest() == found[1]


def test_hyperband_stops_the_worse_training_jobs_early():
    search = Search("search", spec("Hyperband", most_values=9, max_jobs=30), 1)
    stops = []
    for number in range(30):
        search.suggest()
        stops.append(next((step for step in range(1, 10) if search.report(number, [number % 10])), None))
        search.finish(number, number % 10, is_complete=stops[-1] is None)
    assert None in stops
    assert any(step is not None and step < 9 for step in stops)


def test_hyperband_stops_a_training_job_that_goes_on_after_the_greatest_number_of_values():
    search = Search("search", spec("Hyperband", most_values=3), 1)
    search.suggest()
    assert [search.report(0, [1.0 - step]) for step in range(4)] == [False, False, False, True]


def test_a_search_goes_on_after_failed_training_jobs_and_values_that_are_not_finite():
    search = Search("search", spec(early_stopping="Auto"), 1)
    for number, value in enumerate((None, float("nan"), float("inf"), 0.1)):
        search.suggest()
        search.report(number, [float("nan"), 0.2])
        search.finish(number, value, is_complete=True)
    assert search.suggest()


def test_optuna_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingPackageError, match=r"needs Optuna, which is not installed; pip install .*\[tuner\]"):
        require_optuna()
