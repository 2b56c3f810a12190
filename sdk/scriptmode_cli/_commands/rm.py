"""``scriptmode rm JOB...`` and ``scriptmode rm --older-than AGE``."""

from __future__ import annotations

import click

from scriptmode import DataError, ScriptmodeError, TrainingJob, UnreadableJobError
from scriptmode._core.platforms.registry import local_platform
from scriptmode._core.text.messages import format_bytes, pluralize
from scriptmode_cli._options.options import jobs_argument, json_option
from scriptmode_cli._options.values import convert_age
from scriptmode_cli._program import output
from scriptmode_cli._program.error_reporting import raise_errors

#: What --older-than deletes: the key of each kind in the output of --json.
_KEYS = {"job": "jobs", "tuning job": "tuning_jobs", "source": "sources", "cached download": "cached_downloads"}


@click.command()
@jobs_argument
@click.option("-f", "--force", is_flag=True, help="Kill JOB if it still runs, without time to save anything.")
@click.option(
    "--older-than", callback=convert_age, metavar="AGE",
    help="Instead of JOB: delete the jobs that ended, and the sources and downloads that were used last, "
    "before this time: a number and s, min, h, d or w, such as 12h or 7d.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print what --older-than would delete, and delete nothing.")
@json_option
def rm(jobs: tuple[str, ...], *, force: bool, older_than: float | None, dry_run: bool, as_json: bool) -> None:
    """Delete each JOB of this machine, including its log and its results.

    Files that a job wrote to its own output_path outside the job's directory are kept. A job whose files are damaged is
    deleted too.

    With --older-than no running job is deleted, nor what it uses, nor a source that was used in the last hour.

    Exit code: 0 if everything was deleted; 1 if a part of it was not.

    \b
    Example:
      scriptmode rm mnist-1 mnist-2
      scriptmode rm --older-than 7d --dry-run
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    if bool(jobs) == (older_than is not None) or (force and not jobs) or (dry_run and jobs):
        what = "name each JOB, with --force if it still runs, or write --older-than AGE, with or without --dry-run"
        raise click.UsageError(what)
    if older_than is None:
        _delete_jobs(dict.fromkeys(jobs), force=force, as_json=as_json)
    else:
        _delete_old(older_than, dry_run=dry_run, as_json=as_json)


def _delete_jobs(names: dict[str, None], *, force: bool, as_json: bool) -> None:
    deleted: list[str] = []
    failures: list[ScriptmodeError] = []
    for name in names:
        try:
            if not force:
                _require_ended(name)
            local_platform().delete(name)
            deleted.append(name)
        except ScriptmodeError as error:  # noqa: PERF203 - the other jobs must be deleted too
            failures.append(error)
    lines = (f"training job {name} is deleted" for name in deleted)
    output.print_result([{"job": name} for name in deleted], "\n".join(lines), as_json=as_json)
    raise_errors(failures, as_json=as_json)


def _delete_old(older_than: float, *, dry_run: bool, as_json: bool) -> None:
    report = local_platform().prune(older_than, dry_run=dry_run)
    removed = {
        key: [{"name": item.name, "bytes": item.bytes} for item in report.removed if item.kind == kind]
        for kind, key in _KEYS.items()
    }
    parts = ", ".join(pluralize(len(removed[key]), kind) for kind, key in _KEYS.items() if removed[key])
    verb, sum_verb = ("would delete", "would free") if dry_run else ("deleted", "freed")
    lines = [f"{verb} {item.kind} {item.name} ({format_bytes(item.bytes)})" for item in report.removed]
    lines.append(f"{sum_verb} {format_bytes(report.bytes)}: {parts}" if report.removed else "nothing to delete")
    document = {**removed, "bytes": report.bytes, "dry_run": dry_run}
    output.print_result(document, "\n".join(lines), as_json=as_json)
    raise_errors([DataError(problem.text, advice=problem.advice) for problem in report.problems], as_json=as_json)


def _require_ended(name: str) -> None:
    """Raise `DataError` if a job still runs."""
    try:
        status = TrainingJob.attach(name, platform="local").status
    except UnreadableJobError as error:
        if error.is_running:
            raise
        return
    if status in ("InProgress", "Stopping"):
        advice = f"stop it first with scriptmode stop {name} --wait, or kill it without saving anything: "
        raise DataError(f"training job {name} is {status}", advice=f"{advice}scriptmode rm --force {name}")
