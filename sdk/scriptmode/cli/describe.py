"""``scriptmode describe JOB``."""

from __future__ import annotations

import json

import click

from scriptmode.cli.jobs import job_named


@click.command()
@click.argument("job")
def describe(job: str) -> None:
    """Print what the service says of JOB, as JSON."""
    click.echo(json.dumps(job_named(job).describe(), indent=2, default=str))
