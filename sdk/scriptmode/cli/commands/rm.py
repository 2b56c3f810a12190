"""``scriptmode rm JOB...``."""

from __future__ import annotations

import click

from scriptmode import DataError, ScriptmodeError, TrainingJob, UnreadableJobError
from scriptmode.cli import completers, output
from scriptmode.cli.error_reporting import report_error
from scriptmode.cli.options import json_option
from scriptmode.platforms.registry import delete_local_job


@click.command()
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True, shell_complete=completers.complete_any_job)
@click.option("-f", "--force", is_flag=True, help="End a JOB that still runs; it has no time to save anything.")
@json_option
def rm(jobs: tuple[str, ...], *, force: bool, as_json: bool) -> None:
    """Delete each JOB of this machine, with its log and what it left.

    What it left at another output_path stays there. A JOB whose folder is damaged is deleted like any other.

    Exit code: 0 when each was deleted; 1 when one of them was not.

    \b
    Example:
      scriptmode rm mnist-1 mnist-2
    """  # noqa: D301 - click's mark for lines to be left as they are
    deleted: list[str] = []
    failures: list[ScriptmodeError] = []
    for name in dict.fromkeys(jobs):
        try:
            if not force:
                _require_ended(name)
            delete_local_job(name)
            deleted.append(name)
        except ScriptmodeError as error:  # noqa: PERF203 - the other jobs are to be deleted all the same
            failures.append(error)
    if as_json:
        output.print_json([{"job": name} for name in deleted])
    else:
        for name in deleted:
            output.echo(f"training job {name} is deleted")
    for failure in failures[:-1]:
        report_error(failure, as_json=as_json)
    if failures:
        raise failures[-1]


def _require_ended(name: str) -> None:
    """Raise `DataError` for a job that still runs."""
    try:
        status = TrainingJob.attach(name, platform="local").status
    except UnreadableJobError as error:
        if error.is_running:
            raise
        return
    if status in ("InProgress", "Stopping"):
        raise DataError(
            f"training job {name} is {status}; stop it first, scriptmode stop {name} --wait, or give up what it has: "
            f"scriptmode rm --force {name}"
        )
