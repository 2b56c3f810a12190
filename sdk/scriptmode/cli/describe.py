"""``scriptmode describe JOB``."""

from __future__ import annotations

import json

import click

from scriptmode import TrainingJob


@click.command()
@click.argument("job")
def describe(job: str) -> None:
    """Print what the service says of JOB, as JSON."""
    click.echo(json.dumps(TrainingJob.attach(job).describe(), indent=2, default=str))
