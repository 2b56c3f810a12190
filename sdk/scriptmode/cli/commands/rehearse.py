"""``scriptmode rehearse PROGRAM``."""

from __future__ import annotations

from typing import Any

import click

from scriptmode.cli import completers, estimator_options, output
from scriptmode.cli.error_reporting import FAILED, translate_errors_to_options
from scriptmode.cli.program_arguments import ProgramCommand, arguments_after_dashes
from scriptmode.cli.run_options import RunOptions

_FAULTS = (
    "kill", "freeze", "lose-host", "interrupt", "full-disk", "slow-input", "broken-input", "slow-host", "random"
)  # fmt: skip


@click.command(cls=ProgramCommand)
@estimator_options.estimator_options
@click.option(
    "--fault", "faults", metavar="FAULT", multiple=True, shell_complete=completers.complete_choice(*_FAULTS),
    help="A fault, with its settings after a colon: kill:host=algo-2,at=60. May be repeated. "
    f"One of {', '.join(_FAULTS)}. [default: kill, lose-host and interrupt]",
)  # fmt: skip
def rehearse(*, faults: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Find out what faults do to a training job, by letting them happen to it on this machine.

    The job runs once undisturbed and once for each fault; a job that ends is started again, and goes on from its
    checkpoints where --checkpoint-s3-uri is given. Nothing is written there: each job has a directory of its own. The
    exit code is 1 if a job hung, had a wrong reason, or lost all that it had done, and if no fault happened. PROGRAM,
    the options, and ARGUMENTS are those of scriptmode run; each host is a process of this machine.

    A fault happens at 53 % of the steps that the log names, or at=60 (a step), at=5s, at=20%, at=Downloading. Other
    settings are host=NAME and process=N (kill), notice=SECONDS (interrupt), rate=BYTES (slow-input), factor=N
    (slow-host), n=N and seed=N (random).

    \b
    Example:
      scriptmode rehearse train.py --instance-count 2 --checkpoint-s3-uri checkpoints
      scriptmode rehearse train.py --fault kill:at=60 --fault interrupt:notice=10 --json
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    options = RunOptions.parse(given, arguments_after_dashes())
    options.require_no_name("rehearse")
    with translate_errors_to_options({**options.options_by_argument, "faults": "--fault"}):
        found = options.estimator().rehearse(options.inputs, faults or None)
    output.print_result(found.to_dict() if as_json else None, str(found), as_json=as_json)
    if not found.ok:
        raise click.exceptions.Exit(FAILED)
