"""Rendering of a job's request and state as the service's responses. Pure."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from scriptmode.core.request.render import render_request
from scriptmode.core.request.service_model import DESCRIBED_DEFAULTS, NOT_DESCRIBED
from scriptmode.platforms.local.store.state import STATUS_OF, UNREADABLE
from scriptmode_runtime import contract
from scriptmode_runtime.failure import readable

if TYPE_CHECKING:
    from scriptmode.core.spec.job_request import JobRequest
    from scriptmode.platforms.local.store.state import JobState, JobSummary, Transition


def render_describe_response(job: JobRequest, state: JobState) -> dict[str, Any]:
    """Render DescribeTrainingJobResponse."""
    request = render_request(job)
    response = {
        **DESCRIBED_DEFAULTS,
        **{field: value for field, value in request.items() if field not in NOT_DESCRIBED},
    }
    response.update(
        TrainingJobName=state.name,
        TrainingJobArn=state.arn,
        # The shape requires it also before there is a model.
        ModelArtifacts={"S3ModelArtifacts": state.artifacts},
        TrainingJobStatus=state.status,
        SecondaryStatus=state.secondary,
        StoppingCondition={**request.get("StoppingCondition", {}), "MaxRuntimeInSeconds": job.limits.max_run},
        CreationTime=_time(state.created),
        LastModifiedTime=_time(state.modified),
        SecondaryStatusTransitions=[_transition(transition) for transition in state.transitions],
    )
    if state.note:
        latest = response["SecondaryStatusTransitions"][-1]
        latest["StatusMessage"] = f"{latest['StatusMessage']}; {readable(state.note)}"
    if state.reason:
        # What names a file or a key of S3, too, may have control characters.
        response["FailureReason"] = contract.shorten(readable(state.reason), contract.FAILURE_LIMIT)
    if state.training_started is not None:
        response["TrainingStartTime"] = _time(state.training_started)
        if state.training_ended is not None and state.training_seconds is not None:
            seconds = max(1, round(state.training_seconds))
            response.update(
                TrainingEndTime=_time(state.training_ended),
                TrainingTimeInSeconds=seconds,
                BillableTimeInSeconds=seconds,
            )
    return response


def render_summary(job: JobSummary) -> dict[str, Any]:
    """Render a TrainingJobSummary, with five fields that the service lacks.

    ``InstanceCount``, ``Distribution`` and ``LastMetric`` are there where they are known, ``QueuePosition`` while the
    job waits for others; ``StatusMessage`` describes a problem of the job.
    """
    summary = {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "CreationTime": _time(job.created),
        "LastModifiedTime": _time(job.modified),
        "TrainingJobStatus": STATUS_OF.get(job.secondary, UNREADABLE),
        "SecondaryStatus": job.secondary,
    }
    if job.hosts:
        summary["InstanceCount"] = job.hosts
    if job.distribution:
        summary["Distribution"] = job.distribution
    if job.metric_name:
        summary["LastMetric"] = {"MetricName": job.metric_name, "Value": job.metric_value}
    if job.position:
        summary["QueuePosition"] = job.position
    if job.note:
        summary["StatusMessage"] = readable(job.note)
    if job.training_ended is not None:
        summary["TrainingEndTime"] = _time(job.training_ended)
    return summary


def algorithm_error(message: str, exit_code: int) -> str:
    """Return the failure reason of a failed script, in the service's form; `render_describe_response` shortens it."""
    return f"AlgorithmError: {message}, exit code: {exit_code}"


def _transition(transition: Transition) -> dict[str, Any]:
    shape = {
        "Status": transition.status,
        "StartTime": _time(transition.started),
        "StatusMessage": readable(transition.message),
    }
    if transition.ended is not None:
        shape["EndTime"] = _time(transition.ended)
    return shape


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
