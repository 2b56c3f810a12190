"""What is known of a training job at one moment, as a frozen value that every view draws. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scriptmode.platforms.base import COMPLETED, ENDED, FAILED, STOPPED, ChannelProgress, host_count, instance_groups
from scriptmode.results.outcome import FailureReason, parse_failure_reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from scriptmode.platforms.base import LogEvent


@dataclass(frozen=True)
class StatusInterval:
    """One secondary status, and for how many seconds the job was in it; 0 for the one it ended in."""

    status: str
    seconds: float


@dataclass(frozen=True)
class HostStatus:
    """One host: its role, "" where that is unknown, and the last line of its log, None where there was none yet."""

    name: str
    role: str = ""
    line: str | None = None


@dataclass(frozen=True)
class ChannelStatus:
    """How far a channel is; ``rate`` in bytes a second and ``left`` in seconds, None where nobody knows yet."""

    progress: ChannelProgress
    rate: float | None = None
    left: float | None = None


@dataclass(frozen=True)
class MetricSummary:
    """A metric: how many values, the last of them, and points that show them all.

    ``host`` is whose values they are where several hosts have some, else "".
    """

    name: str
    count: int
    last: float
    points: tuple[float, ...]
    host: str = ""


@dataclass(frozen=True)
class Observations:
    """What is seen of a job beside its description: its hosts, data, metrics and how many lines it logged."""

    hosts: tuple[HostStatus, ...] = ()
    data: tuple[ChannelStatus, ...] = ()
    metrics: tuple[MetricSummary, ...] = ()
    lines: int = 0


@dataclass(frozen=True)
class JobSnapshot:
    """A job at one moment. ``elapsed`` counts seconds from its creation to its end, or to now."""

    name: str
    status: str = ""
    secondary: str = ""
    message: str = ""
    stays: tuple[StatusInterval, ...] = ()
    elapsed: float = 0.0
    instances: str = ""
    model: str = ""
    checkpoints: str = ""
    failure: FailureReason | None = None
    seen: Observations = Observations()

    @property
    def ended(self) -> bool:
        """Whether nothing about it will change any more."""
        return self.status in ENDED

    def commands(self) -> tuple[str, ...]:
        """Give the commands that come next."""
        if self.status == FAILED:
            host = f" --host {self.failure.host}" if self.failure and self.failure.host else ""
            return (f"scriptmode logs {self.name}{host}", f"scriptmode rerun {self.name}")
        if self.status == STOPPED:
            return (f"scriptmode logs {self.name}", f"scriptmode rerun {self.name}")
        if self.status == COMPLETED:
            download = (f"scriptmode model download {self.name}",) if self.model else ()
            return (*download, f"scriptmode logs {self.name}")
        return (f"scriptmode logs -f {self.name}", f"scriptmode stop {self.name}")


@dataclass(frozen=True)
class Frame:
    """What is new since the last drawing, and the job as it is now."""

    view: JobSnapshot
    events: Sequence[LogEvent] = ()
    #: Sentences of our own, each told once.
    said: Sequence[str] = ()


def create_snapshot(description: Mapping[str, Any], now: datetime, seen: Observations = Observations()) -> JobSnapshot:
    """Give what a job's description tells at the time ``now``, with what is seen of it beside."""
    transitions = description.get("SecondaryStatusTransitions") or ()
    reason = description.get("FailureReason") or ""
    return JobSnapshot(
        name=str(description["TrainingJobName"]),
        status=str(description["TrainingJobStatus"]),
        secondary=str(description.get("SecondaryStatus", "")),
        message=str(transitions[-1].get("StatusMessage", "")) if transitions else "",
        stays=tuple(_interval(each, description, now) for each in transitions),
        elapsed=_elapsed(description, now),
        instances=_instances(description),
        model=str((description.get("ModelArtifacts") or {}).get("S3ModelArtifacts") or ""),
        checkpoints=str((description.get("CheckpointConfig") or {}).get("S3Uri") or ""),
        failure=parse_failure_reason(reason) if description["TrainingJobStatus"] == FAILED else None,
        seen=seen,
    )


def _interval(transition: Mapping[str, Any], description: Mapping[str, Any], now: datetime) -> StatusInterval:
    over = description["TrainingJobStatus"] in ENDED
    end = transition.get("EndTime") or (transition.get("StartTime") if over else now)
    began = transition.get("StartTime")
    return StatusInterval(str(transition["Status"]), max(0.0, (end - began).total_seconds()) if began and end else 0.0)


def _elapsed(description: Mapping[str, Any], now: datetime) -> float:
    began = description.get("CreationTime")
    if began is None:
        return 0.0
    over = description["TrainingJobStatus"] in ENDED
    ended = (description.get("TrainingEndTime") or description.get("LastModifiedTime") or now) if over else now
    return max(0.0, float((ended - began).total_seconds()))


def _instances(description: Mapping[str, Any]) -> str:
    """Say which hosts the job has: ``2 x local_process``."""
    groups = instance_groups(description)
    kinds = dict.fromkeys(str(group["InstanceType"]) for group in groups if "InstanceType" in group)
    return f"{host_count(description)} x {'/'.join(kinds)}" if kinds else ""
