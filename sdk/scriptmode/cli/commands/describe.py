"""``scriptmode describe JOB``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from scriptmode.cli import output
from scriptmode.cli.description_text import render_description
from scriptmode.cli.options import job_options, json_option

if TYPE_CHECKING:
    from scriptmode import TrainingJob


@click.command()
@job_options
@json_option
def describe(job: TrainingJob, *, as_json: bool) -> None:
    """Print what is known of JOB: status, hosts, inputs, hyperparameters, places.

    With --json in the service's own shape, DescribeTrainingJob's.

    \b
    Example:
      scriptmode describe --last
      scriptmode describe mnist-1 --json | jq .SecondaryStatusTransitions
    """  # noqa: D301 - click's mark for lines to be left as they are
    description = job.describe()
    if as_json:
        output.print_json(description)
    else:
        output.echo(render_description(description))
