"""``scriptmode stop JOB...``."""

from __future__ import annotations

import time
from contextlib import suppress

import click

from scriptmode import ScriptmodeError, TrainingJob, TrainingJobError, UnreadableJobError
from scriptmode._core.spec.job_description import JobStatus
from scriptmode_cli._options.options import attach_job, jobs_argument, json_option, locating_options
from scriptmode_cli._program import output
from scriptmode_cli._program.error_reporting import raise_errors
from scriptmode_runtime.contract import DEFAULT_STOP_GRACE

#: Between two looks at a job whose files cannot be read.
_POLL_SECONDS = 0.2


@click.command()
@jobs_argument
@locating_options
@click.option("--now", is_flag=True, help="Send SIGKILL 1.5 seconds after SIGTERM, also to a job that is stopping.")
@click.option("--wait", is_flag=True, help="Wait until the jobs have ended.")
@json_option
def stop(jobs: tuple[str, ...], *, last: bool, platform: str | None, now: bool, wait: bool, as_json: bool) -> None:
    """Stop each JOB.

    Its processes get SIGTERM, and SIGKILL after 120 seconds, in which the script can save its state.

    Exit code: 0 if every job was told to stop or had already ended; 1 if one of them could not be stopped.

    \b
    Example:
      scriptmode stop mnist-1 mnist-2 --wait
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    # Each job, and whether it was running.
    stopped: list[tuple[TrainingJob, bool]] = []
    failures: list[ScriptmodeError] = []
    for name in jobs or (None,):
        try:
            stopped.append(_stop_unless_ended(name, last=last, platform=platform, now=now))
        except ScriptmodeError as error:  # noqa: PERF203 - the other jobs must be stopped too
            failures.append(error)
    kill = "SIGKILL 1.5 s after SIGTERM" if now else f"SIGKILL {DEFAULT_STOP_GRACE:g} s after SIGTERM by default"
    if wait and not as_json and any(was_running for _, was_running in stopped):
        output.echo(f"waiting for the end, {kill}; results are uploaded then", err=True)
    statuses = []
    for job, was_running in stopped:
        try:
            statuses.append((job, was_running, _status(job, wait=wait)))
        except ScriptmodeError as error:  # noqa: PERF203 - the other jobs must be reported too
            failures.append(error)
    lines = (_result_text(job, status, kill, was_running=ran, has_waited=wait) for job, ran, status in statuses)
    document = [{"job": job.name, "status": status} for job, _, status in statuses]
    output.print_result(document, "\n".join(lines), as_json=as_json)
    raise_errors(failures, as_json=as_json)


def _stop_unless_ended(name: str | None, *, last: bool, platform: str | None, now: bool) -> tuple[TrainingJob, bool]:
    """Stop a job; return it, and whether it was running."""
    try:
        job = attach_job(name, last=last, platform=platform)
        if job.ended:
            return job, False
    except UnreadableJobError as error:
        if not error.is_running:
            raise
        from scriptmode_local import LocalPlatform

        job = TrainingJob(error.job_name, LocalPlatform())
    job.stop(now=now)
    return job, True


def _status(job: TrainingJob, *, wait: bool) -> str:
    if wait:
        with suppress(TrainingJobError, UnreadableJobError):
            job.wait()
    while True:
        try:
            status = JobStatus(job.status)
        except UnreadableJobError as error:
            status = JobStatus.STOPPING if error.is_running else JobStatus.STOPPED
        if status.has_ended or not wait:
            return str(status)
        time.sleep(_POLL_SECONDS)


def _result_text(job: TrainingJob, status: str, kill: str, *, was_running: bool, has_waited: bool) -> str:
    if not was_running:
        return f"training job {job.name} has already ended: {output.status_text(status)}"
    if has_waited or JobStatus(status).has_ended:
        # Even without waiting: a job whose agent does not answer is ended immediately.
        return f"training job {job.name} has ended: {output.status_text(status)}"
    return f"training job {job.name} is stopping, {kill}; follow it: scriptmode logs -f {job.name}"
