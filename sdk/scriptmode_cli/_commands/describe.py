"""``scriptmode describe JOB``."""

from __future__ import annotations

from dataclasses import asdict

import click

from scriptmode import TrainingJob
from scriptmode_cli._options.options import job_options, json_option
from scriptmode_cli._program import output
from scriptmode_cli._program.description_text import render_description


@click.command()
@job_options
@json_option
def describe(job: TrainingJob, *, as_json: bool) -> None:
    """Print a summary of JOB.

    It has the status, hosts, script, inputs, hyperparameters and output locations. Of a job that runs on this machine
    it also has each host's CPU usage (100% is one core), memory and GPUs, and the time since its last output. Of a job
    on a cluster it has the place of each host: Slurm's job number, partition and node, or pod, namespace and node.

    With --json the output is the response of Amazon SageMaker's DescribeTrainingJob, for local jobs too. A failed job
    has one more field: Failure, with host, process, exit_code, signal, exception, cause, hint and traceback. A running
    job of this machine has Activity: of each host cpu_percent, memory_bytes, gpu_percent, gpu_memory_bytes,
    silent_seconds since its last output, line, which it has not ended, and place. A job of this machine with channels
    has Channels: of each channel, mode, done and total bytes, and epoch. One that lost something or started again has
    Events: reason, message, host, count, time and is_loss.

    \b
    Example:
      scriptmode describe --last
      scriptmode describe mnist-1 --json | jq .SecondaryStatusTransitions
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    description = job.platform.describe(job.name)
    activity = job.activity()
    failure = job.failure if description.status == "Failed" else None
    if as_json:
        more: dict[str, object] = {"Failure": asdict(failure)} if failure else {}
        if activity:
            more["Activity"] = {host: asdict(usage) for host, usage in activity.items()}
        if progress := job.platform.progress(job.name):
            more["Channels"] = [asdict(channel) for channel in progress]
        if job.events:
            more["Events"] = [{**asdict(event), "is_loss": event.is_loss} for event in job.events]
        output.print_json({**description.response, **more})
    else:
        shown = description.queued(job.platform.queue_position(job.name))
        output.echo(render_description(shown, activity, output.status_text, failure, job.events))
