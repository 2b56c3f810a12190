"""``scriptmode jobs``: the group of Cloud ML Engine's commands."""

from __future__ import annotations

import copy

import click

from scriptmode import TrainingJob
from scriptmode.cli import following, output
from scriptmode.cli.cloud_ml_engine.training import training
from scriptmode.cli.commands.describe import describe
from scriptmode.cli.commands.list_jobs import list_jobs
from scriptmode.cli.commands.stop import stop
from scriptmode.cli.error_reporting import EXIT_CODES_HELP
from scriptmode.cli.group import Group
from scriptmode.cli.options import job_options, json_option


@click.group(cls=Group)
def jobs() -> None:
    """Submit and manage training jobs with the commands of Cloud ML Engine.

    The commands and options are those of gcloud ml-engine jobs and gcloud ai-platform jobs.

    \b
    Example:
      scriptmode jobs submit training mnist-1 --package-path trainer --module-name trainer.task
      scriptmode jobs stream-logs mnist-1
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap


@jobs.group(cls=Group)
def submit() -> None:
    """Submit a training job.

    \b
    Example:
      scriptmode jobs submit training mnist-1 --package-path trainer --module-name trainer.task
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap


@jobs.command("stream-logs", epilog=EXIT_CODES_HELP)
@job_options
@following.plain_option
@json_option
def stream_logs(job: TrainingJob, *, is_plain: bool, as_json: bool) -> None:
    """Follow the log of JOB until the job ends.

    With --json the output is one JSON object for each line of the log.

    \b
    Example:
      scriptmode jobs stream-logs mnist-1
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    if not as_json:
        following.follow_job(job, is_plain=is_plain)
        return
    with following.hint_on_interrupt(job, as_json=True):
        output.print_log_as_json(job.logs(follow=True))
        job.wait()


submit.add_command(training)


def _add(verb: click.Command, name: str) -> None:
    """Add a verb of the main group under another name, which its examples then use."""
    own = copy.copy(verb)
    own.help = (verb.help or "").replace(f"scriptmode {verb.name} ", f"scriptmode jobs {name} ")
    jobs.add_command(own, name)


_add(list_jobs, "list")
_add(describe, "describe")
_add(stop, "cancel")
