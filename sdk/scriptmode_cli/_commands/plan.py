"""``scriptmode plan PROGRAM``."""

from __future__ import annotations

from typing import Any

import click

from scriptmode_cli._options import estimator_options
from scriptmode_cli._options.run_options import RunOptions
from scriptmode_cli._program import output
from scriptmode_cli._program.error_reporting import translate_errors_to_options


@click.command(cls=estimator_options.ProgramCommand)
@estimator_options.estimator_options
def plan(*, as_json: bool, **given: Any) -> None:
    """Show what a training job would run, without starting it.

    The plan is its essential lines; with --json everything: the request, and the files, variables and processes of the
    hosts. PROGRAM, the options, and ARGUMENTS are those of scriptmode run.

    \b
    Example:
      scriptmode plan train.py --instance-count 2 --distribution mpi -- --epochs 5
      scriptmode plan train.py --json
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    options = RunOptions.parse(given)
    with translate_errors_to_options(estimator_options.OPTION_NAMES):
        job_plan = options.estimator().plan(options.inputs, job_name=options.job_name)
    if as_json:
        output.print_json(job_plan.to_dict())
        return
    output.echo(job_plan.text(width=output.terminal_width()))
    output.echo("\nAll of it, with the request and each host's files: --json")
