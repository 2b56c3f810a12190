"""Rendering of a tuning job as the service's responses. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from scriptmode.core.request import tuning
from scriptmode.core.spec.service_values import FAILED
from scriptmode_runtime import contract
from scriptmode_runtime.failure import readable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.local.tuning.tuning_store import Trial, TuningRecord, TuningState

#: Fields of the request, or of a recorded definition, that DescribeHyperParameterTuningJob does not return.
_NOT_DESCRIBED = frozenset({"Tags"})
#: A training job improves the objective if it is better than those before it by more than this share of it.
_IMPROVEMENT = 0.01
#: Fields of that response that a list has, too.
_SUMMARY = (
    "HyperParameterTuningJobName",
    "HyperParameterTuningJobArn",
    "HyperParameterTuningJobStatus",
    "CreationTime",
    "HyperParameterTuningEndTime",
    "LastModifiedTime",
    "TrainingJobStatusCounters",
    "ObjectiveStatusCounters",
)


def render_describe_response(record: TuningRecord, state: TuningState) -> dict[str, Any]:
    """Render DescribeHyperParameterTuningJobResponse."""
    statuses = Counter(each.status for each in state.launched)
    objectives = Counter(each.objective_status for each in state.launched)
    # (TrainingJobStatusCounters, API reference)
    retryable = sum(each.status == FAILED and each.failure.startswith("InternalServerError") for each in state.launched)
    request = tuning.change_definitions(tuning.with_objectives(record.request), _described)
    response = {
        **_described(request),
        "HyperParameterTuningJobArn": record.arn,
        "HyperParameterTuningJobStatus": state.status,
        "CreationTime": _time(state.created),
        "LastModifiedTime": _time(state.modified),
        "TrainingJobStatusCounters": {
            "Completed": statuses["Completed"],
            "InProgress": sum(not each.has_ended for each in state.launched),
            "RetryableError": retryable,
            "NonRetryableError": statuses["Failed"] - retryable,
            "Stopped": statuses["Stopped"],
        },
        "ObjectiveStatusCounters": {status: objectives[status] for status in ("Succeeded", "Pending", "Failed")},
        "TuningJobCompletionDetails": {"NumberOfTrainingJobsObjectiveNotImproving": count_not_improving(record, state)},
        "ConsumedResources": {"RuntimeInSeconds": int((state.ended or state.modified) - state.created)},
    }
    if state.ended:
        response["HyperParameterTuningEndTime"] = _time(state.ended)
    if state.failure:
        response["FailureReason"] = contract.shorten(readable(state.failure), contract.FAILURE_LIMIT)
    best = find_best(record, state)
    if best is not None:
        response["BestTrainingJob"] = render_training_job(record, best)
    is_identical = record.request.get("WarmStartConfig", {}).get("WarmStartType") == "IdenticalDataAndAlgorithm"
    if is_identical and (overall := _render_overall_best(record, best)):
        response["OverallBestTrainingJob"] = overall
    return response


def render_summary(record: TuningRecord, state: TuningState) -> dict[str, Any]:
    """Render a HyperParameterTuningJobSummary."""
    response = render_describe_response(record, state)
    config = record.request["HyperParameterTuningJobConfig"]
    return {
        **{field: response[field] for field in _SUMMARY if field in response},
        "Strategy": config["Strategy"],
        "ResourceLimits": config["ResourceLimits"],
    }


def render_training_job(record: TuningRecord, trial: Trial) -> dict[str, Any]:
    """Render a HyperParameterTrainingJobSummary."""
    objective = tuning.objective_of(tuning.split_by_name(record.request)[trial.definition])
    summary: dict[str, Any] = {
        "TrainingJobName": trial.name,
        "TrainingJobArn": record.training_arn + trial.name,
        "CreationTime": _time(trial.created),
        "TrainingJobStatus": trial.status,
        "TunedHyperParameters": dict(trial.tuned),
        "ObjectiveStatus": trial.objective_status,
    }
    if trial.definition:
        summary["TrainingJobDefinitionName"] = trial.definition
    if trial.started:
        summary["TrainingStartTime"] = _time(trial.started)
    if trial.ended:
        summary["TrainingEndTime"] = _time(trial.ended)
    if trial.failure:
        summary["FailureReason"] = contract.shorten(readable(trial.failure), contract.FAILURE_LIMIT)
    if trial.objective is not None:
        summary["FinalHyperParameterTuningJobObjectiveMetric"] = {
            "Type": objective["Type"],
            "MetricName": objective["MetricName"],
            "Value": trial.objective,
        }
    return summary


def find_best(record: TuningRecord, state: TuningState) -> Trial | None:
    """Return the training job with the best objective, a failed one never; None while there is none."""
    found = [(value, trial) for value, trial in _ended(record, state) if value is not None]
    return max(found, key=lambda each: each[0])[1] if found else None


def _render_overall_best(record: TuningRecord, own: Trial | None) -> dict[str, Any] | None:
    """Render the training job with the best objective of a tuning job, ``own``, and of all its parents."""
    definition = next(iter(tuning.split_by_name(record.request)))
    found = [(record.request["HyperParameterTuningJobName"], record.training_arn, own)] if own else []
    for parent in record.parents:
        found += [(parent.name, parent.training_arn, replace(each, definition=definition)) for each in parent.trials]
    if not found:
        return None
    choose = max if tuning.objective_of(record.request)["Type"] == "Maximize" else min
    name, arn, best = choose(found, key=lambda each: each[2].objective or 0.0)
    return {**render_training_job(replace(record, training_arn=arn), best), "TuningJobName": name}


def count_not_improving(record: TuningRecord, state: TuningState) -> int:
    """Return how many training jobs ended since one improved the objective; 0 before the first that has one."""
    best, count = None, 0
    for value, _ in _ended(record, state):
        if value is not None and (best is None or value - best > _IMPROVEMENT * abs(best)):
            best, count = value, 0
        elif best is not None:
            count += 1
    return count


def _ended(record: TuningRecord, state: TuningState) -> list[tuple[float | None, Trial]]:
    """Return the training jobs that ended, in that order, with their objectives, of which more is better.

    All definitions have the same type of objective. It is None for a training job that failed or has none.
    """
    sign = 1 if tuning.objective_of(record.request)["Type"] == "Maximize" else -1
    ended = sorted((each for each in state.launched if each.has_ended), key=lambda each: each.ended)
    return [(None if each.objective_status == "Failed" else sign * (each.objective or 0.0), each) for each in ended]


def meets_criteria(record: TuningRecord, state: TuningState) -> bool:
    """Return whether the training jobs that ended meet one of the completion criteria of the request."""
    criteria = record.request["HyperParameterTuningJobConfig"].get("TuningJobCompletionCriteria", {})
    most = criteria.get("BestObjectiveNotImproving", {}).get("MaxNumberOfTrainingJobsNotImproving")
    if most is not None and count_not_improving(record, state) >= most:
        return True
    best, target = find_best(record, state), criteria.get("TargetObjectiveMetricValue")
    if target is None or best is None or best.objective is None:
        return False
    is_maximized = tuning.objective_of(record.request)["Type"] == "Maximize"
    return bool(best.objective >= target if is_maximized else best.objective <= target)


def _described(given: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in given.items() if field not in _NOT_DESCRIBED}


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
