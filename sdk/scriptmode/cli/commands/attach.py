"""``scriptmode attach JOB``."""

from __future__ import annotations

from dataclasses import replace

import click

from scriptmode import TrainingJob
from scriptmode.cli import following, output
from scriptmode.cli.description_text import render_description
from scriptmode.cli.error_reporting import EXIT_CODES_HELP
from scriptmode.cli.options import job_options, json_option
from scriptmode.core.platforms.registry import queue_position


@click.command(epilog=EXIT_CODES_HELP)
@job_options
@following.plain_option
@json_option
def attach(job: TrainingJob, *, is_plain: bool, as_json: bool) -> None:
    """Print a summary of JOB and, while it runs, follow its log.

    With --json the output is one JSON object for each line: the description of the job, each line of its log, and the
    description after the job has ended.

    \b
    Example:
      scriptmode attach --last
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    description = job.platform.describe(job.name)
    if not as_json:
        # The error at the end has the failure reason, with the next step.
        shown = description.queued(queue_position(job.platform, job.name))
        output.echo(render_description(replace(shown, failure_reason=""), colour_status=output.status_text))
        if job.ended:
            job.wait()
        else:
            following.follow_job(job, is_plain=is_plain)
        return
    output.print_json_line({"description": description.response})
    with following.hint_on_interrupt(job, as_json=True):
        output.print_log_as_json(job.logs(follow=True))
        output.print_json_line({"description": job.describe()})
        job.wait()
