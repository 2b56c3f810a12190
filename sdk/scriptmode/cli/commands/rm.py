"""``scriptmode rm JOB...``."""

from __future__ import annotations

import click

from scriptmode import DataError, ScriptmodeError, TrainingJob, UnreadableJobError
from scriptmode.cli import completers, output
from scriptmode.cli.error_reporting import report_error
from scriptmode.cli.options import json_option
from scriptmode.core.platforms.registry import local_platform


@click.command()
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True, shell_complete=completers.complete_any_job)
@click.option("-f", "--force", is_flag=True, help="Kill JOB if it still runs, without time to save anything.")
@json_option
def rm(jobs: tuple[str, ...], *, force: bool, as_json: bool) -> None:
    """Delete each JOB of this machine, including its log and its results.

    Files that a job wrote to its own output_path outside the job's directory are kept. A job whose files are damaged is
    deleted too.

    Exit code: 0 if every job was deleted; 1 if one of them was not.

    \b
    Example:
      scriptmode rm mnist-1 mnist-2
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    deleted: list[str] = []
    failures: list[ScriptmodeError] = []
    for name in dict.fromkeys(jobs):
        try:
            if not force:
                _require_ended(name)
            local_platform().delete(name)
            deleted.append(name)
        except ScriptmodeError as error:  # noqa: PERF203 - the other jobs must be deleted too
            failures.append(error)
    lines = (f"training job {name} is deleted" for name in deleted)
    output.print_result([{"job": name} for name in deleted], "\n".join(lines), as_json=as_json)
    for failure in failures[:-1]:
        report_error(failure, as_json=as_json)
    if failures:
        raise failures[-1]


def _require_ended(name: str) -> None:
    """Raise `DataError` if a job still runs."""
    try:
        status = TrainingJob.attach(name, platform="local").status
    except UnreadableJobError as error:
        if error.is_running:
            raise
        return
    if status in ("InProgress", "Stopping"):
        raise DataError(
            f"training job {name} is {status}",
            advice=f"stop it first with scriptmode stop {name} --wait, or kill it without "
            f"saving anything: scriptmode rm --force {name}",
        )
