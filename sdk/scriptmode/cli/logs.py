"""``scriptmode logs JOB``."""

from __future__ import annotations

import click

from scriptmode import log_view
from scriptmode.cli.jobs import job_named
from scriptmode.estimator import follow as follow_to_the_end


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ended; the exit code tells how.")
@click.argument("job")
def logs(job: str, follow: bool) -> None:  # noqa: FBT001 - click gives it by name
    """Print JOB's log, each line with its host."""
    found = job_named(job)
    if follow:
        follow_to_the_end(found)
    else:
        log_view.show(found.logs())
