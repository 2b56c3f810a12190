"""``scriptmode list``."""

from __future__ import annotations

from datetime import datetime, timezone

import click

from scriptmode import TrainingJob


@click.command("list")
@click.option("--platform", type=click.Choice(["local", "sagemaker"]), default="local", show_default=True)
@click.option("--status", help="Completed, Failed, InProgress, Stopping or Stopped.")
@click.option("--name", help="Part of the job's name.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="Created after this time, UTC.")
@click.option("--limit", type=click.IntRange(min=1), help="The newest ones only.")
def list_jobs(
    platform: str, *, status: str | None, name: str | None, since: datetime | None, limit: int | None
) -> None:
    """List training jobs, newest first, with the time of their creation in UTC.

    \b
    Example:
      scriptmode list --platform sagemaker --status Failed --since 2026-01-31
    """  # noqa: D301 - click's mark for lines to be left as they are
    after = None if since is None else since.replace(tzinfo=timezone.utc)
    jobs = TrainingJob.list(platform, name_contains=name, status=status, created_after=after, limit=limit)
    if not jobs:
        where = "on this machine" if platform == "local" else "in this account and Region"
        which = "such training jobs" if status or name or since else "training jobs"
        click.echo(f"no {which} {where}", err=True)
    for job in jobs:
        created = job["CreationTime"].astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
        click.echo(f"{created}Z  {job['TrainingJobStatus']:<11}  {job['TrainingJobName']}")
