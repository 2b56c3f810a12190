"""``scriptmode run PROGRAM``."""

from __future__ import annotations

from typing import Any

import click

from scriptmode.cli import estimator_options, following, run_options
from scriptmode.cli.error_reporting import EXIT_CODES_HELP
from scriptmode.cli.error_translation import translate_errors_to_options
from scriptmode.cli.program_arguments import ProgramCommand, arguments_after_dashes


@click.command(cls=ProgramCommand, epilog=EXIT_CODES_HELP)
@estimator_options.estimator_options
@following.wait_options
def run(*, wait: bool, is_plain: bool, as_json: bool, **given: Any) -> None:
    """Start a training job from options or a file, and follow it to its end.

    Options say what arguments of scriptmode.Estimator say, and --set those that have no option of their own. What
    follows -- is PROGRAM's.

    \b
    Example:
      scriptmode run train.py --instance-count 2 --distribution mpi --processes-per-host 2 \\
        --input train=data/train --metric 'loss=loss=([0-9.]+)' -- --epochs 5

    \b
    From a file, whose paths begin at its own folder:
      scriptmode run --file job.toml --instance-type ml.m5.xlarge

    \b
      entry_point = "train.py"
      instance_count = 2
      distribution = "mpi"
      hyperparameters = { epochs = 5 }
      [inputs]
      train = "data/train"
      eval = { s3_data = "s3://bucket/eval", input_mode = "FastFile" }
    """  # noqa: D301 - click's mark for lines to be left as they are
    following.require_view_to_follow(wait=wait, is_plain=is_plain, as_json=as_json)
    wanted = run_options.parse_run_options(given, arguments_after_dashes())
    with translate_errors_to_options(wanted.flags):
        job = wanted.estimator().fit(wanted.inputs, wait=False, job_name=wanted.job_name)
    following.follow_or_print(job, wait=wait, is_plain=is_plain, as_json=as_json)
