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
    known = {
        "InstanceCount": job.hosts,
        "Distribution": job.distribution,
        "LastMetric": job.metric_name and {"MetricName": job.metric_name, "Value": job.metric_value},
        "QueuePosition": job.position,
        "QueueEndTime": None if job.queue_ended is None else _time(job.queue_ended, _UTC),
        "StatusMessage": readable(job.note),
        "TrainingEndTime": None if job.training_ended is None else _time(job.training_ended, _UTC),
    }
    return {**summary, **{name: value for name, value in known.items() if value}}
