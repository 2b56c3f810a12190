"""The outcome of a training job: its description, or an error with the next step."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scriptmode.errors import CapacityError, ScriptmodeError, TrainingJobFailed, TrainingJobStopped
from scriptmode.failure import NO_REASON, Failure, parse_failure_reason
from scriptmode.platforms.base import FAILED, STOPPED
from scriptmode.terminal_text import sanitize
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.base import Platform

#: What the service's FailureReason says when there were no instances.
_NO_CAPACITY = ("CapacityError", "InsufficientCapacity", "InternalServerError: InsufficientCapacity")


def find_failure(description: Mapping[str, Any], platform: Platform) -> Failure | None:
    """Return why a described job failed: its platform's record, else its FailureReason; None if it did not fail."""
    if description["TrainingJobStatus"] != FAILED:
        return None
    failure = None
    # A platform of another library may not have the method.
    if hasattr(platform, "failure"):
        # The outcome is reported without it.
        with suppress(ScriptmodeError):
            failure = platform.failure(description["TrainingJobName"])
    return failure or parse_failure_reason(description.get("FailureReason") or "")


def raise_for_status(description: dict[str, Any], platform: Platform) -> dict[str, Any]:
    """Return the description of a job that completed; raise for one that failed or was stopped."""
    if description["TrainingJobStatus"] == FAILED:
        raise _failed(description, platform)
    if description["TrainingJobStatus"] == STOPPED:
        raise _stopped(description)
    return description


def _failed(description: dict[str, Any], platform: Platform) -> TrainingJobFailed:
    """Return the error: the first failure, with which the reason begins, where the whole log is, and what to do."""
    name = description["TrainingJobName"]
    reason = description.get("FailureReason") or NO_REASON
    # Python prints it to a terminal as it is; `reason` keeps all of it.
    text = f"training job {name} failed: {sanitize(reason)}"
    if reason.startswith(_NO_CAPACITY):
        text += f"; try another instance type, another Region, or later: scriptmode rerun {name}"
        return CapacityError(text, description)
    failure = find_failure(description, platform)
    host = failure.host if failure else ""
    rows = [*_whole_log(name, host, platform), ("log", f"scriptmode logs {name}{host and f' --host {host}'}")]
    rows.append(("again", f"scriptmode rerun {name}{_same_source(description)}"))
    message = "\n".join([text, *(f"  {head + ':':<10} {said}" for head, said in rows)])
    return TrainingJobFailed(message, description, failure)


def _same_source(description: Mapping[str, Any]) -> str:
    """Return a note, for a job with a source, that another run has the same source, without later corrections."""
    return " (the same source)" if contract.SUBMIT_DIRECTORY in description.get("HyperParameters", {}) else ""


def _whole_log(name: str, host: str, platform: Platform) -> list[tuple[str, str]]:
    """Return the location of the failed host's log; of the first host's where no host is named."""
    try:
        places = platform.log_locations(name)
    except ScriptmodeError:
        # The outcome is reported without it.
        return []
    place = places.get(host) or next(iter(places.values()), "")
    return [("whole log", place)] if place else []


def _stopped(description: dict[str, Any]) -> TrainingJobStopped:
    name, limits = description["TrainingJobName"], description.get("StoppingCondition", {})
    run, wait = limits.get("MaxRuntimeInSeconds"), limits.get("MaxWaitTimeInSeconds")
    texts = {
        "MaxRuntimeExceeded": f"ran longer than max_run ({run} s) and was stopped; give it more time",
        "MaxWaitTimeExceeded": f"waited and ran longer than max_wait ({wait} s) and was stopped; give it more time, or "
        "use no spot instances",
        "Interrupted": "lost its spot instances and was stopped; give it checkpoint_s3_uri to resume from and "
        "start it again",
    }
    text = texts.get(description["SecondaryStatus"], f"was stopped ({description['SecondaryStatus']})")
    checkpoints = (description.get("CheckpointConfig") or {}).get("S3Uri")
    # Twice the limit; an unknown limit is not doubled.
    more = {"MaxRuntimeExceeded": ("--max-run", run), "MaxWaitTimeExceeded": ("--max-wait", wait)}
    option, limit = more.get(description["SecondaryStatus"], ("", None))
    again = f"scriptmode rerun {name}" + (f" {option} {2 * limit}" if limit else "")
    begin = (
        f"resumes from the checkpoints in {checkpoints}"
        if checkpoints
        else "starts from the beginning: it has no checkpoints"
    )
    return TrainingJobStopped(f"training job {name} {text}\n  {'again:':<10} {again} ({begin})", description)
