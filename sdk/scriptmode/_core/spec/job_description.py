"""A described training job, as every platform returns it.

``job`` is the job itself, a `JobRequest`; the other attributes are what became of it. ``response`` is the response of
DescribeTrainingJob, for ``describe()``, for HTTP clients, and for fields that this class does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from scriptmode._core.spec.job_request import JobRequest

#: What a platform's message of a stopped job begins with, unless it says who or what else stopped it.
_USUAL = "Training job "


class JobStatus(str, Enum):
    """TrainingJobStatus; each member equals the service's text, and is formatted as it."""

    IN_PROGRESS = "InProgress"
    STOPPING = "Stopping"
    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPED = "Stopped"
    DELETING = "Deleting"

    __str__ = str.__str__

    @classmethod
    def _missing_(cls, value: object) -> JobStatus:
        """Return a status that the service added later; such a job has not ended."""
        added = str.__new__(cls, value)
        added._name_ = added._value_ = str(value)
        return added

    @property
    def has_ended(self) -> bool:
        """Whether a job with this status has its outcome."""
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.STOPPED)


class Transition(NamedTuple):
    """One secondary status of a job; ``ended`` is ``None`` for the one that it is in."""

    status: str
    started: datetime | None = None
    ended: datetime | None = None
    message: str = ""


@dataclass(frozen=True)
class JobDescription:
    """What a platform says of a job. Texts that are not there are "", moments and numbers ``None``."""

    job: JobRequest
    status: JobStatus
    arn: str = ""
    #: SecondaryStatus, which the service extends: a text.
    secondary: str = ""
    transitions: tuple[Transition, ...] = ()
    #: FailureReason, as the platform has it.
    failure_reason: str = ""
    #: URI of the model.
    artifact_uri: str = ""
    created: datetime | None = None
    modified: datetime | None = None
    training_started: datetime | None = None
    training_ended: datetime | None = None
    training_seconds: int | None = None
    #: Of one host.
    host_billable_seconds: int | None = None
    #: What returns ``response``, as the job was described: `queued` does not change it.
    respond: Callable[[], Mapping[str, Any]] = field(default=dict, compare=False, repr=False)

    @cached_property
    def response(self) -> dict[str, Any]:
        """DescribeTrainingJob's response."""
        return dict(self.respond())

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job.name

    @property
    def has_ended(self) -> bool:
        """Whether the job has its outcome."""
        return self.status.has_ended

    def queued(self, position: int) -> JobDescription:
        """Return the description with a position in the queue, from 1 on, as its status; 0 changes nothing."""
        text = f"Queued({position})"
        return replace(self, status=JobStatus(text), secondary=text) if position else self

    @property
    def message(self) -> str:
        """The newest message about the job's status, or ""."""
        return self.transitions[-1].message if self.transitions else ""

    @property
    def stop_message(self) -> str:
        """Who or what stopped a job other than a caller or its limits, such as a scheduler's user; "" for none."""
        is_stopped = self.secondary in ("Stopped", "MaxRuntimeExceeded", "MaxWaitTimeExceeded")
        return self.message if is_stopped and not self.message.startswith(_USUAL) else ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts, in order; none where their number is not described."""
        return self.job.resources.hosts

    @property
    def billable_seconds(self) -> int | None:
        """The billable seconds of all hosts: the service counts those of one host."""
        return None if self.host_billable_seconds is None else self.host_billable_seconds * self.job.resources.count

    @property
    def spot_savings(self) -> float | None:
        """The part of a spot job's training time that is not billed; ``None`` for other jobs, and before the end."""
        if not self.job.limits.use_spot_instances or not self.training_seconds or self.host_billable_seconds is None:
            return None
        return 1.0 - self.host_billable_seconds / self.training_seconds
