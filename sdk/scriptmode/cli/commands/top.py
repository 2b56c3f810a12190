"""``scriptmode top [JOB...]``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

import click

from scriptmode import HostActivity, JobNotFoundError, TrainingJob
from scriptmode.cli import completers, output
from scriptmode.cli.options import attach_job, json_option, last_option, no_jobs_text
from scriptmode.core.spec.job_description import JobDescription
from scriptmode.display.usage_table import usage_lines, watch_lines

_Usage = list[tuple[JobDescription, Mapping[str, HostActivity]]]

_RUNNING = ("InProgress", "Stopping")


@click.command()
@click.argument("jobs", metavar="[JOB...]", nargs=-1, shell_complete=completers.complete_running_job)
@last_option
@json_option
def top(jobs: tuple[str, ...], *, last: bool, as_json: bool) -> None:
    """Show the resources that the hosts of each JOB of this machine use, by default of all running jobs.

    The columns are the job, its status, the host, its CPU usage (100% is one core), the resident memory of its
    processes, the usage of its GPUs and its memory there, and the time since its last output.

    A terminal shows the table until the jobs have ended, or until Ctrl-C, and refreshes it in place. Elsewhere it is
    printed once. Neither changes the jobs.

    \b
    Example:
      scriptmode top
      scriptmode top mnist-1 --json
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    # Unknown names are errors; a job that is deleted later is not.
    names = [attach_job(name, last=last, platform="local").name for name in jobs or ((None,) if last else ())]
    found = _query(names)
    if as_json:
        output.print_json(
            [
                {
                    "job": description.name,
                    "status": description.secondary,
                    "hosts": {host: asdict(each) for host, each in activity.items()},
                }
                for description, activity in found
            ]
        )
    elif not found:
        output.echo(no_jobs_text("local", "running training jobs"), err=True)
    elif sys.stdout.isatty() and not all(description.has_ended for description, _ in found):
        watch_lines(lambda: _lines_while_running(names), sys.stdout)
    else:
        output.echo("\n".join(_lines(found)))


def _lines_while_running(names: Sequence[str]) -> list[str]:
    found = _query(names)
    return [] if all(description.has_ended for description, _ in found) else _lines(found)


def _lines(found: _Usage) -> list[str]:
    from scriptmode.platforms.local import LocalPlatform

    platform = LocalPlatform()
    return usage_lines([(each.queued(platform.queue_position(each.name)), activity) for each, activity in found])


def _query(names: Sequence[str]) -> _Usage:
    """Return the named jobs, or all running ones, each with what its hosts do; jobs that were deleted are left out."""
    wanted = names or [
        job["TrainingJobName"] for job in TrainingJob.list("local") if job["TrainingJobStatus"] in _RUNNING
    ]
    found: _Usage = []
    for name in wanted:
        with suppress(JobNotFoundError):
            job = TrainingJob.attach(name, platform="local")
            found.append((job.platform.describe(name), job.activity()))
    return found
