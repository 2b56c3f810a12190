"""A job's life as it comes about: its phases one after another, cut by a stop or by a limit of its request."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scriptmode.testing.job_life import MESSAGES, WITHOUT_HOSTS

if TYPE_CHECKING:
    from scriptmode.testing.job_life import Life, Phase

_ENDING_MESSAGES = {
    "Completed": "Training job completed",
    "Failed": "Training job failed",
    "Stopped": "Training job stopped",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds",
    "MaxWaitTimeExceeded": "Training job wait time exceeded MaxWaitTimeInSeconds",
}
_STOPPING_MESSAGE = "Stopping the training job"


@dataclass(frozen=True)
class EarlyEnds:
    """What may end a life early, in seconds: the request's two limits, and when the job was asked to stop."""

    max_runtime: float = math.inf
    max_wait: float = math.inf
    stop: float = math.inf


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

    def until(self, end: float) -> StatusSpan:
        """Return the part before ``end``."""
        return StatusSpan(self.status, self.start, min(self.end, end), self.message)


@dataclass(frozen=True)
class Timeline:
    """The stretches of a job's life; the last one is its ending, of no length. ``ends`` is its TrainingJobStatus."""

    stretches: tuple[StatusSpan, ...]
    ends: str

    @property
    def end(self) -> float:
        """The second at which the job ends."""
        return self.stretches[-1].start

    @property
    def training_start(self) -> float:
        """The second at which the job first had hosts, or infinity."""
        return min((stretch.start for stretch in self._with_hosts()), default=math.inf)

    @property
    def training_seconds(self) -> float:
        """How long the job had hosts."""
        return sum(stretch.seconds for stretch in self._with_hosts())

    def begun(self, second: float) -> tuple[StatusSpan, ...]:
        """Return the stretches that have begun; the job is in the last one. A job is always in its first stretch."""
        return tuple(stretch for stretch in self.stretches if stretch.start <= second) or self.stretches[:1]

    def status(self, second: float) -> str:
        """Return the TrainingJobStatus at a second."""
        if second >= self.end:
            return self.ends
        return "Stopping" if self.begun(second)[-1].status == "Stopping" else "InProgress"

    def _with_hosts(self) -> list[StatusSpan]:
        found = [stretch for stretch in self.stretches[:-1] if stretch.status not in WITHOUT_HOSTS]
        return [] if found and found[0].status == "Stopping" else found


def build_timeline(life: Life, cuts: EarlyEnds) -> Timeline:
    """Return the timeline of a life under the cuts; the earliest cut before the life's end counts."""
    stretches = _spans(life.phases)
    moment, why = min(
        (life.seconds, "the end"),
        (cuts.stop, "Stopping"),
        (_runtime_is_over(stretches, cuts.max_runtime), "MaxRuntimeExceeded"),
        (cuts.max_wait, "MaxWaitTimeExceeded"),
        key=lambda cut: cut[0],
    )
    if why == "the end":
        return Timeline((*stretches, _final_span(life.secondary_status or life.ends, moment)), life.ends)
    before = tuple(stretch.until(moment) for stretch in stretches if stretch.start < moment)
    if why != "Stopping":
        return Timeline((*before, _final_span(why, moment)), "Stopped")
    stopping = StatusSpan("Stopping", moment, moment + life.stop_seconds, _STOPPING_MESSAGE)
    return Timeline((*before, stopping, _final_span("Stopped", stopping.end)), "Stopped")


def _spans(phases: tuple[Phase, ...]) -> tuple[StatusSpan, ...]:
    stretches = []
    start = 0.0
    for phase in phases:
        end = start + phase.seconds
        stretches.append(StatusSpan(phase.status, start, end, phase.message or MESSAGES[phase.status]))
        start = end
    return tuple(stretches)


def _runtime_is_over(stretches: tuple[StatusSpan, ...], limit: float) -> float:
    """Return the second at which the hosts have run for ``limit`` seconds; the upload of the model does not count."""
    left = limit
    for stretch in stretches:
        if stretch.status not in WITHOUT_HOSTS and stretch.status != "Uploading":
            if stretch.seconds > left:
                return stretch.start + left
            left -= stretch.seconds
    return math.inf


def _final_span(status: str, second: float) -> StatusSpan:
    return StatusSpan(status, second, second, _ENDING_MESSAGES.get(status, f"Training job {status.lower()}"))
