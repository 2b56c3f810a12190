"""A training job of the fake: its request, its life, and its state at a given second."""

from __future__ import annotations

import bisect
import functools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scriptmode.core.request.service_model import DESCRIBED_DEFAULTS, NOT_DESCRIBED
from scriptmode.core.spec.training_job import Limits
from scriptmode.testing.fake_clock import FakeClock
from scriptmode.testing.job_life import Life, Line, Point
from scriptmode.testing.service_calls import deep_copy
from scriptmode.testing.timeline import Timeline, build_timeline

_DEFAULTS = {**DESCRIBED_DEFAULTS, "StoppingCondition": {"MaxRuntimeInSeconds": Limits.max_run}}
#: The share of a spot job's time that it pays for.
_SPOT_PRICE = 0.3


@dataclass(frozen=True)
class HostLog:
    """All lines of a host's log; ``seconds`` are their times in ascending order."""

    lines: tuple[Line, ...]
    seconds: tuple[float, ...]

    def written(self, second: float) -> int:
        """Return the number of lines written by a second."""
        return bisect.bisect_right(self.seconds, second)


class FakeJob:
    """A training job. Moments are seconds of the fake's clock."""

    def __init__(self, request: Mapping[str, Any], life: Life, clock: FakeClock, *, arn: str) -> None:
        self.request = deep_copy(dict(request))
        self.life = life
        self.arn = arn
        self.created = clock.now()
        self.model_is_stored = False
        self._clock = clock
        self._timeline = self._cut(math.inf)

    @property
    def name(self) -> str:
        """The TrainingJobName."""
        return str(self.request["TrainingJobName"])

    @property
    def is_spot(self) -> bool:
        """Whether it runs on managed spot instances."""
        return bool(self.request.get("EnableManagedSpotTraining"))

    @property
    def model_uri(self) -> str:
        """Where the model archive is stored; a directory, with a slash at its end, when it is not compressed."""
        output = self.request["OutputDataConfig"]
        place = f"{output['S3OutputPath'].rstrip('/')}/{self.name}/output"
        return f"{place}/model/" if output.get("CompressionType") == "NONE" else f"{place}/model.tar.gz"

    @functools.cached_property
    def logs(self) -> dict[str, HostLog]:
        """The logs of its hosts, without hosts that never write a line."""
        written = self.life.host_lines().items()
        return {host: HostLog(lines, tuple(line.second for line in lines)) for host, lines in written if lines}

    def instances(self) -> dict[str, int]:
        """Count its instances by type."""
        resources = self.request.get("ResourceConfig", {})
        counts: Counter[str] = Counter()
        for group in resources.get("InstanceGroups") or (resources,):
            if kind := group.get("InstanceType"):
                counts[kind] += group.get("InstanceCount", 1)
        return counts

    def status(self, now: float) -> str:
        """Return the TrainingJobStatus."""
        return self._timeline.status(now - self.created)

    def ended(self, now: float) -> bool:
        """Return whether it completed, failed or was stopped."""
        return now - self.created >= self._timeline.end

    def stop(self, now: float) -> None:
        """Stop it; a job that is stopping is not changed."""
        if self.status(now) == "InProgress":
            self._timeline = self._cut(now - self.created)

    def has_model(self, now: float) -> bool:
        """Return whether it stored a model: it completed, or was stopped after its hosts had started."""
        trained = self._timeline.training_start < math.inf
        return self.ended(now) and (
            self._timeline.ends == "Completed" or (self._timeline.ends == "Stopped" and trained)
        )

    def age(self, now: float) -> float:
        """Return its age in seconds, which stops growing when the job ends."""
        return min(now - self.created, self._timeline.end)

    def points(self, now: float) -> dict[str, list[Point]]:
        """Return the values of its metrics so far."""
        age = self.age(now)
        return {name: [point for point in points if point.second <= age] for name, points in self._points.items()}

    @functools.cached_property
    def _points(self) -> dict[str, tuple[Point, ...]]:
        return self.life.metric_points()

    def summary(self, now: float) -> dict[str, Any]:
        """Return its TrainingJobSummary."""
        current = self._timeline.begun(now - self.created)[-1]
        summary = {
            "TrainingJobName": self.name,
            "TrainingJobArn": self.arn,
            "CreationTime": self._moment(0),
            "LastModifiedTime": self._moment(current.start),
            "TrainingJobStatus": self.status(now),
            "SecondaryStatus": current.status,
        }
        if self.ended(now):
            summary["TrainingEndTime"] = self._moment(self._timeline.end)
        return summary

    def description(self, now: float) -> dict[str, Any]:
        """Return the response of DescribeTrainingJob."""
        told = {key: deep_copy(value) for key, value in self.request.items() if key not in NOT_DESCRIBED}
        description = {**deep_copy(_DEFAULTS), **told, **self.summary(now)}
        description["SecondaryStatusTransitions"] = self._transitions(now)
        final = {name: points[-1] for name, points in self.points(now).items() if points}
        if final:
            description["FinalMetricDataList"] = [
                {"MetricName": name, "Value": point.value, "Timestamp": self._moment(point.second)}
                for name, point in final.items()
            ]
        if now - self.created >= self._timeline.training_start:
            description["TrainingStartTime"] = self._moment(self._timeline.training_start)
        if self.ended(now):
            description.update(self._ending(now))
        return description

    def _ending(self, now: float) -> dict[str, Any]:
        ending: dict[str, Any] = {}
        if self._timeline.ends == "Failed":
            ending["FailureReason"] = self.life.failure_reason or "AlgorithmError: , exit code: 1"
        if self.has_model(now):
            ending["ModelArtifacts"] = {"S3ModelArtifacts": self.model_uri}
        if self._timeline.training_start < math.inf:
            seconds = max(1, round(self._timeline.training_seconds))
            ending["TrainingTimeInSeconds"] = seconds
            ending["BillableTimeInSeconds"] = max(1, round(seconds * _SPOT_PRICE)) if self.is_spot else seconds
        return ending

    def _transitions(self, now: float) -> list[dict[str, Any]]:
        transitions = []
        for span in self._timeline.begun(now - self.created):
            transition = {"Status": span.status, "StartTime": self._moment(span.start), "StatusMessage": span.message}
            if span.end <= now - self.created:
                transition["EndTime"] = self._moment(span.end)
            transitions.append(transition)
        return transitions

    def _cut(self, stop: float) -> Timeline:
        condition = self.request.get("StoppingCondition", {})
        runtime = condition.get("MaxRuntimeInSeconds", Limits.max_run)
        wait = condition.get("MaxWaitTimeInSeconds", math.inf)
        return build_timeline(self.life, max_runtime=runtime, max_wait=wait, stop=stop)

    def _moment(self, second: float) -> Any:
        return self._clock.wall_time(self.created + second)
