"""``scriptmode metrics JOB``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from scriptmode.cli import completers, output
from scriptmode.cli.options import job_options_before, json_option

if TYPE_CHECKING:
    from scriptmode import TrainingJob


@click.command()
@job_options_before("names")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=completers.complete_metric)
@json_option
def metrics(job: TrainingJob, names: tuple[str, ...], *, as_json: bool) -> None:
    """Print what the metric definitions of JOB found in its log: a table, a column for each metric.

    Where several hosts have values, each host's stand on lines of their own.

    Each NAME is a metric's; without one all are printed. With --last every word is a NAME.

    With --json a list of metric_name, value, timestamp and host (null where the platform does not keep them).

    \b
    Example:
      scriptmode metrics mnist-1 loss accuracy
      scriptmode metrics --last --json
    """  # noqa: D301 - click's mark for lines to be left as they are
    found = job.metrics()
    if names:
        found = found.of(*names)
    if as_json:
        output.print_json(found)
    else:
        output.echo(found.table())
