"""Summaries of training jobs, which a notebook and the prompt display as a table."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from scriptmode._core.text.messages import format_duration
from scriptmode._core.text.terminal_text import align_columns, escape_unprintable

#: Seconds of the units of an age, from the largest; an age is shown in the largest unit of which there are two.
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_MOST_METRIC = 30
#: Columns that a table does not show if it is too narrow for all, in the order in which they are left out.
_LEFT_OUT = ("CREATED", "REGION", "HOSTS", "KIND", "METRIC", "TIME", "AGE")
_NONE = "-"


class JobList(list[dict[str, Any]]):
    """TrainingJobSummary objects, displayed as a table with a line for each job."""

    #: What a table says of a job.
    COLUMNS = ("CREATED", "AGE", "STATUS", "TIME", "KIND", "HOSTS", "METRIC", "REGION", "NAME", "PLACES")

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row of texts for each job, one for each of ``COLUMNS``; ``-`` for what is unknown."""
        now = time.time()
        # Few accounts and Regions, of thousands of jobs.
        accounts = {(job.get("TrainingJobArn") or "").partition(":training-job/")[0] for job in self}
        has_region = len(set(map(_region, accounts)) - {_NONE}) > 1
        return [_row(job, now, has_region=has_region) for job in self]

    def __str__(self) -> str:
        return "\n".join(align_columns(self.table())) if self else "no training jobs"

    __repr__ = __str__

    def table(self, width: float = math.inf) -> list[tuple[str, ...]]:
        """Return the heads and the rows, without the columns that no job has a text for, or that are too wide."""
        columns = [column for column in zip(self.COLUMNS, *self.rows()) if any(cell != _NONE for cell in column[1:])]
        widths = {column[0]: max(map(len, column)) + 2 for column in columns}
        for name in _LEFT_OUT:
            if sum(widths.values()) - 2 > width:
                widths.pop(name, None)
        return list(zip(*(column for column in columns if column[0] in widths)))


def _row(job: Mapping[str, Any], now: float, *, has_region: bool) -> tuple[str, ...]:
    created, ended = job["CreationTime"], job.get("TrainingEndTime")
    # The time in a queue says nothing of the job.
    began, created = job.get("QueueEndTime", created), created.timestamp()
    return (
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(created)),
        _age(now - created),
        _status(job),
        _NONE if ended is None else format_duration((ended - began).total_seconds()),
        job.get("Distribution", _NONE),
        str(job.get("InstanceCount", _NONE)),
        _metric(job.get("LastMetric")),
        _region(job.get("TrainingJobArn")) if has_region else _NONE,
        job["TrainingJobName"],
        "; ".join(job.get("Places", {}).values()) or _NONE,
    )


def _status(job: Mapping[str, Any]) -> str:
    """Return a job's position in the queue, or its status, or why it was stopped: ``MaxRuntimeExceeded``."""
    if "QueuePosition" in job:
        return f"Queued({job['QueuePosition']})"
    status: str = job["TrainingJobStatus"]
    return job.get("SecondaryStatus") or status if status == "Stopped" else status


def _region(arn: str | None) -> str:
    # A job whose files cannot be read has no ARN.
    return arn.split(":")[3] if arn else _NONE


def _age(seconds: float) -> str:
    """Return an age in one unit, as --since takes it: ``45s``, ``90min``, ``3h``, ``12d``."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{int(seconds) // size}{unit}"
    return f"{max(0.0, seconds):.0f}s"


def _metric(metric: Any) -> str:
    if metric is None:
        return _NONE
    name = escape_unprintable(metric["MetricName"]).replace(" ", "_")[:_MOST_METRIC]
    return f"{name}={metric['Value']:.4g}"
