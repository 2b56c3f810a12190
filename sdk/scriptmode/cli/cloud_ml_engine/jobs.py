"""``scriptmode jobs``: the words of ``gcloud ml-engine jobs`` for what this command line does."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import click

from scriptmode.cli import following, output
from scriptmode.cli.cloud_ml_engine.training import training
from scriptmode.cli.commands.describe import describe
from scriptmode.cli.commands.list_jobs import list_jobs
from scriptmode.cli.commands.stop import stop
from scriptmode.cli.error_reporting import EXIT_CODES_HELP
from scriptmode.cli.group import Group
from scriptmode.cli.options import job_options, json_option

if TYPE_CHECKING:
    from scriptmode import TrainingJob


@click.group(cls=Group)
def jobs() -> None:
    """Submit training jobs as on Cloud ML Engine, and look after them.

    \b
    Example:
      scriptmode jobs submit training mnist-1 --package-path trainer --module-name trainer.task
      scriptmode jobs stream-logs mnist-1
    """  # noqa: D301 - click's mark for lines to be left as they are


@jobs.group(cls=Group)
def submit() -> None:
    """Submit a job.

    \b
    Example:
      scriptmode jobs submit training mnist-1 --package-path trainer --module-name trainer.task
    """  # noqa: D301 - click's mark for lines to be left as they are


@jobs.command("stream-logs", epilog=EXIT_CODES_HELP)
@job_options
@following.plain_option
@json_option
def stream_logs(job: TrainingJob, *, is_plain: bool, as_json: bool) -> None:
    """Follow JOB's log until it ended; with --json one object a line.

    \b
    Example:
      scriptmode jobs stream-logs mnist-1
    """  # noqa: D301 - click's mark for lines to be left as they are
    if not as_json:
        following.follow_job(job, is_plain=is_plain)
        return
    with following.hint_on_interrupt(job, as_json=True):
        output.print_log_as_json(job.logs(follow=True))
        job.wait()


submit.add_command(training)


def _add(verb: click.Command, name: str) -> None:
    """Add a verb of the whole program under a name of this group's, with its examples in this group's words."""
    own = copy.copy(verb)
    own.help = (verb.help or "").replace(f"scriptmode {verb.name} ", f"scriptmode jobs {name} ")
    jobs.add_command(own, name)


_add(list_jobs, "list")
_add(describe, "describe")
_add(stop, "cancel")
