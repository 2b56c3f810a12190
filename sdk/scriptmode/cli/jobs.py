"""``scriptmode jobs``: the words of ``gcloud ml-engine jobs`` for what this command line does."""

from __future__ import annotations

import click

from scriptmode import TrainingJob
from scriptmode.cli.describe import describe
from scriptmode.cli.jobs_training import training
from scriptmode.cli.list_jobs import list_jobs
from scriptmode.cli.stop import stop


@click.group()
def jobs() -> None:
    """Submit training jobs as on Cloud ML Engine, and look after them."""


@jobs.group()
def submit() -> None:
    """Submit a job."""


@jobs.command("stream-logs")
@click.argument("job")
def stream_logs(job: str) -> None:
    """Follow JOB's log until it ended; exit code 1 unless it completed."""
    TrainingJob.attach(job).follow()


submit.add_command(training)
jobs.add_command(list_jobs)
jobs.add_command(describe)
jobs.add_command(stop, "cancel")
