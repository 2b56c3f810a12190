"""CloudWatch's metrics of training jobs: values in the hosts' logs, with the times of their lines, in periods."""

from __future__ import annotations

import math
import threading
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from scriptmode.core.spec.metric_definitions import Definition, LogPositions
from scriptmode.errors import JobNotFoundError
from scriptmode.serve.aws_json import ApiError, NotServedError
from scriptmode.serve.log_pages import LogFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scriptmode.core.spec.job_request import JobRequest
    from scriptmode.platforms.local import LocalPlatform
    from scriptmode.serve.log_pages import Line
    from scriptmode.serve.log_times import LogWatch

NAMESPACE = "/aws/sagemaker/TrainingJobs"
_DIMENSION = "TrainingJobName"
_MINUTE = 60
#: Jobs whose values are kept in memory.
_MOST_JOBS = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "Average": lambda values: math.fsum(values) / len(values),
    "Maximum": max,
    "Minimum": min,
    "SampleCount": lambda values: float(len(values)),
    "Sum": math.fsum,
}


class MetricValue(NamedTuple):
    """A value of a metric; ``time`` is in seconds since the epoch, other numbers are None where no line names one."""

    time: float
    value: float
    host: str
    step: int | None = None
    epoch: int | None = None


class _JobValues:
    """The values of one job's metrics by their names, as far as its logs were read."""

    def __init__(self, job: JobRequest) -> None:
        self.definitions = [Definition(name, regex) for name, regex in job.algorithm.metric_definitions]
        self.positions = LogPositions()
        self.offsets: dict[str, int] = {}
        self.values: dict[str, list[MetricValue]] = {each.name: [] for each in self.definitions}

    def add(self, host: str, line: Line) -> None:
        """Add the values of one line of a host's log."""
        self.positions.read_heading(host, line.text)
        position = None
        for each in self.definitions:
            if found := list(each.values(line.text)):
                position = position or self.positions.find(host, line.text)
                self.values[each.name] += (MetricValue(line.time / 1000, value, host, *position) for value in found)


class JobMetrics:
    """The metrics of the training jobs of a platform."""

    def __init__(self, platform: LocalPlatform, watch: LogWatch) -> None:
        self._platform = platform
        self._watch = watch
        self._lock = threading.Lock()
        self._known: dict[tuple[str, datetime | None], _JobValues] = {}

    def get_metric_data(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to GetMetricData; raise `NotServedError` for metrics that are not of training jobs."""
        queries = arguments.get("MetricDataQueries") or []
        metrics = [query["MetricStat"].get("Metric", {}) for query in queries if "MetricStat" in query]
        if any(metric.get("Namespace") != NAMESPACE for metric in metrics):
            raise NotServedError
        if any(name not in arguments for name in ("MetricDataQueries", "StartTime", "EndTime")):
            raise _invalid("MetricDataQueries, StartTime and EndTime are required.")
        span = float(arguments["StartTime"]), float(arguments["EndTime"])
        newest_first = arguments.get("ScanBy", "TimestampDescending") == "TimestampDescending"
        results = [self._result(query, span, newest_first) for query in queries if query.get("ReturnData", True)]
        return {"MetricDataResults": results, "Messages": []}

    def final_values(self, name: str) -> list[dict[str, Any]]:
        """Return the last value of each metric of a job, as DescribeTrainingJob has them."""
        try:
            found = self.values(name)
        except (JobNotFoundError, FileNotFoundError):
            return []
        # Neither CloudWatch nor JSON has values that are not finite.
        finite = {metric: [each for each in values if math.isfinite(each.value)] for metric, values in found.items()}
        return [
            {"MetricName": metric, "Value": value, "Timestamp": _EPOCH + timedelta(seconds=moment)}
            for metric, values in finite.items()
            if values
            # Of values of the same time the last one.
            for moment, value, *_ in [max(reversed(values), key=lambda each: each.time)]
        ]

    def _result(self, query: Mapping[str, Any], span: tuple[float, float], newest_first: bool) -> dict[str, Any]:  # noqa: FBT001 - an order
        if "MetricStat" not in query:
            raise _invalid("Only queries with MetricStat are served, without expressions.")
        statistics = query["MetricStat"]
        period, statistic = int(statistics["Period"]), _STATISTICS.get(statistics["Stat"])
        if statistic is None or period < 1:
            raise _invalid(
                f"Stat is {statistics['Stat']!r} and Period is {period}; Stat is one of {', '.join(_STATISTICS)}."
            )
        start = span[0] - span[0] % min(period, _MINUTE)
        grouped: dict[float, list[float]] = {}
        for moment, value, *_ in self._values(statistics["Metric"]):
            beginning = moment - moment % period
            if start <= beginning < span[1]:
                grouped.setdefault(beginning, []).append(value)
        points = sorted(grouped.items(), reverse=newest_first)
        return {
            "Id": query["Id"],
            "Label": query.get("Label") or statistics["Metric"]["MetricName"],
            "Timestamps": [_EPOCH + timedelta(seconds=beginning) for beginning, _ in points],
            "Values": [statistic(values) for _, values in points],
            "StatusCode": "Complete",
        }

    def _values(self, metric: Mapping[str, Any]) -> list[MetricValue]:
        dimensions = {each["Name"]: each["Value"] for each in metric.get("Dimensions") or ()}
        if set(dimensions) != {_DIMENSION}:
            return []
        try:
            values = self.values(dimensions[_DIMENSION])
        except (JobNotFoundError, FileNotFoundError):
            return []
        return values.get(metric["MetricName"], [])

    def values(self, name: str) -> dict[str, list[MetricValue]]:
        """Return the values of a job's metrics by their names; read what its logs have more than at the last call.

        Raises `JobNotFoundError`, and ``FileNotFoundError`` for a job that is deleted meanwhile.
        """
        description = self._platform.describe(name)
        with self._lock:
            key = name, description.created
            known = self._known.pop(key, None) or _JobValues(description.job)
            self._known[key] = known
            while len(self._known) > _MOST_JOBS:
                self._known.pop(next(iter(self._known)))
            if known.definitions:
                for host, times, length in self._watch.times(name):
                    log = LogFile(times.log, times, length, description.has_ended)
                    for line in log.forwards(known.offsets.get(host, 0)):
                        known.offsets[host] = line.end
                        known.add(host, line)
            return {metric: list(values) for metric, values in known.values.items()}


def _invalid(message: str) -> ApiError:
    return ApiError("ValidationError", message)
