"""``scriptmode logs JOB``."""

from __future__ import annotations

import click

from scriptmode import TrainingJob


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ended; exit code 1 unless it completed.")
@click.argument("job")
def logs(job: str, follow: bool) -> None:  # noqa: FBT001 - click gives it by name
    """Print JOB's log, each line with its host."""
    found = TrainingJob.attach(job)
    if follow:
        found.follow()
    else:
        found.print_logs()
