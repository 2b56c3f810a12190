"""A training job of the fake: its request, its life, and its state at a given second."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import Any

from scriptmode._core.request.service_model import DESCRIBED_DEFAULTS, NOT_DESCRIBED
from scriptmode._core.spec.training_job import Limits
from scriptmode.testing._fake_clock import FakeClock
from scriptmode.testing._job_life import MESSAGES, WITHOUT_HOSTS, Life, Line, Phase
from scriptmode_serve._operations.metric_operations import MetricValue, last_values

_DEFAULTS = {**DESCRIBED_DEFAULTS, "StoppingCondition": {"MaxRuntimeInSeconds": Limits.max_run}}
#: The share of a spot job's time that it pays for.
_SPOT_PRICE = 0.3


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


class FakeJob:
    """A training job. Moments are seconds of the fake's clock."""

    def __init__(self, request: Mapping[str, Any], life: Life, clock: FakeClock, *, arn: str) -> None:
        self.request = dict(deepcopy(request))
        self.name = str(request["TrainingJobName"])
        self.is_spot = bool(request.get("EnableManagedSpotTraining"))
        self.life = life
        #: The lines of each host's log in order of time.
        self.logs = life.host_lines()
        self.arn = arn
        self.created = clock.now()
        self.model_is_stored = False
        self._points = life.metric_points()
        self._clock = clock
        #: The last span is the end, without length, of the final TrainingJobStatus.
        self._spans, self._ends = self._cut(math.inf)

    @property
    def _end(self) -> float:
        return self._spans[-1].start

    @property
    def _with_hosts(self) -> list[StatusSpan]:
        spans = [span for span in self._spans[:-1] if span.status not in WITHOUT_HOSTS]
        return [] if spans and spans[0].status == "Stopping" else spans

    @property
    def _training_start(self) -> float:
        return min((span.start for span in self._with_hosts), default=math.inf)

    def _begun(self, now: float) -> tuple[StatusSpan, ...]:
        """Return the spans that have begun; the job is in the last one. The first span has always begun."""
        return tuple(span for span in self._spans if span.start <= now - self.created) or self._spans[:1]

    @property
    def model_uri(self) -> str:
        """Where the model archive is stored; a directory, with a slash at its end, when it is not compressed."""
        output = self.request["OutputDataConfig"]
        place = f"{output['S3OutputPath'].rstrip('/')}/{self.name}/output"
        return f"{place}/model/" if output.get("CompressionType") == "NONE" else f"{place}/model.tar.gz"

    def start_of(self, line: Line) -> int:
        """Return the number of times that its hosts had started again when they wrote a line."""
        restarts = [span.end for span in self._spans if span.status in ("Interrupted", "Restarting")]
        return bisect.bisect_right(restarts, line.second)

    def status(self, now: float) -> str:
        """Return the TrainingJobStatus."""
        if self.ended(now):
            return self._ends
        return "Stopping" if self._begun(now)[-1].status == "Stopping" else "InProgress"

    def ended(self, now: float) -> bool:
        """Return whether it completed, failed or was stopped."""
        return now - self.created >= self._end

    def stop(self, now: float) -> None:
        """Stop it; a job that is stopping is not changed."""
        if self.status(now) == "InProgress":
            self._spans, self._ends = self._cut(now - self.created)

    def has_model(self, now: float) -> bool:
        """Return whether it stored a model: it completed, or was stopped after its hosts had started."""
        was_stopped = self._ends == "Stopped" and self._training_start < math.inf
        return self.ended(now) and (self._ends == "Completed" or was_stopped)

    def age(self, now: float) -> float:
        """Return its age in seconds, which stops growing when the job ends."""
        return min(now - self.created, self._end)

    def moment(self, second: float) -> datetime:
        """Return the date and time of a second after its creation."""
        return self._clock.wall_time(self.created + second)

    def metrics(self, now: float) -> dict[str, list[MetricValue]]:
        """Return the values of its metrics so far."""
        age, created = self.age(now), self.moment(0).timestamp()
        return {
            name: [MetricValue(created + point.second, point.value) for point in points if point.second <= age]
            for name, points in self._points.items()
        }

    def summary(self, now: float) -> dict[str, object]:
        """Return its TrainingJobSummary."""
        current = self._begun(now)[-1]
        summary = {
            "TrainingJobName": self.name,
            "TrainingJobArn": self.arn,
            "CreationTime": self.moment(0),
            "LastModifiedTime": self.moment(current.start),
            "TrainingJobStatus": self.status(now),
            "SecondaryStatus": current.status,
        }
        if self.ended(now):
            summary["TrainingEndTime"] = self.moment(self._end)
        return summary

    def description(self, now: float) -> dict[str, object]:
        """Return the response of DescribeTrainingJob."""
        told = {key: value for key, value in self.request.items() if key not in NOT_DESCRIBED}
        begin, ended, trained = self._training_start, self.ended(now), self._with_hosts
        seconds = max(1, round(sum(span.seconds for span in trained))) if ended and trained else 0
        billed = max(1, round(seconds * _SPOT_PRICE)) if self.is_spot and seconds else seconds
        has_failed = ended and self._ends == "Failed"
        known = {
            "FinalMetricDataList": last_values(self.metrics(now)),
            "TrainingStartTime": self.moment(begin) if self.age(now) >= begin else None,
            "FailureReason": has_failed and (self.life.failure_reason or "AlgorithmError: , exit code: 1"),
            "ModelArtifacts": self.has_model(now) and {"S3ModelArtifacts": self.model_uri},
            "TrainingTimeInSeconds": seconds,
            "BillableTimeInSeconds": billed,
        }
        return {
            **deepcopy({**_DEFAULTS, **told}),
            **self.summary(now),
            "SecondaryStatusTransitions": self._transitions(now),
            **{field: value for field, value in known.items() if value},
        }

    def _transitions(self, now: float) -> list[dict[str, object]]:
        transitions = []
        for span in self._begun(now):
            transition = {"Status": span.status, "StartTime": self.moment(span.start), "StatusMessage": span.message}
            if span.end <= now - self.created:
                transition["EndTime"] = self.moment(span.end)
            transitions.append(transition)
        return transitions

    def _cut(self, stop: float) -> tuple[tuple[StatusSpan, ...], str]:
        """Return the spans of its life, which a limit of its request or a call at the second ``stop`` may end."""
        life, condition = self.life, self.request.get("StoppingCondition", {})
        spans = _spans(life.phases)
        moment, why = min(
            (life.seconds, "the end"),
            (stop, "Stopping"),
            (_runtime_is_over(spans, condition.get("MaxRuntimeInSeconds", Limits.max_run)), "MaxRuntimeExceeded"),
            (condition.get("MaxWaitTimeInSeconds", math.inf), "MaxWaitTimeExceeded"),
            key=lambda end: end[0],
        )
        if why == "the end":
            return (*spans, _final_span(life.secondary_status or life.ends, moment)), life.ends
        before = tuple(replace(span, end=min(span.end, moment)) for span in spans if span.start < moment)
        if why != "Stopping":
            return (*before, _final_span(why, moment)), "Stopped"
        stopping = StatusSpan("Stopping", moment, moment + life.stop_seconds, "Stopping the training job")
        return (*before, stopping, _final_span("Stopped", stopping.end)), "Stopped"


def _spans(phases: Sequence[Phase]) -> tuple[StatusSpan, ...]:
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
    limits = {"MaxRuntimeExceeded": "runtime exceeded MaxRuntimeInSeconds",
              "MaxWaitTimeExceeded": "wait time exceeded MaxWaitTimeInSeconds"}  # fmt: skip
    return StatusSpan(status, second, second, f"Training job {limits.get(status, status.lower())}")
