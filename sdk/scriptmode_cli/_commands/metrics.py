"""``scriptmode metrics JOB``."""

from __future__ import annotations

import click

from scriptmode import TrainingJob
from scriptmode_cli._options.options import job_options_before, json_option
from scriptmode_cli._program import output


@click.command()
@job_options_before("names")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--plot", metavar="FILE", type=click.Path(dir_okay=False), help="Draw the metrics into FILE, such as loss.png."
)
@json_option
def metrics(job: TrainingJob, names: tuple[str, ...], *, plot: str | None, as_json: bool) -> None:
    """Print the values of the metrics that were found in the log of JOB.

    The output is a table with one column for each metric. If several hosts report values, each host has its own rows.

    NAME selects a metric; the default is all metrics. With --last every argument is a NAME.

    With --json the output is a list of objects with metric_name, value, timestamp and host. The timestamp or the host
    is null if the platform does not store it.

    \b
    Example:
      scriptmode metrics mnist-1 loss accuracy
      scriptmode metrics --last --json
      scriptmode metrics --last loss --plot loss.png
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    rows = job.metrics()
    if names:
        rows = rows.of(*names)
    if plot and as_json:
        raise click.UsageError("--plot writes a picture, and --json prints values: give one of them")
    if plot and "." not in plot:
        raise click.UsageError(f"--plot {plot!r} has no ending; write {plot}.png")
    if plot:
        figure = rows.plot()
        try:
            figure.savefig(plot)
        except ValueError as error:
            # Matplotlib names the endings that it knows.
            raise click.UsageError(f"--plot {plot!r}: {error}") from error
    elif as_json:
        output.print_json(rows)
    else:
        output.echo(rows.table())
