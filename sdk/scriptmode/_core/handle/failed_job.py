"""The failure of a described job, and the error of one that failed or was stopped, with the next step."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from scriptmode._core.handle.log_lines import describe_events
from scriptmode._core.platforms.registry import Platform
from scriptmode._core.spec import failure_text
from scriptmode._core.spec.job_description import JobDescription, JobStatus
from scriptmode._core.spec.job_failure import Failure
from scriptmode.errors import CapacityError, ScriptmodeError, TrainingJobFailed, TrainingJobStopped
from scriptmode_runtime._terminal_line import sanitize

#: What the service's FailureReason says when there were no instances.
_NO_CAPACITY = ("CapacityError", "InsufficientCapacity", "InternalServerError: InsufficientCapacity")
#: A file of the source in a traceback, relative to the source.
_SOURCE_FILE = re.compile(r'(?<=File ")[^"/<\n][^"\n]*(?=")')
#: The line of a FailureReason before ordinary output.
_LOG_HEADING = "its log ends with"


def find_failure(description: JobDescription, platform: Platform, source_dir: str = "") -> Failure | None:
    """Return why a described job failed: its platform's record, else its FailureReason; None if it did not fail.

    The traceback names the files of the source in ``source_dir``, their directory as the caller named it.
    """
    if description.status is not JobStatus.FAILED:
        return None
    failure = None
    # The outcome is reported without it.
    with suppress(ScriptmodeError):
        failure = platform.failure(description)
    failure = failure or failure_text.parse_failure_reason(description.failure_reason)
    return replace(failure, traceback=_name_source_files(failure.traceback, source_dir)) if source_dir else failure


def _name_source_files(text: str, source_dir: str) -> str:
    def path(match: re.Match[str]) -> str:
        file = Path(source_dir, match[0])
        # The source may have files of other directories, its dependencies.
        return str(file) if file.is_file() else match[0]

    return _SOURCE_FILE.sub(path, text)


def failed_error(
    description: JobDescription, platform: Platform, source_dir: str, *, is_log_shown: bool
) -> TrainingJobFailed:
    """Return the error: the first failure, advice, where the whole log is, and what to do."""
    name, reason = description.name, description.failure_reason or failure_text.NO_REASON
    if reason.startswith(_NO_CAPACITY):
        text = f"training job {name} failed: {sanitize(reason)}"
        text += f"; try another instance type, another Region, or later: scriptmode rerun {name}"
        return CapacityError(text, description.response)
    failure = find_failure(description, platform) or failure_text.parse_failure_reason(reason)
    # A failure file that the script wrote is not in the log, and has no line of the runtime.
    is_in_log = is_log_shown and failure.process not in ("", "launcher") and failure.cause in reason
    body = failure_text.summarize_error(failure) if is_in_log else failure_text.traceback_below_error(failure)
    if body and f"\n{_LOG_HEADING}\n" in reason and _LOG_HEADING not in body:
        body = f"{_LOG_HEADING}\n{body}"
    lines = [f"training job {name} failed: {_cause(failure, reason)}", _name_source_files(body, source_dir)]
    host = f" --host {failure.log_host}" if failure.log_host else ""
    place = _log_location(name, failure.log_host, platform)
    rows = [("hint", failure.hint), ("log", f"scriptmode logs {name}{host}{place and f' ({place})'}")]
    rows += [("warning", event) for event in describe_events(name, platform)]
    lines += [f"  {head + ':':<8} {said}" for head, said in rows if said]
    if failure_text.may_succeed_again(failure):
        # Another run has the same source, without later corrections.
        checkpoints = description.job.output.checkpoint_uri
        notes = ["the same source"] if description.job.source_uri else []
        notes += [f"from the checkpoints in {checkpoints}"] if checkpoints else []
        lines.append(_again(name, f" ({', '.join(notes)})" if notes else ""))
    # Python prints it to a terminal as it is; `reason` keeps all of it.
    message = sanitize("\n".join(filter(None, lines)))
    failure = replace(failure, traceback=_name_source_files(failure.traceback, source_dir))
    return TrainingJobFailed(message, description.response, failure)


def _again(name: str, rest: str) -> str:
    return f"  {'again:':<8} scriptmode rerun {name}{rest}"


def _cause(failure: Failure, reason: str) -> str:
    """Return what failed in one line, with the exit code, and the kind of failures outside the script."""
    kind = reason.partition(":")[0]
    text = f"{kind}: {failure.cause}" if kind in ("ClientError", "InternalServerError") else failure.cause
    is_known = failure.signal or failure.process == "launcher" or "exit code" in text
    return text if is_known or not failure.exit_code else f"{text} (exit code {failure.exit_code})"


def _log_location(name: str, host: str, platform: Platform) -> str:
    """Return the location of a host's log; of the first host's where no host is named; "" where unknown."""
    # The outcome is reported without it.
    with suppress(ScriptmodeError):
        places = platform.log_locations(name)
        return places.get(host) or next(iter(places.values()), "")
    return ""


def stopped_error(description: JobDescription) -> TrainingJobStopped:
    """Return the error of a job that was stopped: by what, and how it goes on."""
    name, secondary, limits = description.name, description.secondary, description.job.limits
    run, wait = limits.max_run, limits.max_wait
    texts = {
        "MaxRuntimeExceeded": f"ran longer than max_run ({run} s) and was stopped; give it more time if its log shows "
        f"progress: scriptmode logs {name} --tail 20",
        "MaxWaitTimeExceeded": f"waited and ran longer than max_wait ({wait} s) and was stopped; give it more time, or "
        "use no spot instances",
        "Interrupted": "lost its spot instances and was stopped; give it checkpoint_s3_uri to resume from and "
        "start it again",
    }
    text = texts.get(secondary, f"was stopped ({secondary})")
    if description.stop_message:
        text = f"was stopped: {description.stop_message}"
    kept = description.job.output.checkpoint_uri
    # Twice the limit; an unknown limit is not doubled, nor one of a scheduler.
    more = {"MaxRuntimeExceeded": ("--max-run", run), "MaxWaitTimeExceeded": ("--max-wait", wait)}
    option, limit = ("", None) if description.stop_message else more.get(secondary, ("", None))
    options = f" {option} {2 * limit}" if limit else ""
    begin = f"resumes from the checkpoints in {kept}" if kept else "starts from the beginning: it has no checkpoints"
    message = sanitize(f"training job {name} {text}\n{_again(name, f'{options} ({begin})')}")
    return TrainingJobStopped(message, description.response)
