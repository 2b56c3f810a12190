"""How a training job ended, as what a caller gets: its description, or an error that says what comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.errors import CapacityError, ScriptmodeError, TrainingJobFailed, TrainingJobStopped
from scriptmode.platforms import FAILED, STOPPED

if TYPE_CHECKING:
    from scriptmode.platforms import Platform

#: What the service's FailureReason says when there were no instances.
_NO_CAPACITY = ("CapacityError", "InsufficientCapacity", "InternalServerError: InsufficientCapacity")


def raise_for_status(description: dict[str, Any], platform: Platform) -> dict[str, Any]:
    """Return the description of a job that completed; raise for one that failed or was stopped."""
    if description["TrainingJobStatus"] == FAILED:
        raise _failed(description, platform)
    if description["TrainingJobStatus"] == STOPPED:
        raise _stopped(description)
    return description


def _failed(description: dict[str, Any], platform: Platform) -> TrainingJobFailed:
    """Say the first cause, which the reason begins with, then where the whole log is, then what to do."""
    from scriptmode.display.values import failure

    name = description["TrainingJobName"]
    reason = description.get("FailureReason") or "the platform gave no reason"
    text = f"training job {name} failed: {reason}"
    if reason.startswith(_NO_CAPACITY):
        text += f"; try another instance type, another Region, or later: scriptmode rerun {name}"
        return CapacityError(text, description)
    host = failure(reason).host
    rows = [*_whole_log(name, host, platform), ("log", f"scriptmode logs {name}{host and f' --host {host}'}")]
    rows.append(("again", f"scriptmode rerun {name}"))
    return TrainingJobFailed("\n".join([text, *(f"  {head + ':':<10} {said}" for head, said in rows)]), description)


def _whole_log(name: str, host: str, platform: Platform) -> list[tuple[str, str]]:
    """Say where the log of the host that failed is; of no host in particular, where the first one's is."""
    try:
        places = platform.log_places(name)
    except ScriptmodeError:
        # How the job ended is told without it.
        return []
    place = places.get(host) or next(iter(places.values()), "")
    return [("whole log", place)] if place else []


def _stopped(description: dict[str, Any]) -> TrainingJobStopped:
    name, limits = description["TrainingJobName"], description.get("StoppingCondition", {})
    texts = {
        "MaxRuntimeExceeded": f"ran longer than max_run ({limits.get('MaxRuntimeInSeconds')} s) and was stopped; "
        "give it more time",
        "MaxWaitTimeExceeded": f"waited and ran longer than max_wait ({limits.get('MaxWaitTimeInSeconds')} s) and was "
        "stopped; give it more time, or use no spot instances",
        "Interrupted": "lost its spot instances and was stopped; give it checkpoint_s3_uri to go on from, and start it "
        "again",
    }
    text = texts.get(description["SecondaryStatus"], f"was stopped ({description['SecondaryStatus']})")
    checkpoints = (description.get("CheckpointConfig") or {}).get("S3Uri")
    begin = f"goes on from the checkpoints in {checkpoints}" if checkpoints else "begins anew, it has no checkpoints"
    return TrainingJobStopped(
        f"training job {name} {text}\n  {'again:':<10} scriptmode rerun {name} ({begin})", description
    )
