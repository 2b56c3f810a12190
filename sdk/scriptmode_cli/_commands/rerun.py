"""``scriptmode rerun JOB``."""

from __future__ import annotations

from typing import Any

import click

from scriptmode import TrainingJob
from scriptmode_cli._options import following
from scriptmode_cli._options.options import job_name_option, job_options, json_option
from scriptmode_cli._options.values import parse_number_or_text, parse_pairs
from scriptmode_cli._program.error_reporting import EXIT_CODES_HELP, translate_errors_to_options

_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in ("job_name", "instance_count", "max_run", "max_wait")}


@click.command(epilog=EXIT_CODES_HELP)
@job_options
@job_name_option("Name of the new job. [default: the name of JOB with the current time]")
@click.option(
    "-p", "--hyperparameter", "parameters", metavar="NAME=VALUE", multiple=True,
    help="Hyperparameter to add or to replace. May be repeated.",
)  # fmt: skip
@click.option("--instance-count", type=click.IntRange(min=1), metavar="N", help="Number of hosts. [default: as JOB]")
@click.option(
    "--max-run", type=click.IntRange(min=1), metavar="SECONDS",
    help="Time limit of the job in seconds. [default: as JOB]",
)  # fmt: skip
@click.option(
    "--max-wait", type=click.IntRange(min=1), metavar="SECONDS",
    help="Time limit of a spot job in seconds, including the time it waits for capacity. [default: as JOB, increased "
    "by as much as --max-run]",
)  # fmt: skip
@following.wait_options
@json_option
def rerun(job: TrainingJob, *, parameters: tuple[str, ...], **given: Any) -> None:
    """Start a copy of JOB under a new name, and follow its log until it ends.

    The new job has the same source archive, inputs, tags and checkpoint location. Session tag chaining and the
    arguments of a LocalPlatform are not copied, because the description of a job does not contain them. A job of
    scriptmode serve has the same Region, and waits as JOB did. A job on Slurm has the same settings, such as the
    account, unless the variable SCRIPTMODE_SLURM has others: mem=16G,time=2:00:00

    \b
    Example:
      scriptmode rerun mnist-1 -p epochs=3 --instance-count 2
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    changed = {name: parse_number_or_text(value) for name, value in parse_pairs("-p", parameters, "epochs=3").items()}
    with translate_errors_to_options(_OPTIONS):
        again = job.rerun(hyperparameters=changed, **{name: given.pop(name) for name in _OPTIONS})
    following.follow_or_print(again, **given)
