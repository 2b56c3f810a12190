"""``scriptmode run PROGRAM``."""

from __future__ import annotations

from typing import Any

import click

from scriptmode_cli._options import estimator_options, following
from scriptmode_cli._options.run_options import RunOptions
from scriptmode_cli._program.error_reporting import EXIT_CODES_HELP, translate_errors_to_options


@click.command(cls=estimator_options.ProgramCommand, epilog=EXIT_CODES_HELP)
@estimator_options.estimator_options
@estimator_options.queue_option
@following.wait_options
def run(*, wait: bool, is_plain: bool, as_json: bool, **given: Any) -> None:
    """Start a training job, and follow its log until it ends.

    PROGRAM is the training script, and ARGUMENTS are passed to it. The options are named after the arguments of
    scriptmode.Estimator; --set sets arguments that have no option of their own.

    \b
    Example:
      scriptmode run train.py --instance-count 2 --distribution mpi --processes-per-host 2 \\
        --input train=data/train --metric 'loss=loss=([0-9.]+)' -- --epochs 5
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    options = RunOptions.parse(given)
    with translate_errors_to_options(estimator_options.OPTION_NAMES):
        job = options.estimator().fit(options.inputs, wait=False, job_name=options.job_name)
    following.follow_or_print(job, wait=wait, is_plain=is_plain, as_json=as_json)
