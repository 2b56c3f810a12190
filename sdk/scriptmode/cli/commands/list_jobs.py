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
from scriptmode.display.formatting import format_duration

_STATUSES = ("InProgress", "Stopping", "Completed", "Failed", "Stopped")


@click.command("list")
@platform_option("Whose jobs. [default: local]")
@account_options
@click.option("--status", type=click.Choice(_STATUSES, case_sensitive=False), help="In this status.")
@click.option("--name", metavar="TEXT", help="With this in the name.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="Created after this time, UTC.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="The newest ones only.")
@json_option
def list_jobs(platform: str | None, *, limit: int | None, as_json: bool, **wanted: Any) -> None:
    """List training jobs, newest first: when each was created (UTC), its status, how long it took, its name.

    A job of this machine that cannot be read is Unreadable. What is wrong with it, or with a job whose agent does not
    answer, is printed on stderr, and with --json is the job's StatusMessage.

    \b
    Example:
      scriptmode list --status Failed --limit 5
      scriptmode list --platform sagemaker --since 2026-01-31 --json
    """  # noqa: D301 - click's mark for lines to be left as they are
    # There may be thousands, and all of it lives as long as the command: nothing is to be looked for in vain.
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
