"""``scriptmode list``."""

from __future__ import annotations

import gc
import math
import shutil
import sys
from contextlib import suppress
from typing import Any

import click

from scriptmode import ScriptmodeError, TrainingJob
from scriptmode._core.platforms.registry import resolve_platform
from scriptmode._core.spec.service_values import STATUSES
from scriptmode._core.text.terminal_text import escape_unprintable
from scriptmode_cli._options.options import account_options, json_option, no_jobs_text, platform_option
from scriptmode_cli._options.values import convert_time
from scriptmode_cli._program import output


@click.command("list")
@platform_option("Platform whose jobs are listed. [default: local]")
@account_options
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="List jobs with this status only.")
@click.option("--name", "name_contains", metavar="TEXT", help="List jobs whose name contains TEXT only.")
@click.option(
    "--since", "created_after", callback=convert_time, metavar="AGE|TIME",
    help="List jobs created after this time only: an age such as 30min, 1h or 7d, or a local time such as 2026-01-31 "
    "or 2026-01-31T12:00:00 (2026-01-31T12:00:00Z is UTC).",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="List the newest N jobs only.")
@click.option("--wide", "is_wide", is_flag=True, help="Add where the hosts of jobs on a cluster run; cut no column.")
@json_option
def list_jobs(platform: str | None, *, limit: int | None, is_wide: bool, as_json: bool, **wanted: Any) -> None:
    """List training jobs, newest first.

    The columns are the local time of creation, the age, the status, the time from creation to end without that in the
    queue, the distribution, the number of hosts, the last value of a metric (these three not of Amazon SageMaker), the
    Region where there are jobs of several, the name, and with --wide the places of the hosts. A column that is empty
    for all jobs is left out, and a terminal that is narrow shows fewer of them; programs read --json.

    A job of this machine whose files cannot be read has the status Unreadable. The reason, and a warning about a job
    whose agent does not answer, are printed to stderr; with --json they are the job's StatusMessage.

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
    if is_wide:
        where = resolve_platform(platform)
        for job in jobs:
            # One that was removed meanwhile, or whose files cannot be read, has none.
            with suppress(ScriptmodeError):
                activity = where.activity(job["TrainingJobName"])
                job["Places"] = {host: doing.place for host, doing in activity.items() if doing.place}
    if as_json:
        output.print_json(jobs)
        return
    if not jobs:
        which = "such training jobs" if any(wanted.values()) else "training jobs"
        output.echo(no_jobs_text(platform, which), err=True)
        return
    heads, *rows = jobs.table(shutil.get_terminal_size().columns if sys.stdout.isatty() and not is_wide else math.inf)
    output.print_columns([heads, *rows], status_column=heads.index("STATUS"))
    for job in jobs:
        if note := job.get("StatusMessage"):
            output.echo(f"{job['TrainingJobName']}: {escape_unprintable(note)}", err=True)
