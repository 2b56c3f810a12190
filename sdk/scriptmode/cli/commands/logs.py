"""``scriptmode logs JOB``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from scriptmode.cli import completers, following, output
from scriptmode.cli.error_reporting import EXIT_CODES_HELP
from scriptmode.cli.options import job_options, json_option

if TYPE_CHECKING:
    from scriptmode import TrainingJob


@click.command(epilog=f"With --follow: {EXIT_CODES_HELP[0].lower()}{EXIT_CODES_HELP[1:]}")
@job_options
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ended; the exit code is then the job's.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    shell_complete=completers.complete_host,
    help="Of this host, such as algo-2; may be repeated.",
)
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Of each host the last N lines so far.")
@following.plain_option
@json_option
def logs(job: TrainingJob, *, follow: bool, is_plain: bool, as_json: bool, **chosen: Any) -> None:
    """Print JOB's log, each line with its host; with --json one object a line.

    \b
    Example:
      scriptmode logs -f --last
      scriptmode logs mnist-1 --host algo-2 --tail 20
    """  # noqa: D301 - click's mark for lines to be left as they are
    is_whole = not chosen["hosts"] and chosen["tail"] is None
    if follow and is_whole and not as_json:
        following.follow_job(job, is_plain=is_plain)
        return
    with following.hint_on_interrupt(job, follow=follow, as_json=as_json):
        if as_json:
            output.print_log_as_json(job.logs(follow=follow, **chosen))
        else:
            job.print_logs(follow=follow, **chosen)
        if follow:
            job.wait()
