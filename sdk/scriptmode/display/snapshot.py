"""What is known of a training job at one moment, as a frozen value that every renderer draws. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from scriptmode.core.spec.job_description import JobDescription, Transition
from scriptmode.core.spec.job_failure import Failure, may_succeed_again
from scriptmode.core.spec.service_values import (
    COMPLETED,
    ENDED,
    FAILED,
    STOPPED,
    ChannelProgress,
    HostActivity,
    LogEvent,
)


@dataclass(frozen=True)
class StatusInterval:
    """One secondary status, and the seconds that the job was in it; 0 for the status it ended in."""

    status: str
    seconds: float


@dataclass(frozen=True)
class HostStatus:
    """One host: its role, "" if that is unknown, the last line of its log, None before the first one, what it does."""

    name: str
    role: str = ""
    line: str | None = None
    activity: HostActivity = field(default_factory=HostActivity)


@dataclass(frozen=True)
class ChannelStatus:
    """The progress of a channel; ``rate`` in bytes per second and ``left`` in seconds, None while unknown."""

    progress: ChannelProgress
    rate: float | None = None
    left: float | None = None


@dataclass(frozen=True)
class MetricSummary:
    """A metric: the number of values, the last value, and points of a sparkline of all values.

    ``host`` is the host whose values they are if several hosts have some, else "".
    """

    name: str
    count: int
    last: float
    points: tuple[float, ...]
    host: str = ""


@dataclass(frozen=True)
class JobSnapshot:
    """A job at one moment. ``elapsed`` counts seconds from its creation to its end, or to now.

    Hosts, channels, metrics and the number of log lines are observed; the rest is from the job's description.
    """

    name: str
    status: str = ""
    secondary: str = ""
    message: str = ""
    history: tuple[StatusInterval, ...] = ()
    elapsed: float = 0.0
    instances: str = ""
    model: str = ""
    checkpoints: str = ""
    failure: Failure | None = None
    hosts: tuple[HostStatus, ...] = ()
    channels: tuple[ChannelStatus, ...] = ()
    metrics: tuple[MetricSummary, ...] = ()
    lines: int = 0

    @property
    def ended(self) -> bool:
        """Whether the job has reached a final status."""
        return self.status in ENDED

    def commands(self) -> tuple[str, ...]:
        """Return the commands that a user would run next."""
        if self.status == FAILED:
            host = f" --host {self.failure.host}" if self.failure and self.failure.host else ""
            is_rerun_useful = self.failure is None or may_succeed_again(self.failure)
            rerun = (f"scriptmode rerun {self.name}",) if is_rerun_useful else ()
            return (f"scriptmode logs {self.name}{host}", *rerun)
        if self.status == STOPPED:
            return (f"scriptmode logs {self.name}", f"scriptmode rerun {self.name}")
        if self.status == COMPLETED:
            download = (f"scriptmode model download {self.name}",) if self.model else ()
            return (*download, f"scriptmode logs {self.name}")
        return (f"scriptmode logs -f {self.name}", f"scriptmode stop {self.name}")


@dataclass(frozen=True)
class Frame:
    """What is new since the last drawing, and the current snapshot."""

    snapshot: JobSnapshot
    events: Sequence[LogEvent] = ()
    #: Messages of scriptmode itself; each is in one frame.
    messages: Sequence[str] = ()


def create_snapshot(description: JobDescription, now: datetime, failure: Failure | None = None) -> JobSnapshot:
    """Create a snapshot from a job's description at the time ``now``, without what is observed beside it."""
    return JobSnapshot(
        name=description.name,
        status=str(description.status),
        secondary=description.secondary,
        message=description.message,
        history=tuple(_interval(each, description, now) for each in description.transitions),
        elapsed=_elapsed(description, now),
        instances=_instances(description),
        model=description.model_uri,
        checkpoints=description.job.output.checkpoint_uri or "",
        failure=failure,
    )


def _interval(transition: Transition, description: JobDescription, now: datetime) -> StatusInterval:
    began = transition.started
    end = transition.ended or (began if description.has_ended else now)
    return StatusInterval(transition.status, max(0.0, (end - began).total_seconds()) if began and end else 0.0)


def _elapsed(description: JobDescription, now: datetime) -> float:
    if description.created is None:
        return 0.0
    ended = (description.training_ended or description.modified or now) if description.has_ended else now
    return max(0.0, (ended - description.created).total_seconds())


def _instances(description: JobDescription) -> str:
    """Return the number and type of the hosts as text: ``2 x local_process``."""
    resources = description.job.resources
    kinds = dict.fromkeys(filter(None, resources.types))
    return f"{resources.count} x {'/'.join(kinds)}" if kinds else ""
