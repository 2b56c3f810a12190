"""``scriptmode rehearse PROGRAM``."""

from __future__ import annotations

from typing import Any

import click

from scriptmode_cli._options import estimator_options
from scriptmode_cli._options.program_arguments import ProgramCommand
from scriptmode_cli._options.run_options import RunOptions
from scriptmode_cli._program import output
from scriptmode_cli._program.error_reporting import FAILED, translate_errors_to_options

_FAULTS = ("kill", "lose-host", "interrupt")


@click.command(cls=ProgramCommand)
@estimator_options.estimator_options
@click.option(
    "--step-metric", metavar="NAME", required=True, help="Metric of --metric whose values are the steps of the program."
)
@click.option(
    "--fault", "faults", metavar="FAULT", multiple=True,
    help="A fault, with its settings after a colon: kill:host=algo-2,at=60. May be repeated. "
    f"One of {', '.join(_FAULTS)}. [default: all of them]",
)  # fmt: skip
def rehearse(*, faults: tuple[str, ...], step_metric: str, as_json: bool, **given: Any) -> None:
    """Find out what faults do to a training job, by letting them happen to it on this machine.

    The job runs once undisturbed and once for each fault; a job that ends is started again, and goes on from its
    checkpoints where --checkpoint-s3-uri is given. Nothing is written there: each job has a directory of its own. The
    exit code is 1 if a job did not recover, or lost all that it had done. PROGRAM, the options, and ARGUMENTS are
    those of scriptmode run; each host is a process of this machine.

    A fault happens after half of the steps, or at=60 (a step). Other settings are host=NAME (kill) and notice=SECONDS
    (interrupt).

    \b
    Example:
      scriptmode rehearse train.py --metric 'step=step ([0-9]+)' --step-metric step --checkpoint-s3-uri checkpoints
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    options = RunOptions.parse(given)
    options.require_no_name("rehearse")
    names = {**estimator_options.OPTION_NAMES, "faults": "--fault", "step_metric": "--step-metric"}
    with translate_errors_to_options(names):
        rehearsal = options.estimator().rehearse(options.inputs, faults or None, step_metric=step_metric)
    output.print_result(rehearsal.to_dict() if as_json else None, str(rehearsal), as_json=as_json)
    if not rehearsal.ok:
        raise click.exceptions.Exit(FAILED)
