"""``scriptmode compare JOB JOB...``."""

from __future__ import annotations

import click

from scriptmode import compare as compare_jobs
from scriptmode.cli import completers, output
from scriptmode.cli.options import account_options, json_option, platform_option
from scriptmode.core.text.terminal_text import escape_unprintable

#: Characters of a value in a terminal or a pipe; --json has all of it.
_MOST = 48


@click.command()
@click.argument("jobs", metavar="JOB JOB...", nargs=-1, required=True, shell_complete=completers.complete_job)
@click.option(
    "--plot",
    metavar="FILE",
    shell_complete=completers.complete_file,
    help="Draw the metrics of all jobs over one another into FILE, such as metrics.png. Needs Matplotlib.",
)
@platform_option()
@account_options
@json_option
def compare(jobs: tuple[str, ...], *, plot: str | None, platform: str | None, as_json: bool) -> None:
    """Compare the settings and the metrics of several jobs.

    The table has the settings and metrics that differ, one column for each job; those that are the same in all jobs
    follow. The value of a metric is its last one, the mean of several hosts.

    \b
    Example:
      scriptmode compare mnist-1 mnist-2
      scriptmode compare mnist-1 mnist-2 mnist-3 --plot metrics.png
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    names = list(dict.fromkeys(jobs))
    if len(names) < 2:  # noqa: PLR2004 - a comparison needs two
        raise click.UsageError(
            f"{names[0]!r} alone is named, but a comparison needs two jobs; name another one: scriptmode list",
            click.get_current_context(),
        )
    found = compare_jobs(*names, platform=platform)
    if plot is not None:
        output.save_figure("--plot", plot, found.plot())
    if as_json:
        output.print_json(found.to_dict())
        return
    rows = [tuple(map(_shorten, row)) for row in found.table()]
    output.print_columns(rows if rows[1:] else [("no setting and no metric differs",)])
    if same := found.same():
        output.echo("\nthe same:")
        output.print_columns([tuple(map(_shorten, row)) for row in same])
    if plot is not None:
        output.echo(f"\nmetrics are drawn in {plot}")


def _shorten(text: str) -> str:
    shown = escape_unprintable(text)
    return shown if len(shown) <= _MOST else f"{shown[: _MOST - 3]}..."
