"""Summaries of training jobs, which a notebook and the prompt display as a table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timezone
from html import escape
from typing import Any

from scriptmode.core.text.messages import format_duration
from scriptmode.core.text.terminal_text import align_columns, escape_unprintable

#: Number of jobs that are displayed.
_MOST_JOBS = 40
#: Seconds of the units of an age, from the largest; an age is shown in the largest unit of which there are two.
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_MOST_METRIC = 30
_NONE = "-"


class JobList(list[dict[str, Any]]):
    """TrainingJobSummary objects, displayed as a table with a line for each job."""

    #: What a table says of a job, and what it says where that is unknown.
    COLUMNS = ("CREATED", "AGE", "STATUS", "TIME", "KIND", "HOSTS", "METRIC", "REGION", "NAME")
    NONE = _NONE

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row of texts for each job, one for each of ``COLUMNS``; ``-`` for what is unknown."""
        now = datetime.now(timezone.utc)
        regions = {_region(job) for job in self} - {_NONE}
        return [_row(job, now, has_region=len(regions) > 1) for job in self]

    def __str__(self) -> str:
        if not self:
            return "no training jobs"
        return "\n".join([*align_columns(self._shown()), *self._left_out()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self:
            return "<div>no training jobs</div>"
        from scriptmode.display.html_card import status_colour

        heads, *rows = self._shown()
        status = heads.index("STATUS")
        lines = []
        for row in rows:
            cells = [escape(cell) for cell in row]
            cells[status] = f'<span style="color:{status_colour(row[status])};font-weight:600">{cells[status]}</span>'
            lines.append("".join(f'<td style="text-align:left">{cell}</td>' for cell in cells))
        head = "".join(f'<th style="text-align:left">{each.capitalize()}</th>' for each in heads)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        rest = "".join(f"<div>{text}</div>" for text in self._left_out())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def _shown(self) -> list[tuple[str, ...]]:
        """Return the heads and the rows, without the columns that no job has a text for."""
        rows = JobList(self[:_MOST_JOBS]).rows()
        kept = [index for index in range(len(self.COLUMNS)) if any(row[index] != _NONE for row in rows)]
        return [tuple(row[index] for index in kept) for row in (self.COLUMNS, *rows)]

    def _left_out(self) -> list[str]:
        left = len(self) - _MOST_JOBS
        return [f"and {left} more; limit= and status= select jobs"] if left > 0 else []


def _row(job: Mapping[str, Any], now: datetime, *, has_region: bool) -> tuple[str, ...]:
    created, ended = job["CreationTime"], job.get("TrainingEndTime")
    # The time in a queue says nothing of the job.
    began = job.get("QueueEndTime", created)
    return (
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(created.timestamp())),
        _age((now - created).total_seconds()),
        _status(job),
        _NONE if ended is None else format_duration((ended - began).total_seconds()),
        job.get("Distribution", _NONE),
        str(job.get("InstanceCount", _NONE)),
        _metric(job.get("LastMetric")),
        _region(job) if has_region else _NONE,
        job["TrainingJobName"],
    )


def _status(job: Mapping[str, Any]) -> str:
    """Return a job's position in the queue, or its status, or why it was stopped: ``MaxRuntimeExceeded``."""
    if "QueuePosition" in job:
        return f"Queued({job['QueuePosition']})"
    status: str = job["TrainingJobStatus"]
    return job.get("SecondaryStatus") or status if status == "Stopped" else status


def _region(job: Mapping[str, Any]) -> str:
    # A job whose files cannot be read has no ARN.
    return job["TrainingJobArn"].split(":")[3] if job.get("TrainingJobArn") else _NONE


def _age(seconds: float) -> str:
    """Return an age in one unit, as --since takes it: ``45s``, ``90min``, ``3h``, ``12d``."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds // size:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"


def _metric(metric: Any) -> str:
    if metric is None:
        return _NONE
    name = escape_unprintable(metric["MetricName"]).replace(" ", "_")[:_MOST_METRIC]
    return f"{name}={metric['Value']:.4g}"
