"""Rendering of a tuning job as the service's responses. Pure."""

from __future__ import annotations

from collections import Counter
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
    definition = _described(record.request[tuning.DEFINITION])
    objective = tuning.objective_of(record.request)["MetricName"]
    definition["StaticHyperParameters"] = {
        **definition.get("StaticHyperParameters", {}),
        contract.TUNING_METRIC: objective,
    }
    response = {
        **_described(record.request),
        tuning.DEFINITION: definition,
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
        "ConsumedResources": {"RuntimeInSeconds": int((state.ended or state.modified) - state.created)},
    }
    if state.ended:
        response["HyperParameterTuningEndTime"] = _time(state.ended)
    if state.failure:
        response["FailureReason"] = contract.shorten(readable(state.failure), contract.FAILURE_LIMIT)
    best = find_best(record, state)
    if best is not None:
        response["BestTrainingJob"] = render_training_job(record, best)
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
    objective = tuning.objective_of(record.request)
    summary: dict[str, Any] = {
        "TrainingJobName": trial.name,
        "TrainingJobArn": record.training_arn + trial.name,
        "CreationTime": _time(trial.created),
        "TrainingJobStatus": trial.status,
        "TunedHyperParameters": dict(trial.tuned),
        "ObjectiveStatus": trial.objective_status,
    }
    if name := record.request[tuning.DEFINITION].get("DefinitionName"):
        summary["TrainingJobDefinitionName"] = name
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
    sign = 1 if tuning.objective_of(record.request)["Type"] == "Maximize" else -1
    found = [each for each in state.launched if each.objective_status == "Succeeded"]
    # Of equal ones that which ended first.
    found.sort(key=lambda each: each.ended)
    return max(found, key=lambda each: sign * (each.objective or 0.0)) if found else None


def _described(given: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in given.items() if field not in _NOT_DESCRIBED}


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
