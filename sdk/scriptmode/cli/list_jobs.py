"""``scriptmode list``."""

from __future__ import annotations

import click

from scriptmode.platforms.local import LocalPlatform


@click.command("list")
def list_jobs() -> None:
    """List this machine's training jobs, newest first."""
    jobs = LocalPlatform().list()
    if not jobs:
        click.echo("no training jobs on this machine", err=True)
    for job in jobs:
        created = job["CreationTime"].strftime("%Y-%m-%d %H:%M:%S")
        click.echo(f"{created}  {job['TrainingJobStatus']:<11}  {job['TrainingJobName']}")
