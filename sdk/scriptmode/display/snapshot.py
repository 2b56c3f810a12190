"""What is known of a training job at one moment, as a frozen value that every renderer draws. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scriptmode.platforms.base import COMPLETED, ENDED, FAILED, STOPPED, ChannelProgress, host_count, instance_groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from scriptmode.failure import Failure
    from scriptmode.platforms.base import LogEvent


@dataclass(frozen=True)
class StatusInterval:
    """One secondary status, and the seconds that the job was in it; 0 for the status it ended in."""

    status: str
    seconds: float


@dataclass(frozen=True)
class HostStatus:
    """One host: its role, "" if that is unknown, and the last line of its log, None before the first one."""

    name: str
    role: str = ""
    line: str | None = None


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
class Observations:
    """What was observed of a job beside its description: hosts, channels, metrics, and the number of log lines."""

    hosts: tuple[HostStatus, ...] = ()
    channels: tuple[ChannelStatus, ...] = ()
    metrics: tuple[MetricSummary, ...] = ()
    lines: int = 0


@dataclass(frozen=True)
class JobSnapshot:
    """A job at one moment. ``elapsed`` counts seconds from its creation to its end, or to now."""

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
    observed: Observations = Observations()

    @property
    def ended(self) -> bool:
        """Whether the job has reached a final status."""
        return self.status in ENDED

    def commands(self) -> tuple[str, ...]:
        """Return the commands that a user would run next."""
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
    """What is new since the last drawing, and the current snapshot."""

    snapshot: JobSnapshot
    events: Sequence[LogEvent] = ()
    #: Messages of scriptmode itself; each is in one frame.
    messages: Sequence[str] = ()


def create_snapshot(
    description: Mapping[str, Any],
    now: datetime,
    observed: Observations = Observations(),
    failure: Failure | None = None,
) -> JobSnapshot:
    """Create a snapshot from a job's description at the time ``now`` and from what was observed of the job."""
    transitions = description.get("SecondaryStatusTransitions") or ()
    return JobSnapshot(
        name=str(description["TrainingJobName"]),
        status=str(description["TrainingJobStatus"]),
        secondary=str(description.get("SecondaryStatus", "")),
        message=str(transitions[-1].get("StatusMessage", "")) if transitions else "",
        history=tuple(_interval(each, description, now) for each in transitions),
        elapsed=_elapsed(description, now),
        instances=_instances(description),
        model=str((description.get("ModelArtifacts") or {}).get("S3ModelArtifacts") or ""),
        checkpoints=str((description.get("CheckpointConfig") or {}).get("S3Uri") or ""),
        failure=failure,
        observed=observed,
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
    """Return the number and type of the hosts as text: ``2 x local_process``."""
    groups = instance_groups(description)
    kinds = dict.fromkeys(str(group["InstanceType"]) for group in groups if "InstanceType" in group)
    return f"{host_count(description)} x {'/'.join(kinds)}" if kinds else ""
