"""A summary of a job as the service's response. Pure."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from scriptmode._core.spec.service_values import UNREADABLE
from scriptmode_local._store.state import STATUS_OF, JobSummary
from scriptmode_runtime._terminal_line import readable

_time, _UTC = datetime.fromtimestamp, timezone.utc


def render_summary(job: JobSummary) -> dict[str, Any]:
    """Render a TrainingJobSummary, with six fields that the service lacks.

    ``InstanceCount``, ``Distribution`` and ``LastMetric`` are there where they are known, ``QueuePosition`` while the
    job waits for others, and ``QueueEndTime`` afterwards; ``StatusMessage`` describes a problem of the job.
    """
    summary = {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "CreationTime": _time(job.created, _UTC),
        "LastModifiedTime": _time(job.modified, _UTC),
        "TrainingJobStatus": STATUS_OF.get(job.secondary, UNREADABLE),
        "SecondaryStatus": job.secondary,
    }
    if job.hosts:
        summary["InstanceCount"] = job.hosts
    if job.distribution:
        summary["Distribution"] = job.distribution
    if job.metric_name:
        summary["LastMetric"] = {"MetricName": job.metric_name, "Value": job.metric_value}
    if job.position:
        summary["QueuePosition"] = job.position
    if job.queue_ended is not None:
        summary["QueueEndTime"] = _time(job.queue_ended, _UTC)
    if job.note:
        summary["StatusMessage"] = readable(job.note)
    if job.training_ended is not None:
        summary["TrainingEndTime"] = _time(job.training_ended, _UTC)
    return summary
