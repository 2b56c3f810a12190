"""``scriptmode rerun JOB``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from scriptmode.cli import following
from scriptmode.cli.error_reporting import EXIT_CODES_HELP
from scriptmode.cli.error_translation import translate_errors_to_options
from scriptmode.cli.options import job_name_option, job_options, json_option
from scriptmode.cli.values import parse_number_or_text, parse_pairs

if TYPE_CHECKING:
    from scriptmode import TrainingJob

_FLAGS = {
    "job_name": "--job-name",
    "instance_count": "--instance-count",
    "max_run": "--max-run",
    "max_wait": "--max-wait",
}


@click.command(epilog=EXIT_CODES_HELP)
@job_options
@job_name_option("Of the new job. [default: the old one's, with the time]")
@click.option(
    "-p", "--hyperparameter", "parameters", metavar="NAME=VALUE", multiple=True,
    help="Beside those of JOB, or instead of one of them; may be repeated.",
)  # fmt: skip
@click.option("--instance-count", type=click.IntRange(min=1), metavar="N", help="So many hosts instead.")
@click.option("--max-run", type=click.IntRange(min=1), metavar="SECONDS", help="So much time instead.")
@click.option(
    "--max-wait", type=click.IntRange(min=1), metavar="SECONDS",
    help="Of a spot job: so much time, its waits included. [default: as much more as --max-run]",
)  # fmt: skip
@following.wait_options
@json_option
def rerun(job: TrainingJob, *, parameters: tuple[str, ...], **given: Any) -> None:
    """Start JOB once more under a new name, and follow it to its end.

    The new job has the same source archive, inputs, tags and place for checkpoints. Session tag chaining and what a
    LocalPlatform was given are not taken over: no description tells them.

    \b
    Example:
      scriptmode rerun mnist-1 -p epochs=3 --instance-count 2
    """  # noqa: D301 - click's mark for lines to be left as they are
    following.require_view_to_follow(wait=given["wait"], is_plain=given["is_plain"], as_json=given["as_json"])
    changed = {name: parse_number_or_text(value) for name, value in parse_pairs("-p", parameters, "epochs=3").items()}
    with translate_errors_to_options(_FLAGS):
        again = job.rerun(hyperparameters=changed, **{name: given.pop(name) for name in _FLAGS})
    following.follow_or_print(again, **given)
