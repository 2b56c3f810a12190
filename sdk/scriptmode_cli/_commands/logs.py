"""``scriptmode logs JOB``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from scriptmode import TrainingJob
from scriptmode._core.handle import log_lines
from scriptmode_cli._options import following
from scriptmode_cli._options.options import job_options, json_option
from scriptmode_cli._program import output
from scriptmode_cli._program.error_reporting import EXIT_CODES_HELP


@click.command(epilog=EXIT_CODES_HELP.replace("Exit code", "Exit code with --follow", 1))
@job_options
@click.option(
    "-f", "--follow", is_flag=True, help="Follow the log until the job ends, and exit with the exit code of the job."
)
@click.option(
    "--host", "hosts", multiple=True, metavar="NAME",
    help="Print the lines of this host only, such as algo-2. May be repeated.",
)  # fmt: skip
@click.option(
    "--tail", type=click.IntRange(min=0), metavar="N",
    help="Print only the last N lines of each host; --follow continues after them.",
)  # fmt: skip
@click.option("--timestamps", is_flag=True, help="Print the local time of each line, and no live view.")
@following.plain_option
@json_option
def logs(job: TrainingJob, *, follow: bool, timestamps: bool, is_plain: bool, as_json: bool, **chosen: Any) -> None:
    """Print the log of JOB, each line with the name of its host.

    Lines that are there are printed in the order of their times. Of a progress bar its last state is printed.

    With --json the output is one JSON object for each line of the log, with all states of a progress bar.

    \b
    Example:
      scriptmode logs -f --last
      scriptmode logs mnist-1 --host algo-2 --tail 20
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    if follow and not (as_json or timestamps):
        following.follow_job(job, is_plain=is_plain, **chosen)
        return
    with following.hint_on_interrupt(job, follow=follow, as_json=as_json):
        if not follow and chosen["tail"] != 0 and next(iter(job.logs(**chosen)), None) is None:
            _report_no_log(job, chosen["hosts"])
        elif as_json:
            output.print_log_as_json(job.logs(follow=follow, **chosen))
        else:
            job.print_logs(follow=follow, timestamps=timestamps, **chosen)
        if follow:
            job.wait()
            if not as_json:
                log_lines.ended(job.platform.describe(job.name))


def _report_no_log(job: TrainingJob, hosts: Sequence[str]) -> None:
    description = job.platform.describe(job.name)
    status = description.queued(job.platform.queue_position(job.name)).status
    why = f": {description.failure_reason}" if description.failure_reason else ""
    of = f" of {', '.join(hosts)}" if hosts else ""
    output.echo(f"training job {job.name} is {status} and has no log{of}{why}", err=True)
