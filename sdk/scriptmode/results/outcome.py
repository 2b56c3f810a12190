"""The outcome of a training job: its description, or an error with the next step."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode.errors import CapacityError, ScriptmodeError, TrainingJobFailed, TrainingJobStopped
from scriptmode.failure import NO_REASON, Failure, parse_failure_reason
from scriptmode.spec.job_description import JobStatus
from scriptmode.terminal_text import sanitize

if TYPE_CHECKING:
    from scriptmode.platforms.base import Platform
    from scriptmode.spec.job_description import JobDescription

#: What the service's FailureReason says when there were no instances.
_NO_CAPACITY = ("CapacityError", "InsufficientCapacity", "InternalServerError: InsufficientCapacity")


def find_failure(description: JobDescription, platform: Platform) -> Failure | None:
    """Return why a described job failed: its platform's record, else its FailureReason; None if it did not fail."""
    if description.status is not JobStatus.FAILED:
        return None
    failure = None
    # A platform of another library may not have the method.
    if hasattr(platform, "failure"):
        # The outcome is reported without it.
        with suppress(ScriptmodeError):
            failure = platform.failure(description.name)
    return failure or parse_failure_reason(description.failure_reason)


def raise_for_status(description: JobDescription, platform: Platform) -> None:
    """Raise the error of a job that failed or was stopped."""
    if description.status is JobStatus.FAILED:
        raise _failed(description, platform)
    if description.status is JobStatus.STOPPED:
        raise _stopped(description)


def _failed(description: JobDescription, platform: Platform) -> TrainingJobFailed:
    """Return the error: the first failure, with which the reason begins, where the whole log is, and what to do."""
    name = description.name
    reason = description.failure_reason or NO_REASON
    # Python prints it to a terminal as it is; `reason` keeps all of it.
    text = f"training job {name} failed: {sanitize(reason)}"
    if reason.startswith(_NO_CAPACITY):
        text += f"; try another instance type, another Region, or later: scriptmode rerun {name}"
        return CapacityError(text, description.response)
    failure = find_failure(description, platform)
    host = failure.host if failure else ""
    # Another run has the same source, without later corrections.
    note = " (the same source)" if description.job.source_uri else ""
    rows = [*_whole_log(name, host, platform), ("log", f"scriptmode logs {name}{host and f' --host {host}'}")]
    rows.append(("again", f"scriptmode rerun {name}{note}"))
    message = "\n".join([text, *(f"  {head + ':':<10} {said}" for head, said in rows)])
    return TrainingJobFailed(message, description.response, failure)


def _whole_log(name: str, host: str, platform: Platform) -> list[tuple[str, str]]:
    """Return the location of the failed host's log; of the first host's where no host is named."""
    try:
        places = platform.log_locations(name)
    except ScriptmodeError:
        # The outcome is reported without it.
        return []
    place = places.get(host) or next(iter(places.values()), "")
    return [("whole log", place)] if place else []


def _stopped(description: JobDescription) -> TrainingJobStopped:
    name, secondary, limits = description.name, description.secondary, description.job.limits
    run, wait = limits.max_run, limits.max_wait
    texts = {
        "MaxRuntimeExceeded": f"ran longer than max_run ({run} s) and was stopped; give it more time",
        "MaxWaitTimeExceeded": f"waited and ran longer than max_wait ({wait} s) and was stopped; give it more time, or "
        "use no spot instances",
        "Interrupted": "lost its spot instances and was stopped; give it checkpoint_s3_uri to resume from and "
        "start it again",
    }
    text = texts.get(secondary, f"was stopped ({secondary})")
    checkpoints = description.job.output.checkpoint_uri
    # Twice the limit; an unknown limit is not doubled.
    more = {"MaxRuntimeExceeded": ("--max-run", run), "MaxWaitTimeExceeded": ("--max-wait", wait)}
    option, limit = more.get(secondary, ("", None))
    again = f"scriptmode rerun {name}" + (f" {option} {2 * limit}" if limit else "")
    begin = (
        f"resumes from the checkpoints in {checkpoints}"
        if checkpoints
        else "starts from the beginning: it has no checkpoints"
    )
    return TrainingJobStopped(f"training job {name} {text}\n  {'again:':<10} {again} ({begin})", description.response)
