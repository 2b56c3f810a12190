"""``scriptmode list``."""

from __future__ import annotations

import gc
import sys
from datetime import datetime, timezone
from typing import Any

import click

from scriptmode import TrainingJob
from scriptmode.cli import output
from scriptmode.cli.options import account_options, json_option, no_jobs_text, platform_option
from scriptmode.cli.values import WholeNumber
from scriptmode.messages import format_duration

_STATUSES = ("InProgress", "Stopping", "Completed", "Failed", "Stopped")


@click.command("list")
@platform_option("Platform whose jobs are listed. [default: local]")
@account_options
@click.option("--status", type=click.Choice(_STATUSES, case_sensitive=False), help="List jobs with this status only.")
@click.option("--name", metavar="TEXT", help="List jobs whose name contains TEXT only.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    metavar="TIME",
    help="List jobs created after this time (UTC) only, such as 2026-01-31 or 2026-01-31T12:00:00.",
)
@click.option("--limit", type=WholeNumber(min=1), metavar="N", help="List the newest N jobs only.")
@json_option
def list_jobs(platform: str | None, *, limit: int | None, as_json: bool, **wanted: Any) -> None:
    """List training jobs, newest first.

    The columns are the time of creation (UTC), the status, the time from creation to end, and the name.

    A job of this machine whose files cannot be read has the status Unreadable. The reason, and a warning about a job
    whose agent does not answer, are printed to stderr; with --json they are the job's StatusMessage.

    \b
    Example:
      scriptmode list --status Failed --limit 5
      scriptmode list --platform sagemaker --since 2026-01-31 --json
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    # There may be thousands of jobs, and all objects live until the command ends: collecting garbage costs time only.
    gc.disable()
    click.get_current_context().call_on_close(gc.enable)
    since: datetime | None = wanted["since"]
    after = None if since is None else since.replace(tzinfo=timezone.utc)
    name, status = wanted["name"], wanted["status"]
    jobs = TrainingJob.list(platform, name_contains=name, status=status, created_after=after, limit=limit)
    if as_json:
        output.print_json(jobs)
        return
    if not jobs:
        which = "such training jobs" if status or name or since else "training jobs"
        output.echo(no_jobs_text(platform, which), err=True)
        return
    head = [("CREATED", "STATUS", "TIME", "NAME")] if sys.stdout.isatty() else []
    output.print_columns([*head, *(_row(job) for job in jobs)])
    for job in jobs:
        if note := job.get("StatusMessage"):
            output.echo(f"{job['TrainingJobName']}: {output.escape_unprintable(note)}", err=True)


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    ended = job.get("TrainingEndTime")
    took = "-" if ended is None else format_duration((ended - job["CreationTime"]).total_seconds())
    return output.format_time(job["CreationTime"]), job["TrainingJobStatus"], took, job["TrainingJobName"]
