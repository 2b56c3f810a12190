"""A tuning job that is waited for: a line for each training job that ended, and a line of progress in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scriptmode._core.handle import log_lines
from scriptmode._core.spec.failure_text import parse_failure_reason, summarize_error
from scriptmode._core.spec.service_values import ENDED
from scriptmode._core.spec.tuning_description import TunedJob, TuningDescription
from scriptmode._core.text.messages import format_duration, pluralize
from scriptmode._core.text.progress_line import ProgressLine
from scriptmode._results.tuning_results import format_value


def show_progress(
    now: TuningDescription, shown: set[str], training_jobs: Callable[[], Sequence[TunedJob]], line: ProgressLine
) -> None:
    """Write what is new in a description, and the outcome if it has ended; else replace the line of progress.

    ``shown`` gets the names of the training jobs that ended; ``training_jobs`` returns all of them so far.
    """
    ended = now.completed + now.failed + now.stopped
    for job in training_jobs() if ended != len(shown) else ():
        if job.name not in shown and job.has_ended:
            shown.add(job.name)
            line.clear()
            log_lines.write_line(describe_training_job(job, now.metric))
    if now.status in ENDED:
        line.clear()
        log_lines.write_line(describe_outcome(now))
        return
    of = "" if now.max_jobs is None else f" of {now.max_jobs}"
    line.show(f"{now.status}: {ended}{of} training jobs ended, {now.running} running{_describe_best(now)}")


def describe_start(job: TuningDescription) -> str:
    """Return the line about a tuning job that was started."""
    jobs = "all combinations" if job.max_jobs is None else pluralize(job.max_jobs, "training job")
    verb = "maximize" if job.is_maximized else "minimize"
    return (
        f"tuning job {job.name} started: {jobs}, {job.max_parallel_jobs} at once, strategy {job.strategy}, "
        f"to {verb} {job.metric}"
    )


def describe_training_job(job: TunedJob, metric: str) -> str:
    """Return the line about a training job of a tuning job: its status, objective and hyperparameters."""
    outcome = f"no {metric}" if job.objective is None else f"{metric}={format_value(job.objective)}"
    if job.status == "Failed":
        failure = parse_failure_reason(job.failure_reason)
        # The line that names the error.
        outcome = (summarize_error(failure) or failure.traceback.strip() or failure.cause).split("\n")[-1].strip()
    return f"{job.name} {job.status}: {outcome} ({_describe_values(job)})"


def describe_outcome(job: TuningDescription) -> str:
    """Return the line about a tuning job that ended: the numbers of its training jobs and the best of them."""
    parts = [pluralize(job.completed + job.failed + job.stopped, "training job")]
    parts += [f"{job.failed} failed"] * bool(job.failed) + [f"{job.stopped} stopped"] * bool(job.stopped)
    if job.seconds is not None:
        parts.append(format_duration(job.seconds))
    return f"tuning job {job.name}: {job.status}, {', '.join(parts)}{_describe_best(job)}"


def _describe_best(job: TuningDescription) -> str:
    if job.best is None:
        return ""
    return f"; best {job.metric}={format_value(job.best.objective)}: {job.best.name} ({_describe_values(job.best)})"


def _describe_values(job: TunedJob) -> str:
    return ", ".join(f"{name}={format_value(value)}" for name, value in job.tuned.items())
