"""``scriptmode plan PROGRAM``."""

from __future__ import annotations

from typing import Any

import click

from scriptmode.cli import completers, estimator_options, output, run_options
from scriptmode.cli.error_translation import translate_errors_to_options
from scriptmode.cli.program_arguments import ProgramCommand, arguments_after_dashes


@click.command(cls=ProgramCommand)
@estimator_options.estimator_options
@click.option(
    "--against", metavar="JOB", shell_complete=completers.complete_job, help="Show the difference to this job."
)
def plan(*, against: str | None, as_json: bool, **given: Any) -> None:
    """Print what a training job would be and do, and start nothing.

    The request, the files and processes of every host, and what the source archive holds. Options, file and words
    after -- are those of run.

    \b
    Example:
      scriptmode plan train.py --instance-count 2 --distribution mpi -- --epochs 5
      scriptmode plan --file job.toml --against mnist-1 --json
    """  # noqa: D301 - click's mark for lines to be left as they are
    wanted = run_options.parse_run_options(given, arguments_after_dashes())
    with translate_errors_to_options(wanted.flags):
        made = wanted.estimator().plan(wanted.inputs, job_name=wanted.job_name, against=against)
    if as_json:
        output.print_json(made.to_dict())
    else:
        output.echo(str(made))
