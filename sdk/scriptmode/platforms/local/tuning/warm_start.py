"""Warm start: what a tuning job learns from earlier ones, its parents, and the rules for both. Pure.

The rules are those of "Run a Warm Start Hyperparameter Tuning Job" in Amazon SageMaker's developer guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.core.request import tuning
from scriptmode.core.spec.service_values import COMPLETED
from scriptmode.core.text.messages import Problem
from scriptmode.platforms.local.tuning.tuning_store import Parent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scriptmode.platforms.local.tuning.tuning_store import TuningRecord, TuningState

_ARGUMENT = "warm_start_config"
#: The most changes: one for each value of a range that became static, two for each static value that differs.
_MOST_CHANGES = 10


def parent_names(request: Mapping[str, Any]) -> list[str]:
    """Return the names of the tuning jobs from which a request starts."""
    parents = request.get("WarmStartConfig", {}).get("ParentHyperParameterTuningJobs", ())
    return [each["HyperParameterTuningJobName"] for each in parents]


def as_parent(record: TuningRecord, state: TuningState) -> Parent:
    """Return what a tuning job that starts from another one keeps of it."""
    (definition,) = tuning.definitions_of(record.request)
    found = [each for each in state.launched if each.objective_status == "Succeeded"]
    name = record.request["HyperParameterTuningJobName"]
    return Parent(name, record.training_arn, dict(definition.get("StaticHyperParameters", {})), found)


def observations(parents: Sequence[Parent]) -> list[tuple[dict[str, str], float]]:
    """Return the hyperparameters and the objective of each training job of the parents that was not stopped."""
    return [
        ({**parent.static, **trial.tuned}, trial.objective)
        for parent in parents
        for trial in parent.trials
        if trial.status == COMPLETED and trial.objective is not None
    ]


def problems(request: Mapping[str, Any], parents: Sequence[tuple[TuningRecord, TuningState]]) -> Iterator[Problem]:
    """Yield the rules that a request and its parents do not meet."""
    requests = [request, *(record.request for record, _ in parents)]
    if parents and any(len(tuning.definitions_of(each)) > 1 for each in requests):
        yield Problem("WarmStartConfig is given with several definitions", "keep one, also in the parents", _ARGUMENT)
        return
    strategy = request["HyperParameterTuningJobConfig"]["Strategy"]
    if parents and strategy not in ("Bayesian", "Random"):
        yield Problem(f"WarmStartConfig is given with the strategy {strategy}", "use Bayesian or Random", _ARGUMENT)
    for record, state in parents:
        name = record.request["HyperParameterTuningJobName"]
        if not state.has_ended:
            yield Problem(f"the parent {name!r} is in status {state.status}", "wait for it, or stop it", _ARGUMENT)
        for text, advice in _differences(request, record.request):
            yield Problem(f"the parent {name!r} {text}", advice, _ARGUMENT)


def _differences(request: Mapping[str, Any], parent: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a parent has that differs and must not, and what to do."""
    before, after = tuning.objective_of(parent), tuning.objective_of(request)
    if before != after:
        yield f"has the objective {before['Type']} {before['MetricName']}", f"it must be that of all, {after}"
    old, new = _parameters(parent), _parameters(request)
    if len(old) != len(new):
        what = f"has {len(old)} hyperparameters, static and tunable ones together, and this tuning job {len(new)}"
        yield what, "add or remove static ones"
    kinds = [name for name, (kind, _) in new.items() if kind and old.get(name, ("",))[0] not in ("", kind)]
    if kinds:
        listed = ", ".join(f"{name!r} in {old[name][0]}" for name in kinds)
        yield f"has {listed}", "a hyperparameter must have ranges of one type"
    changes = 0
    for name in old.keys() & new.keys():
        (kind, values), (now, others) = old[name], new[name]
        if not now:
            changes += len(values) if kind else 2 * (values != others)
    if changes > _MOST_CHANGES:
        yield f"has other static values: {changes} changes", f"the most are {_MOST_CHANGES}"
    if request["WarmStartConfig"]["WarmStartType"] == "IdenticalDataAndAlgorithm":
        for field in ("InputDataConfig", "AlgorithmSpecification.TrainingImage"):
            if _value(parent, field) != _value(request, field):
                yield f"has another {field}", "use the same, or TransferLearning"


def _parameters(request: Mapping[str, Any]) -> dict[str, tuple[str, Sequence[str]]]:
    """Return the kind of range and the values of each hyperparameter; the kind of a static one is ""."""
    (part,) = tuning.split_requests(request)
    static = part[tuning.DEFINITION].get("StaticHyperParameters", {})
    found: dict[str, tuple[str, Sequence[str]]] = {name: ("", [static[name]]) for name in tuning.users_names(static)}
    for kind, ranges in part["HyperParameterTuningJobConfig"].get("ParameterRanges", {}).items():
        found.update({each["Name"]: (kind, each.get("Values", [each["Name"]])) for each in ranges})
    return found


def _value(request: Mapping[str, Any], field: str) -> Any:
    (found,) = tuning.definitions_of(request)
    for name in field.split("."):
        found = found.get(name, {})
    return found
