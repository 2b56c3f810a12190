"""``scriptmode stop JOB``."""

from __future__ import annotations

import click

from scriptmode.cli.jobs import job_named


@click.command()
@click.argument("job")
def stop(job: str) -> None:
    """Ask JOB to stop: SIGTERM, then 120 s to save what it has."""
    job_named(job).stop()
    click.echo(f"training job {job} is stopping; follow it: scriptmode logs -f {job}")
