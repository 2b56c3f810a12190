"""``scriptmode list``."""

from __future__ import annotations

import gc
import shutil
import sys
from typing import Any

import click

from scriptmode import TrainingJob
from scriptmode.cli import output
from scriptmode.cli.options import account_options, json_option, no_jobs_text, platform_option
from scriptmode.cli.values import convert_time
from scriptmode.core.spec.service_values import STATUSES
from scriptmode.core.text.messages import did_you_mean, pluralize
from scriptmode.core.text.terminal_text import escape_unprintable
from scriptmode.display.job_list import JobList

#: Columns that a terminal does not show if it is too narrow for all, in the order in which they are left out.
_LEFT_OUT = ("CREATED", "REGION", "HOSTS", "KIND", "METRIC", "TIME", "AGE")


def _parse_status(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001 - click's
    """Return the status in its own case; raise `click.BadParameter` for another word."""
    found = next((each for each in STATUSES if value is not None and each.lower() == value.lower()), None)
    if found is None and value is not None:
        raise click.BadParameter(f"{value!r} is not a status; {did_you_mean(value, STATUSES)}")
    return found


@click.command("list")
@platform_option("Platform whose jobs are listed. [default: local]")
@account_options
@click.option(
    "--status",
    callback=_parse_status,
    metavar=f"[{'|'.join(STATUSES)}]",
    help="List jobs with this status only.",
)
@click.option("--name", "name_contains", metavar="TEXT", help="List jobs whose name contains TEXT only.")
@click.option(
    "--since",
    "created_after",
    callback=convert_time,
    metavar="AGE|TIME",
    help="List jobs created after this time only: an age such as 30min, 1h or 7d, or a local time such as 2026-01-31 "
    "or 2026-01-31T12:00:00 (2026-01-31T12:00:00Z is UTC).",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="List the newest N jobs only.")
@json_option
def list_jobs(platform: str | None, *, limit: int | None, as_json: bool, **wanted: Any) -> None:
    """List training jobs, newest first.

    The columns are the local time of creation, the age, the status, the time from creation to end without that in the
    queue, the distribution, the number of hosts, the last value of a metric (of jobs of this machine), the Region where
    there are jobs of several, and the name. A terminal that is narrow shows fewer of them.

    A job of this machine whose files cannot be read has the status Unreadable. The reason, and a warning about a job
    that lost a part of its output or whose agent does not answer, are printed to stderr; with --json they are the job's
    StatusMessage.

    \b
    Example:
      scriptmode list --status Failed --limit 5
      scriptmode list --since 1h
      scriptmode list --platform sagemaker --since 2026-01-31 --json
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    # There may be thousands of jobs, and all objects live until the command ends: collecting garbage costs time only.
    gc.disable()
    click.get_current_context().call_on_close(gc.enable)
    jobs = TrainingJob.list(platform, limit=limit, **wanted)
    if as_json:
        output.print_json(jobs)
        return
    if not jobs:
        which = "such training jobs" if any(wanted.values()) else "training jobs"
        output.echo(no_jobs_text(platform, which), err=True)
        return
    _print_table(jobs)
    names: dict[str, list[str]] = {}
    for job in jobs:
        if note := job.get("StatusMessage"):
            names.setdefault(note, []).append(job["TrainingJobName"])
    for note, of in names.items():
        more = f" and {pluralize(len(of) - 1, 'more job')}" if of[1:] else ""
        output.echo(f"{of[0]}{more}: {escape_unprintable(note)}", err=True)


def _print_table(jobs: JobList) -> None:
    rows = jobs.rows()
    columns = list(jobs.COLUMNS)
    if sys.stdout.isatty():
        widths = {
            name: max(len(name), *(len(row[index]) for row in rows))
            for index, name in enumerate(jobs.COLUMNS)
            # What no job has, as those of Amazon SageMaker, or all have, as one Region.
            if any(row[index] != jobs.NONE for row in rows)
        }
        width = shutil.get_terminal_size().columns
        for name in _LEFT_OUT:
            if sum(widths.values()) + 2 * (len(widths) - 1) > width:
                widths.pop(name, None)
        columns = list(widths)
    indices = [jobs.COLUMNS.index(name) for name in columns]
    shown = [[row[index] for index in indices] for row in rows]
    output.print_columns([columns, *shown], status_column=columns.index("STATUS"))
