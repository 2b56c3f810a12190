"""The values that a platform takes and returns: filters of jobs, log lines, metrics, progress, events. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.job_description import JobStatus
from scriptmode._core.text.messages import did_you_mean, format_bytes, format_duration
from scriptmode.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

COMPLETED, FAILED, STOPPED = (status.value for status in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.STOPPED))
ENDED = frozenset(status.value for status in JobStatus if status.has_ended)
STATUSES = ("InProgress", "Stopping", COMPLETED, FAILED, STOPPED)
#: Shown instead of a status in a list, for a job of this machine whose files cannot be read.
UNREADABLE = "Unreadable"
#: Seconds without output after which a host is called silent.
_SILENT_SECONDS = 10.0
#: What the bytes of an object of S3 were compared with, where not with a checksum: it has none, they came over TLS, or
#: FastFile mode read not all of them, or not in order.
NOT_VERIFIABLE, TLS_ALONE, IN_PARTS = "not verifiable", "protected by TLS alone", "not verified (read in parts)"


@dataclass(frozen=True)
class LogEvent:
    """One line of one host's log, without its line end; a line of more than 1 MiB comes in several events.

    A progress bar has all its frames, as the host wrote them; of more than 1 MiB it has the last ones.
    ``continues``: whether the host's next event continues the same line.
    """

    host: str
    message: str
    continues: bool = False


@dataclass(frozen=True)
class JobFilter:
    """Conditions on the training jobs to list, all of which a job must meet; ``limit`` counts jobs, newest first."""

    name_contains: str | None = None
    status: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in STATUSES:
            raise invalid("status", f"is {self.status!r}", did_you_mean(str(self.status), STATUSES))
        if self.limit is not None and (not isinstance(self.limit, int) or self.limit < 1):
            raise invalid("limit", f"is {self.limit!r}", "give a whole number of at least 1")
        if self.name_contains is not None and not isinstance(self.name_contains, str):
            raise invalid("name_contains", f"is {self.name_contains!r}", "give a part of the name")
        for name in ("created_after", "created_before"):
            moment = getattr(self, name)
            if moment is not None and not hasattr(moment, "tzinfo"):
                raise invalid(name, f"is {moment!r}", "give a datetime with a time zone")
            if moment is not None and moment.tzinfo is None:
                raise invalid(
                    name, f"is {moment!r}, without a time zone", f"give for example {moment.isoformat()}+00:00"
                )

    def matches(self, summary: Mapping[str, Any]) -> bool:
        """Return whether a TrainingJobSummary meets the conditions; ``limit`` is not one of them."""
        return (
            (self.name_contains is None or self.name_contains in summary["TrainingJobName"])
            and (self.status is None or self.status == summary["TrainingJobStatus"])
            and (self.created_after is None or summary["CreationTime"] > self.created_after)
            and (self.created_before is None or summary["CreationTime"] < self.created_before)
        )


ANY_JOB = JobFilter()


@dataclass(frozen=True)
class Metric:
    """One value of a job's metric. ``timestamp`` and ``host`` are ``None`` where the platform does not keep them.

    ``step`` and ``epoch`` are the numbers that the value's line of the log has, ``None`` where it has none.
    """

    name: str
    value: float
    timestamp: datetime | None = None
    host: str | None = None
    step: int | None = None
    epoch: int | None = None


@dataclass(frozen=True)
class ChannelProgress:
    """Progress of a channel: bytes staged before training in File mode, or streamed to all its hosts in Pipe mode.

    ``done`` and ``total`` are bytes; ``total`` is ``None`` where it is unknown. ``epoch`` counts from 0.
    ``verification`` has the number of objects of S3 that were read (in Pipe and FastFile mode each time), by what their
    bytes were compared with: the name of a checksum, or a text of the guide to input data.
    """

    channel: str
    mode: str
    done: int
    total: int | None = None
    epoch: int | None = None
    verification: Mapping[str, int] = field(default_factory=dict)

    @property
    def verified(self) -> str:
        """The counts as text: ``9 objects, 38 MB: 8 verified (CRC64NVME), 1 not verifiable``; "" without any."""
        counts = dict(self.verification)
        if not counts:
            return ""
        total = sum(counts.values())
        # In the other modes an object may be read more than once.
        amount = f"{total:,} {'object' if self.mode == 'File' else 'reading'}{'s' * (total > 1)}"
        unverified = {name: counts.pop(name) for name in (TLS_ALONE, NOT_VERIFIABLE, IN_PARTS) if name in counts}
        parts = []
        if counts:
            kinds = [f"{count:,} {name.upper()}" if len(counts) > 1 else name.upper() for name, count in counts.items()]
            parts.append(f"{sum(counts.values()):,} verified ({', '.join(kinds)})")
        parts += [f"{count:,} {name}" for name, count in unverified.items()]
        size = f", {format_bytes(self.done)}" if self.done else ""
        return f"{amount}{size}: {', '.join(parts)}"


def add_counts(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of the counts of both, by name."""
    return {name: counts.get(name, 0) + more.get(name, 0) for name in {**counts, **more}}


