"""The timeline of a job: the phases of its life, ended early by a stop or by a limit of its request."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import accumulate

from scriptmode.testing._job_life import MESSAGES, WITHOUT_HOSTS, Life, Phase

_ENDING_MESSAGES = {
    "Completed": "Training job completed",
    "Failed": "Training job failed",
    "Stopped": "Training job stopped",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds",
    "MaxWaitTimeExceeded": "Training job wait time exceeded MaxWaitTimeInSeconds",
}
_STOPPING_MESSAGE = "Stopping the training job"


@dataclass(frozen=True)
class StatusSpan:
    """A SecondaryStatus from ``start`` to ``end``, in seconds after the job's creation."""

    status: str
    start: float
    end: float
    message: str

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.end - self.start


@dataclass(frozen=True)
class Timeline:
    """The spans of a job's life; the last one is its end, without length. ``ends`` is the final TrainingJobStatus."""

    spans: tuple[StatusSpan, ...]
    ends: str

    @property
    def end(self) -> float:
        """The second at which the job ends."""
        return self.spans[-1].start

    @property
    def training_start(self) -> float:
        """The second at which the job first had hosts, or infinity."""
        return min((span.start for span in self._with_hosts()), default=math.inf)

    @property
    def restarts(self) -> list[float]:
        """The seconds from which the hosts start again."""
        return [span.end for span in self.spans if span.status in ("Interrupted", "Restarting")]

    @property
    def training_seconds(self) -> float:
        """How long the job had hosts."""
        return sum(span.seconds for span in self._with_hosts())

    def begun(self, second: float) -> tuple[StatusSpan, ...]:
        """Return the spans that have begun; the job is in the last one. The first span has always begun."""
        return tuple(span for span in self.spans if span.start <= second) or self.spans[:1]

    def status(self, second: float) -> str:
        """Return the TrainingJobStatus at a second."""
        if second >= self.end:
            return self.ends
        return "Stopping" if self.begun(second)[-1].status == "Stopping" else "InProgress"

    def _with_hosts(self) -> list[StatusSpan]:
        spans = [span for span in self.spans[:-1] if span.status not in WITHOUT_HOSTS]
        return [] if spans and spans[0].status == "Stopping" else spans


def build_timeline(life: Life, *, max_runtime: float, max_wait: float, stop: float) -> Timeline:
    """Return the timeline of a life, which the earliest of the request's two limits and a call that stops it may end.

    All are in seconds.
    """
    spans = _spans(life.phases)
    moment, why = min(
        (life.seconds, "the end"),
        (stop, "Stopping"),
        (_runtime_is_over(spans, max_runtime), "MaxRuntimeExceeded"),
        (max_wait, "MaxWaitTimeExceeded"),
        key=lambda end: end[0],
    )
    if why == "the end":
        return Timeline((*spans, _final_span(life.secondary_status or life.ends, moment)), life.ends)
    before = tuple(replace(span, end=min(span.end, moment)) for span in spans if span.start < moment)
    if why != "Stopping":
        return Timeline((*before, _final_span(why, moment)), "Stopped")
    stopping = StatusSpan("Stopping", moment, moment + life.stop_seconds, _STOPPING_MESSAGE)
    return Timeline((*before, stopping, _final_span("Stopped", stopping.end)), "Stopped")


def _spans(phases: tuple[Phase, ...]) -> tuple[StatusSpan, ...]:
    ends = [*accumulate(phase.seconds for phase in phases)]
    return tuple(
        StatusSpan(phase.status, start, end, phase.message or MESSAGES[phase.status])
        for phase, start, end in zip(phases, (0.0, *ends), ends)
    )


def _runtime_is_over(spans: tuple[StatusSpan, ...], limit: float) -> float:
    """Return the second at which the hosts have run for ``limit`` seconds; the upload of the model does not count."""
    left = limit
    for span in spans:
        if span.status not in WITHOUT_HOSTS and span.status != "Uploading":
            if span.seconds > left:
                return span.start + left
            left -= span.seconds
    return math.inf


def _final_span(status: str, second: float) -> StatusSpan:
    return StatusSpan(status, second, second, _ENDING_MESSAGES.get(status, f"Training job {status.lower()}"))
