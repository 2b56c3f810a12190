"""``scriptmode describe JOB``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from scriptmode.cli import output
from scriptmode.cli.description_text import render_description
from scriptmode.cli.options import job_options, json_option
from scriptmode.request.parse import parse_description

if TYPE_CHECKING:
    from scriptmode import TrainingJob


@click.command()
@job_options
@json_option
def describe(job: TrainingJob, *, as_json: bool) -> None:
    """Print a summary of JOB: its status, hosts, script, inputs, hyperparameters and output locations.

    With --json the output is the response of Amazon SageMaker's DescribeTrainingJob, for local jobs too. Of a failed
    job it has one more field: Failure, with host, process, exit_code, signal, exception, hint and traceback.

    \b
    Example:
      scriptmode describe --last
      scriptmode describe mnist-1 --json | jq .SecondaryStatusTransitions
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    description = job.describe()
    if as_json:
        failure = job.failure if description["TrainingJobStatus"] == "Failed" else None
        output.print_json({**description, **({"Failure": asdict(failure)} if failure else {})})
    else:
        output.echo(render_description(parse_description(description)))
