"""The state of one training job, as an immutable value. Pure: callers pass the time.

A job is in one secondary status at a time; ``STATUS_OF`` maps it to the status. The usual path is Pending (only jobs
that wait for others), Starting, Downloading, DownloadingTrainingImage (containers whose image is missing), Training,
Uploading, Completed. A job that a scheduler interrupts goes from Training to Interrupted, and from there to Starting
when it runs again. A stop goes through Stopping to Stopped, MaxRuntimeExceeded or MaxWaitTimeExceeded, and Failed is
reached from every status. These, and ``Completed``, are final.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from scriptmode._core.spec.job_failure import MOST_EXIT_CODE, Failure
from scriptmode._core.spec.service_values import ENDED, JobEvent
from scriptmode_local._store.shapes import is_time, shortened_repr, validate_shape
from scriptmode_runtime import contract
from scriptmode_runtime._terminal_line import readable

#: Every secondary status that a local job can have: the status that it belongs to, and its message.
_STATUSES = {
    "Pending": ("InProgress", "Waiting for a place among the jobs of this machine"),
    "Starting": ("InProgress", "Preparing the hosts for training"),
    "Downloading": ("InProgress", "Downloading input data"),
    "DownloadingTrainingImage": ("InProgress", "Downloading the training image"),
    "Training": ("InProgress", "Training in progress"),
    "Interrupted": ("InProgress", "Waiting to start again after an interruption"),
    "Uploading": ("InProgress", "Uploading the model and output artifacts"),
    "Stopping": ("Stopping", "Stopping the training job"),
    "Stopped": ("Stopped", "Training job stopped"),
    "MaxRuntimeExceeded": ("Stopped", "Training job stopped: it ran longer than MaxRuntimeInSeconds"),
    "MaxWaitTimeExceeded": ("Stopped", "Training job stopped: it waited and ran longer than MaxWaitTimeInSeconds"),
    "Completed": ("Completed", "Training job completed"),
    "Failed": ("Failed", "Training job failed"),
}
STATUS_OF = {secondary: status for secondary, (status, _) in _STATUSES.items()}
MESSAGES = {secondary: message for secondary, (_, message) in _STATUSES.items()}
#: A request to stop changes a job only while it is in one of these.
STOPPABLE = frozenset({"Pending", "Starting", "Downloading", "DownloadingTrainingImage", "Training", "Interrupted"})

#: The most events of a job, the bytes of each one's message in the file, and the last one's message if there are more.
#: Together they take less than half of the space that is reserved for the final state.
MOST_EVENTS, _EVENT_BYTES, _MORE = 50, 500, "more of this kind happened"
#: A job has no hosts in one of these.
_WITHOUT_HOSTS = frozenset({"Pending", "Starting", "Interrupted"})

_UNRECORDED = (
    "its agent died in {secondary}; this folder cannot be written, so nothing was stopped or recorded: describe the "
    "job on a machine that can write it"
)
_STATE: dict[str, Any] = {
    **dict.fromkeys(("name", "arn", "reason", "artifacts"), str),
    **dict.fromkeys(("created", "modified"), is_time),
    **dict.fromkeys(("training_started", "training_ended"), (is_time,)),
    "transitions!": [{"status": str, "message": str, "started": is_time, "ended": (is_time,)}],
    "events": [{"reason!": str, "message!": str, "host!": str, "count!": int, "time!": float}],
}
#: The most characters of each text of a failure.
_FAILURE_TEXTS = {
    **dict.fromkeys(("cause", "host", "process", "signal", "exception", "hint"), contract.FAILURE_LIMIT),
    "traceback": contract.TRACEBACK_LIMIT,
}


@dataclass(frozen=True)
class Transition:
    """One period in a secondary status; times are seconds since the epoch."""

    status: str
    message: str
    started: float
    ended: float | None = None


class JobSummary(NamedTuple):
    """Summary of a job for lists; times are seconds since the epoch."""

    name: str
    arn: str
    created: float
    modified: float
    secondary: str
    training_ended: float | None = None
    #: Number of hosts, and their distribution as the command line names it; 0 and "" where they are unknown.
    hosts: int = 0
    distribution: str = ""
    #: The metric whose value was printed last, and that value; "" and None without one.
    metric_name: str = ""
    metric_value: float | None = None
    #: A problem of the job that its status does not tell, such as an agent that does not answer; "" without one.
    note: str = ""
    #: When a job that waited for others was done with that.
    queue_ended: float | None = None
    #: Position among the jobs that wait for others, from 1 on; 0 for a job that does not.
    position: int = 0


@dataclass(frozen=True)
class JobState:
    """The part of a job that changes while it runs; times are seconds since the epoch."""

    name: str
    arn: str
    created: float
    modified: float
    transitions: tuple[Transition, ...]
    training_started: float | None = None
    training_ended: float | None = None
    reason: str = ""
    artifacts: str = ""
    #: Why the job failed, where more is known than ``reason``.
    failure: Failure | None = None
    #: What the job lost and did again, at most `MOST_EVENTS`.
    events: tuple[JobEvent, ...] = ()
    #: A problem that the reading process found, such as a silent agent; never written to the file.
    note: str = ""
    #: Position in its engine's queue, from 1 on, which the reading process found; never written to the file.
    position: int = 0

    @property
    def secondary(self) -> str:
        """The secondary status."""
        return self.transitions[-1].status

    @property
    def status(self) -> str:
        """The status."""
        return STATUS_OF[self.secondary]

    @property
    def ended(self) -> bool:
        """Whether nothing about the job will change any more."""
        return self.status in ENDED

    @property
    def stoppable(self) -> bool:
        """Whether a request to stop changes how the job ends."""
        return self.secondary in STOPPABLE

    def unrecorded(self) -> JobState:
        """Return the state of a job whose agent died, which is recorded nowhere: the folder cannot be written."""
        return replace(self, note=_UNRECORDED.format(secondary=self.secondary))

    @property
    def is_unrecorded(self) -> bool:
        """Whether the job's agent died and the folder cannot be written, so that the job never ends."""
        return not self.ended and self == self.unrecorded()

    def seconds_in(self, secondary: str, now: float | None = None) -> float:
        """Return how long the job has been in a secondary status; a period that has not ended counts until ``now``."""
        periods = (period for period in self.transitions if period.status == secondary)
        ends = ((period, now if period.ended is None else period.ended) for period in periods)
        return sum(max(0.0, end - period.started) for period, end in ends if end is not None)

    @property
    def training_seconds(self) -> float | None:
        """The seconds in which an ended job had hosts, from its first download on; None for one that had none."""
        if self.training_started is None or self.training_ended is None:
            return None
        started, ended = self.training_started, self.training_ended
        without = (pause for pause in self.transitions if pause.started > started and pause.status in _WITHOUT_HOSTS)
        return ended - started - sum((pause.ended or ended) - pause.started for pause in without)

    @property
    def summary(self) -> JobSummary:
        """The job's summary for lists."""
        return JobSummary(
            self.name,
            self.arn,
            self.created,
            self.modified,
            self.secondary,
            self.training_ended,
            note=self.note,
            queue_ended=next((period.ended for period in self.transitions if period.status == "Pending"), None),
            position=self.position,
        )

    def with_status(
        self, secondary: str, now: float, *, message: str = "", reason: str = "", failure: Failure | None = None
    ) -> JobState:
        """Return the state after entering ``secondary``; unchanged for the current one and after the job ended."""
        if secondary == self.secondary or self.ended:
            return self
        last = replace(self.transitions[-1], ended=now)
        over = STATUS_OF[secondary] in ENDED
        entered = Transition(secondary, message or MESSAGES[secondary], now, now if over else None)
        started = self.training_started
        return replace(
            self,
            modified=now,
            transitions=(*self.transitions[:-1], last, entered),
            training_started=now if started is None and secondary == "Downloading" else started,
            training_ended=now if over and started is not None else None,
            reason=reason,
            failure=failure,
        )

    def with_message(self, message: str, now: float) -> JobState:
        """Return the state with another message of the current secondary status, as the service changes it."""
        current = replace(self.transitions[-1], message=message)
        return replace(self, modified=now, transitions=(*self.transitions[:-1], current))

    def with_event(self, event: JobEvent) -> JobState:
        """Return the state with an event, which counts with an earlier one of its reason, host and message."""
        event = replace(event, message=_shorten_to_bytes(event.message))
        for index, earlier in enumerate(self.events):
            if (earlier.reason, earlier.host, earlier.message) == (event.reason, event.host, event.message):
                again = replace(earlier, count=earlier.count + event.count, time=event.time)
                return replace(self, events=(*self.events[:index], again, *self.events[index + 1 :]))
        if len(self.events) < MOST_EVENTS:
            return replace(self, events=(*self.events, event))
        *kept, last = self.events
        # A loss stays one, whatever is counted with it.
        reason = last.reason if last.is_loss else event.reason
        more = JobEvent(reason, _MORE, count=last.count + event.count, time=event.time)
        return replace(self, events=(*kept, more))

    def to_json(self) -> dict[str, object]:
        """Return the content of the state file."""
        content = asdict(self)
        del content["note"], content["position"]
        return content


