"""Rendering of a tuning job's state as the service's responses. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from scriptmode._core.request import tuning
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode_local._tuning.tuning_store import TuningRecord

#: Fields of the description that a list does not have.
_NOT_LISTED = (
    "HyperParameterTuningJobConfig", tuning.DEFINITION, "BestTrainingJob", "ConsumedResources", "FailureReason",
)  # fmt: skip


def render_describe_response(record: TuningRecord, state: Mapping[str, Any]) -> dict[str, Any]:
    """Render DescribeHyperParameterTuningJobResponse."""
    jobs, objective = render_training_jobs(state), tuning.objective_of(record.request)
    # What an internal error ended may be tried again. (TrainingJobStatusCounters, API reference)
    is_retryable = [job.get("FailureReason", "").startswith("InternalServerError") for job in jobs]
    statuses = Counter("RetryableError" if flag else job["TrainingJobStatus"] for flag, job in zip(is_retryable, jobs))
    objectives = Counter(job["ObjectiveStatus"] for job in jobs)
    counted = {"NonRetryableError": statuses["Failed"], "InProgress": statuses["InProgress"] + statuses["Stopping"]}
    request, definition = ({**given} for given in (record.request, record.request[tuning.DEFINITION]))
    for given in (request, definition):
        given.pop("Tags", None)
    static = {**definition.get("StaticHyperParameters", {}), contract.TUNING_METRIC: objective["MetricName"]}
    seconds = state.get("HyperParameterTuningEndTime", state["LastModifiedTime"]) - state["CreationTime"]
    response = {
        **request,
        **_with_times({name: value for name, value in state.items() if name != "TrainingJobs"}),
        tuning.DEFINITION: {**definition, "StaticHyperParameters": static},
        "HyperParameterTuningJobArn": record.arn,
        "TrainingJobStatusCounters": {
            **{name: statuses[name] for name in ("Completed", "RetryableError", "Stopped")},
            **counted,
        },
        "ObjectiveStatusCounters": {status: objectives[status] for status in ("Succeeded", "Pending", "Failed")},
        "ConsumedResources": {"RuntimeInSeconds": int(seconds)},
    }
    sign = 1 if objective["Type"] == "Maximize" else -1
    # Of equal ones that which ended first.
    succeeded = sorted(
        (job for job in jobs if job["ObjectiveStatus"] == "Succeeded" and tuning.FINAL_OBJECTIVE in job),
        key=lambda job: job.get("TrainingEndTime", job["CreationTime"]),
    )
    if succeeded:
        response["BestTrainingJob"] = max(succeeded, key=lambda job: sign * job[tuning.FINAL_OBJECTIVE]["Value"])
    return response


def render_summary(record: TuningRecord, state: Mapping[str, Any]) -> dict[str, Any]:
    """Render a HyperParameterTuningJobSummary."""
    response = render_describe_response(record, state)
    config = response["HyperParameterTuningJobConfig"]
    listed = {name: value for name, value in response.items() if name not in _NOT_LISTED}
    return {**listed, "Strategy": config["Strategy"], "ResourceLimits": config["ResourceLimits"]}


def render_training_jobs(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Render a HyperParameterTrainingJobSummary for each training job that was created, in that order."""
    return [_with_times(job) for job in state["TrainingJobs"] if "CreationTime" in job]


def _with_times(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: datetime.fromtimestamp(value, timezone.utc) if name.endswith("Time") else value
        for name, value in fields.items()
    }
