"""``scriptmode stop JOB...``."""

from __future__ import annotations

import click

from scriptmode import ScriptmodeError, TrainingJob, TrainingJobError
from scriptmode.cli import completers, output
from scriptmode.cli.error_reporting import report_error
from scriptmode.cli.options import account_options, attach_job, json_option, last_option, platform_option

_ENDED = ("Completed", "Failed", "Stopped")


@click.command()
@click.argument("jobs", metavar="JOB...", nargs=-1, shell_complete=completers.complete_running_job)
@last_option
@platform_option()
@account_options
@click.option("--wait", is_flag=True, help="Until they have ended.")
@json_option
def stop(jobs: tuple[str, ...], *, last: bool, platform: str | None, wait: bool, as_json: bool) -> None:
    """Ask each JOB to stop: SIGTERM, then 120 s to save what it has.

    Exit code: 0 when each was asked, or had ended already; 1 when one of them could not be asked.

    \b
    Example:
      scriptmode stop mnist-1 mnist-2 --wait
    """  # noqa: D301 - click's mark for lines to be left as they are
    found: list[tuple[TrainingJob, bool]] = []
    failures: list[ScriptmodeError] = []
    for name in jobs or (None,):
        try:
            job = attach_job(name, last=last, platform=platform)
            found.append((job, _asked(job)))
        except ScriptmodeError as error:  # noqa: PERF203 - the other jobs are to be stopped all the same
            failures.append(error)
    statuses = []
    for job, is_asked in found:
        try:
            statuses.append((job, is_asked, _ended(job) if wait else job.status))
        except ScriptmodeError as error:  # noqa: PERF203 - and told all the same
            failures.append(error)
    if as_json:
        output.print_json([{"job": job.name, "status": status} for job, _, status in statuses])
    else:
        for job, is_asked, status in statuses:
            output.echo(_told(job, status, is_asked=is_asked, has_waited=wait))
    for failure in failures[:-1]:
        report_error(failure, as_json=as_json)
    if failures:
        raise failures[-1]


def _asked(job: TrainingJob) -> bool:
    """Ask a job to stop, unless it has ended."""
    if job.ended:
        return False
    job.stop()
    return True


def _ended(job: TrainingJob) -> str:
    try:
        job.wait()
    except TrainingJobError as error:
        return error.status
    return job.status


def _told(job: TrainingJob, status: str, *, is_asked: bool, has_waited: bool) -> str:
    if not is_asked:
        return f"training job {job.name} has ended already: {status}"
    if has_waited or status in _ENDED:
        # Without waiting: a job whose agent did not answer is ended at once.
        return f"training job {job.name} has ended: {status}"
    return f"training job {job.name} is stopping; follow it: {_follows()} {job.name}"


def _follows() -> str:
    """Give the command that follows a job, in the words of the command that was called."""
    path = click.get_current_context().command_path
    return "scriptmode jobs stream-logs" if path.endswith(" jobs cancel") else "scriptmode logs -f"