#: Reasons of events whose subject is missing from what the job has left.
LOSSES = frozenset({"LogLost", "OutputLeftOut", "CheckpointsNotCopied"})


@dataclass(frozen=True)
class JobEvent:
    """Something that a job lost or did again, in the terms of events of Kubernetes.

    Attributes:
        reason: Its kind: ``LogLost``, ``OutputLeftOut``, ``CheckpointsNotCopied`` or ``Interrupted``.
        message: What happened, in one sentence.
        host: The host that it is about; "" where it is about the job.
        count: How often it happened.
        time: When it happened last, in seconds since the epoch.
    """

    reason: str
    message: str
    host: str = ""
    count: int = 1
    time: float = 0.0

    @property
    def is_loss(self) -> bool:
        """Whether something is missing, as opposed to something that was done again."""
        return self.reason in LOSSES

    def __str__(self) -> str:
        return f"{self.message} ({self.count} times)" if self.count > 1 else self.message


@dataclass(frozen=True)
class HostActivity:
    """What a host of a running job does at this moment.

    Attributes:
        line: The end of its log that has no line end yet, such as a progress bar; "" where the log ends with one.
        silent_seconds: Seconds since its last output.
        cpu_percent: CPU usage of all its processes in percent of one core: 200 is two cores.
        memory_bytes: Resident memory of all its processes; pages that they share count for each.
        gpu_percent: Mean usage of the GPUs that its processes use; 0 while they use none of the machine's GPUs.
        gpu_memory_bytes: GPU memory of its processes.
        input_wait_percent: Part of the time in which the open FIFO of a Pipe mode channel was empty; of the channel for
            which it is largest.
        received_bytes: Counter of the bytes that its network interface has received, also before the job on a node of a
            cluster; unknown where hosts share one.

    ``None`` is unknown, also for a host that does not run yet or has ended.
    """

    line: str = ""
    silent_seconds: float | None = None
    cpu_percent: float | None = None
    memory_bytes: int | None = None
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None
    input_wait_percent: float | None = None
    received_bytes: int | None = None

    @property
    def silence(self) -> str:
        """For how long the host has been silent: ``no output for 12 s``; "" below some seconds."""
        seconds = self.silent_seconds
        return "" if seconds is None or seconds < _SILENT_SECONDS else f"no output for {format_duration(seconds)}"


@dataclass(frozen=True)
class PlannedHost:
    """Environment of one host of a job that is not started: its root directory, the files there, its variables.

    ``files`` holds the content of each configuration file that the platform writes, by its path below ``base_dir``.
    ``python`` is the interpreter of a host that is a process of this machine or of a node that has the same programs,
    and "" for every other host. ``gpus`` is the number of a node's GPUs, ``None`` for a host of another kind.
    ``limitation`` is what this machine refuses to the host, "" for nothing.
    """

    instance_type: str
    base_dir: str
    files: Mapping[str, Any]
    variables: Mapping[str, str]
    python: str = ""
    gpus: int | None = None
    limitation: str = ""
