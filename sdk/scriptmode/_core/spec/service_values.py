"""The values that a platform takes and returns of jobs: filters, log lines, metrics, events. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.job_description import JobStatus
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import invalid

if TYPE_CHECKING:
    from datetime import datetime

COMPLETED, FAILED, STOPPED = (status.value for status in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.STOPPED))
ENDED = frozenset(status.value for status in JobStatus if status.has_ended)
STATUSES = ("InProgress", "Stopping", COMPLETED, FAILED, STOPPED)
#: Shown instead of a status in a list, for a job of this machine whose files cannot be read.
UNREADABLE = "Unreadable"


@dataclass(frozen=True)
class LogEvent:
    """One line of one host's log, without its line end; a line of more than 1 MiB comes in several events.

    A progress bar has all its frames, as the host wrote them; of more than 1 MiB it has the last ones.
    ``continues``: whether the host's next event continues the same line. ``time``: when the service had the line.
    """

    host: str
    message: str
    continues: bool = False
    time: datetime | None = None


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
            if moment is not None and getattr(moment, "tzinfo", None) is None:
                raise invalid(name, f"is {moment!r}", "give a datetime with a time zone")

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


#: The reason of the event that a service records of a new job with another one's checkpoints.
CHECKPOINTS_SHARED = "CheckpointsShared"
#: Reasons of events whose subject is missing from what the job has left.
LOSSES = frozenset({"LogLost", "OutputLeftOut", "CheckpointsNotCopied"})


@dataclass(frozen=True)
class JobEvent:
    """Something that a job lost or did again, in the terms of events of Kubernetes.

    Attributes:
        reason: Its kind: ``LogLost``, ``OutputLeftOut``, ``CheckpointsNotCopied``, ``CheckpointsShared`` (with another
            job that has not ended), ``SetupFailed`` or ``Interrupted``.
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