class Outcome(NamedTuple):
    """The end of a job: its final secondary status, and the reason and the failure when that is ``Failed``."""

    secondary: str
    reason: str = ""
    failure: Failure | None = None
    #: Of a job that did not fail: the message of its last status; "" for the usual one.
    message: str = ""
    #: Whether the machine of a host was lost, so that another run of the job may succeed.
    is_machine_lost: bool = False
    #: Of a failure outside the script: the service's name of its kind.
    kind: str = ""

    @classmethod
    def failed(cls, kind: str, failure: Failure) -> Outcome:
        """Return the end of a job by a failure outside the script; ``kind`` is the service's name of its kind."""
        reason = "\n".join(filter(None, (f"{kind}: {failure.cause}", failure.traceback)))
        return cls("Failed", reason, failure, kind=kind)


def starting_state(name: str, arn: str, now: float, *, is_queued: bool = False, pending_message: str = "") -> JobState:
    """Return the state that a job begins with: Pending for one that waits for others, or has a message about that."""
    first = "Pending" if is_queued or pending_message else "Starting"
    return JobState(name, arn, now, now, (Transition(first, pending_message or MESSAGES[first], now),))


def state_from_json(content: Any) -> JobState:
    """Parse the result of `JobState.to_json`; raise ``TypeError`` or ``ValueError`` for any other content."""
    validate_shape(content, _STATE, "")
    transitions = tuple(Transition(**transition) for transition in content["transitions"])
    if not transitions:
        raise ValueError("it has no transitions")
    for transition in transitions:
        if transition.status not in STATUS_OF:
            raise ValueError(f"'status' is {transition.status!r}")
    events = tuple(JobEvent(**event) for event in content.get("events", ()))
    failure = content.get("failure")
    found_failure = None if failure is None else failure_from_json(failure)
    return JobState(**{**content, "transitions": transitions, "failure": found_failure, "events": events})


def _shorten_to_bytes(message: str) -> str:
    """Return a message in at most `_EVENT_BYTES` bytes of JSON, where a character takes up to 12."""
    limit = _EVENT_BYTES
    while len(json.dumps(message := contract.shorten(message, limit))) > _EVENT_BYTES:
        limit = len(message) * 9 // 10
    return message


def failure_from_json(content: Any) -> Failure:
    """Parse the record of a failure, the runtime's or a state's; raise ``ValueError`` for any other content.

    Texts that are too long are shortened.
    """
    validate_shape(content, {f"{name}!": str for name in _FAILURE_TEXTS}, "failure")
    code = content.get("exit_code")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool) or not 0 < code <= MOST_EXIT_CODE):
        raise ValueError(f"failure.exit_code is {shortened_repr(code)}")
    # The script, too, can write the record. Its host is compared with the job's as it is.
    shown = {name: content[name] if name == "host" else readable(content[name]) for name in _FAILURE_TEXTS}
    texts = {name: contract.shorten(shown[name], limit) for name, limit in _FAILURE_TEXTS.items()}
    return Failure(**texts, exit_code=code)
