"""``scriptmode stop JOB``."""

from __future__ import annotations

import click

from scriptmode import TrainingJob


@click.command()
@click.argument("job")
def stop(job: str) -> None:
    """Ask JOB to stop: SIGTERM, then 120 s to save what it has."""
    found = TrainingJob.attach(job)
    if found.ended:
        click.echo(f"training job {job} has ended already: {found.status}")
        return
    found.stop()
    click.echo(f"training job {job} is stopping; follow it: scriptmode logs -f {job}")
