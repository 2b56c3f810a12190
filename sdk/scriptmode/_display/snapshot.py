"""What is known of a training job at one moment, as a frozen value that every renderer draws. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from scriptmode._core.handle.log_lines import describe_model
from scriptmode._core.spec.failure_text import may_succeed_again
from scriptmode._core.spec.job_description import JobDescription, Transition
from scriptmode._core.spec.job_failure import Failure
from scriptmode._core.spec.service_values import COMPLETED, ENDED
from scriptmode._core.text.messages import format_duration


class Row(NamedTuple):
    """One host, what it does, and the last line of its log; or one channel and its progress. "" is unknown."""

    name: str
    text: str
    line: str = ""


class MetricSummary(NamedTuple):
    """A metric: the last value, and points of a sparkline of all values.

    ``host`` is the host whose values they are if several hosts have some, else "".
    """

    name: str
    last: float
    points: tuple[float, ...]
    host: str = ""


@dataclass(frozen=True)
class JobSnapshot:
    """A job at one moment. ``elapsed`` counts seconds from its creation to its end, or to now.

    ``history`` has its secondary statuses as texts, each with the time that the job was in it.
    Hosts, channels, metrics and the number of log lines are observed; ``notes`` are sentences of scriptmode itself, and
    ``log_locations`` the locations of the log by host. The rest is from the job's description.
    """

    name: str
    status: str = ""
    secondary: str = ""
    message: str = ""
    history: tuple[str, ...] = ()
    elapsed: float = 0.0
    instances: str = ""
    model: str = ""
    checkpoints: str = ""
    failure: Failure | None = None
    hosts: tuple[Row, ...] = ()
    channels: tuple[Row, ...] = ()
    metrics: tuple[MetricSummary, ...] = ()
    lines: int = 0
    notes: tuple[str, ...] = ()
    log_locations: Mapping[str, str] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether the job has reached a final status."""
        return self.status in ENDED

    def commands(self) -> tuple[str, ...]:
        """Return the commands that a user would run next."""
        failure = self.failure
        if not self.ended:
            return (f"scriptmode logs -f {self.name}", f"scriptmode stop {self.name}")
        log = f"scriptmode logs {self.name}" + (f" --host {failure.log_host}" if failure and failure.log_host else "")
        if self.status == COMPLETED:
            return (f"scriptmode model download {self.name}", log) if "://" in self.model else (log,)
        return (log, f"scriptmode rerun {self.name}") if failure is None or may_succeed_again(failure) else (log,)


def create_snapshot(description: JobDescription, now: datetime, failure: Failure | None = None) -> JobSnapshot:
    """Create a snapshot from a job's description at the time ``now``, without what is observed beside it."""
    resources, has_ended = description.job.resources, description.has_ended
    kinds = "/".join(dict.fromkeys(filter(None, resources.types)))
    ended = (description.training_ended or description.modified or now) if has_ended else now
    return JobSnapshot(
        name=description.name,
        status=str(description.status),
        secondary=description.secondary,
        message=description.message,
        history=tuple(_describe_status(status, None if has_ended else now) for status in description.transitions),
        elapsed=_seconds(description.created, ended),
        instances=f"{resources.count} x {kinds}" if kinds else "",
        model=describe_model(description),
        checkpoints=description.job.output.checkpoint_uri or "",
        failure=failure,
    )


def _describe_status(transition: Transition, now: datetime | None) -> str:
    """Return a status with the time that the job was in it; alone if it is the one that the job ended in."""
    seconds = _seconds(transition.started, transition.ended or now)
    return f"{transition.status} {format_duration(seconds)}" if seconds else transition.status


def _seconds(began: datetime | None, end: datetime | None) -> float:
    return max(0.0, (end - began).total_seconds()) if began and end else 0.0
