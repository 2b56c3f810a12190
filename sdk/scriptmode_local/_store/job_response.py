"""A job's request and state as its description, and as the service's response. Pure."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.job_description import JobDescription, JobStatus, Transition
from scriptmode_runtime import contract
from scriptmode_runtime._terminal_line import readable

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode_local._store import state as states
    from scriptmode_local._store.state import JobState


_time = partial(datetime.fromtimestamp, tz=timezone.utc)


def describe(job: JobRequest, state: JobState) -> JobDescription:
    """Return a job's request and state as its description."""
    transitions = [_transition(transition) for transition in state.transitions]
    if state.note:
        latest = transitions[-1]
        transitions[-1] = latest._replace(message=f"{latest.message}; {readable(state.note)}")
    started = ended = seconds = None
    if state.training_started is not None:
        started = _time(state.training_started)
        if state.training_ended is not None and state.training_seconds is not None:
            ended, seconds = _time(state.training_ended), max(1, round(state.training_seconds))
    description = JobDescription(
        job=job,
        status=JobStatus(state.status),
        arn=state.arn,
        secondary=state.secondary,
        transitions=tuple(transitions),
        # What names a file or a key of S3, too, may have control characters.
        failure_reason=contract.shorten(readable(state.reason), contract.FAILURE_LIMIT),
        artifact_uri=state.artifacts,
        created=_time(state.created),
        modified=_time(state.modified),
        training_started=started,
        training_ended=ended,
        training_seconds=seconds,
        host_billable_seconds=seconds,
        respond=lambda: _render(description),
    )
    return description


def _render(description: JobDescription) -> dict[str, Any]:
    """Render DescribeTrainingJobResponse."""
    from scriptmode._core.request.render import render_request
    from scriptmode._core.request.service_model import DESCRIBED_DEFAULTS, NOT_DESCRIBED

    request = render_request(description.job)
    response = {**DESCRIBED_DEFAULTS, **{name: value for name, value in request.items() if name not in NOT_DESCRIBED}}
    limit = {"MaxRuntimeInSeconds": description.job.limits.max_run}
    response.update(
        TrainingJobName=description.name,
        TrainingJobArn=description.arn,
        # The shape requires it also before there is a model.
        ModelArtifacts={"S3ModelArtifacts": description.artifact_uri},
        TrainingJobStatus=str(description.status),
        SecondaryStatus=description.secondary,
        StoppingCondition={**request.get("StoppingCondition", {}), **limit},
        CreationTime=description.created,
        LastModifiedTime=description.modified,
        SecondaryStatusTransitions=[_render_transition(transition) for transition in description.transitions],
    )
    known = {
        "FailureReason": description.failure_reason or None,
        "TrainingStartTime": description.training_started,
        "TrainingEndTime": description.training_ended,
        "TrainingTimeInSeconds": description.training_seconds,
        "BillableTimeInSeconds": description.host_billable_seconds,
    }
    response.update({field: value for field, value in known.items() if value is not None})
    return response


def _transition(transition: states.Transition) -> Transition:
    ended = None if transition.ended is None else _time(transition.ended)
    return Transition(transition.status, _time(transition.started), ended, readable(transition.message))


def _render_transition(transition: Transition) -> dict[str, object]:
    shape = {
        "Status": transition.status,
        "StartTime": transition.started,
        "EndTime": transition.ended,
        "StatusMessage": transition.message,
    }
    return {field: value for field, value in shape.items() if value is not None}
