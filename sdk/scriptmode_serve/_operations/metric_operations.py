"""CloudWatch's operations on the metrics of training jobs, which `scriptmode serve` and `FakeSageMaker` share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, NamedTuple

from scriptmode.errors import JobNotFoundError, UnreadableJobError
from scriptmode_serve._operations.aws_json import ApiError, NotServedError

Points = list[tuple[datetime, list[float]]]
NAMESPACE = "/aws/sagemaker/TrainingJobs"
_DIMENSION = "TrainingJobName"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_SHORT_PERIODS = (1, 5, 10, 20, 30)
#: From which age on, in seconds, values are kept by periods of which length (GetMetricData, API reference).
_KEPT = ((63 * _DAY, _HOUR), (15 * _DAY, 5 * _MINUTE), (3 * _HOUR, _MINUTE))
#: Nothing is kept for longer.
_LONGEST = 455 * _DAY
#: The most values of an answer to GetMetricData and to GetMetricStatistics.
_MOST_VALUES, _MOST_POINTS = 100_800, 1440
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
    host: str = ""
    step: int | None = None
    epoch: int | None = None


#: Returns the values of a job's metrics by their names. Raises `JobNotFoundError`, `UnreadableJobError`, and
#: ``FileNotFoundError`` for a job that is deleted meanwhile.
ReadValues = Callable[[str], Mapping[str, Sequence[MetricValue]]]


class Metrics:
    """The operations on metrics of training jobs. Their times are seconds since the epoch, those of answers datetimes.

    Args:
        values: Returns the values of a job's metrics.
        now: Returns the time.
        expires: Whether values get coarser with their age and are deleted at last, as those of CloudWatch.
    """

    def __init__(self, values: ReadValues, now: Callable[[], float], *, expires: bool = False) -> None:
        self._values_of_job = values
        self._now = now
        self._expires = expires
        self.operations = {"GetMetricData": self._data, "GetMetricStatistics": self._statistics}

    def _data(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        newest_first = arguments.get("ScanBy", "TimestampDescending") == "TimestampDescending"
        token = arguments.get("NextToken", "0")
        if not token.isdecimal():
            raise ApiError("InvalidNextToken", "The next token specified is invalid.")
        start, most = int(token), int(arguments.get("MaxDatapoints", _MOST_VALUES))
        if most < 1:
            raise ApiError("ValidationError", f"MaxDatapoints is {most}; it must be at least 1.")
        position, left, results = 0, most, []
        queries = arguments.get("MetricDataQueries") or []
        for query in queries:
            points = sorted(self._query(query, arguments), reverse=newest_first)
            skipped = min(max(start - position, 0), len(points))
            page = points[skipped : skipped + left]
            position += len(points)
            left -= len(page)
            if query.get("ReturnData", True):
                results.append(_result(query, page, is_whole=skipped + len(page) == len(points)))
        answer: dict[str, object] = {"MetricDataResults": results, "Messages": []}
        end = start + most - left
        return {**answer, "NextToken": str(end)} if end < position else answer

    def _query(self, query: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[tuple[datetime, float]]:
        if "MetricStat" not in query:
            raise NotServedError(f"The query {query.get('Id')!r} has no MetricStat; expressions are not served.")
        asked = query["MetricStat"]
        statistic = _statistic(asked["Stat"])
        metric = {**asked["Metric"], "Unit": asked.get("Unit", "None"), "Period": asked["Period"]}
        return [(moment, statistic(values)) for moment, values in self._periods(metric, arguments, "ValidationError")]

    def _statistics(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        if arguments.get("ExtendedStatistics"):
            raise NotServedError(f"ExtendedStatistics are not served; Statistics may have {', '.join(_STATISTICS)}.")
        statistics = {name: _statistic(name) for name in arguments.get("Statistics") or ()}
        if not statistics:
            raise ApiError("MissingParameter", "At least one of Statistics and ExtendedStatistics must be given.")
        seconds, period = float(arguments["EndTime"]) - float(arguments["StartTime"]), int(arguments["Period"])
        if period > 0 and (count := math.ceil(seconds / period)) > _MOST_POINTS:
            text = f"You have requested up to {count} datapoints, which exceeds the limit of {_MOST_POINTS}."
            advice = "You may reduce the datapoints requested by increasing Period, or decreasing the time range."
            raise ApiError("InvalidParameterCombination", f"{text} {advice}")
        return {
            "Label": arguments["MetricName"],
            "Datapoints": [
                {"Timestamp": moment, **{name: of(values) for name, of in statistics.items()}, "Unit": "None"}
                for moment, values in self._periods(arguments, arguments, "InvalidParameterValue")
            ],
        }

    def _periods(self, metric: Mapping[str, Any], span: Mapping[str, Any], code: str) -> Points:
        """Return the values of each period that has some; ``code`` is that of an error."""
        start, end, period = float(span["StartTime"]), float(span["EndTime"]), int(metric["Period"])
        if period not in _SHORT_PERIODS and (period < 1 or period % _MINUTE):
            raise ApiError(code, f"Period is {period}; it must be 1, 5, 10, 20, 30 or a multiple of 60.")
        if start >= end:
            raise ApiError(code, "The parameter StartTime must be less than the parameter EndTime.")
        now = self._now()
        kept = next((length for age, length in _KEPT if now - start > age), _MINUTE)
        if self._expires and now - start > _KEPT[-1][0] and period % kept:
            return []
        start -= start % min(period, kept)
        first = max(start, now - _LONGEST) if self._expires else start
        grouped: dict[float, list[float]] = {}
        for moment, value, *_ in self._values(metric):
            stamp = moment - moment % min(period, _MINUTE)
            if first <= stamp < end and math.isfinite(value):
                # Periods begin at StartTime, as in the examples of `aws cloudwatch get-metric-statistics help`.
                grouped.setdefault(stamp - (stamp - start) % period, []).append(value)
        return [(_EPOCH + timedelta(seconds=beginning), values) for beginning, values in grouped.items()]

    def _values(self, metric: Mapping[str, Any]) -> Sequence[MetricValue]:
        dimensions = {dimension["Name"]: dimension["Value"] for dimension in metric.get("Dimensions") or ()}
        if "Host" in dimensions and metric["Namespace"] == NAMESPACE:
            raise NotServedError("Metrics of instances, by the dimension Host, are not served; those of logs are.")
        if set(dimensions) != {_DIMENSION} or metric["Namespace"] != NAMESPACE or metric.get("Unit", "None") != "None":
            return ()
        try:
            return self._values_of_job(dimensions[_DIMENSION]).get(metric["MetricName"], ())
        except (JobNotFoundError, UnreadableJobError, FileNotFoundError):
            return ()


def last_values(values: Mapping[str, Sequence[MetricValue]]) -> list[dict[str, object]]:
    """Return the last value of each metric of a job, as DescribeTrainingJob has them."""
    # Neither CloudWatch nor JSON has values that are not finite.
    finite = {metric: [point for point in points if math.isfinite(point.value)] for metric, points in values.items()}
    return [
        {"MetricName": metric, "Value": value, "Timestamp": _EPOCH + timedelta(seconds=moment)}
        for metric, points in finite.items()
        if points
        # Of values of the same time the last one.
        for moment, value, *_ in [max(reversed(points), key=lambda point: point.time)]
    ]


def _result(query: Mapping[str, Any], page: list[tuple[datetime, float]], *, is_whole: bool) -> dict[str, object]:
    return {
        "Id": query["Id"],
        "Label": query.get("Label") or query["MetricStat"]["Metric"]["MetricName"],
        "Timestamps": [moment for moment, _ in page],
        "Values": [value for _, value in page],
        "StatusCode": "Complete" if is_whole else "PartialData",
    }


def _statistic(name: str) -> Callable[[Sequence[float]], float]:
    if name not in _STATISTICS:
        raise NotServedError(f"The statistic {name!r} is not served; those that are: {', '.join(_STATISTICS)}.")
    return _STATISTICS[name]
