"""The fake's Amazon CloudWatch: the metrics of training jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Callable

from scriptmode.testing import botocore_models
from scriptmode.testing.fake_account import FakeAccount
from scriptmode.testing.fake_client import Operation
from scriptmode.testing.service_calls import ServiceError

NAMESPACE = "/aws/sagemaker/TrainingJobs"
DIMENSION = "TrainingJobName"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_SHORT_PERIODS = (1, 5, 10, 20, 30)
#: From which age on, in seconds, values are kept by periods of which length (GetMetricData, API reference).
_KEPT = ((63 * _DAY, _HOUR), (15 * _DAY, 5 * _MINUTE), (3 * _HOUR, _MINUTE))
#: Nothing is kept for longer.
_LONGEST = 455 * _DAY
_MOST_POINTS = 100_800
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "Average": lambda values: math.fsum(values) / len(values),
    "Maximum": max,
    "Minimum": min,
    "SampleCount": lambda values: float(len(values)),
    "Sum": math.fsum,
}


class FakeMetrics:
    """The operations on metrics."""

    def __init__(self, account: FakeAccount) -> None:
        self._account = account
        self.operations: dict[str, Operation] = {
            "get_metric_data": self._data,
            "get_metric_statistics": self._statistics,
        }

    def _data(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        botocore_models.check_limits("cloudwatch", "get_metric_data", arguments)
        newest_first = arguments.get("ScanBy", "TimestampDescending") == "TimestampDescending"
        token = arguments.get("NextToken", "0")
        if not token.isdigit():
            raise ServiceError("InvalidNextToken", "The next token specified is invalid.")
        start = int(token)
        left = arguments.get("MaxDatapoints", _MOST_POINTS)
        position, more, results = 0, False, []
        for query in arguments["MetricDataQueries"]:
            found = sorted(self._points(query, arguments), reverse=newest_first)
            skipped = min(max(start - position, 0), len(found))
            page = found[skipped : skipped + left]
            position += len(found)
            left -= len(page)
            is_whole = skipped + len(page) == len(found)
            more = more or not is_whole
            if query.get("ReturnData", True):
                results.append(_result(query, page, is_whole=is_whole))
        shown = arguments.get("MaxDatapoints", _MOST_POINTS) - left
        answer: dict[str, Any] = {"MetricDataResults": results, "Messages": []}
        return {**answer, "NextToken": str(start + shown)} if more else answer

    def _points(self, query: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[tuple[datetime, float]]:
        if "MetricStat" not in query:
            raise NotImplementedError(
                f"the fake 'cloudwatch' client has no metric math or SQL (query {query.get('Id')!r}); give a MetricStat"
            )
        asked = query["MetricStat"]
        statistic = _statistic(asked["Stat"])
        periods = self._periods(asked["Metric"], asked["Period"], arguments)
        return [(moment, statistic(values)) for moment, values in periods.items()]

    def _statistics(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        statistics = {name: _statistic(name) for name in arguments.get("Statistics", ())}
        if not statistics:
            raise ServiceError("MissingParameter", "At least one of Statistics and ExtendedStatistics must be given.")
        periods = self._periods(arguments, arguments["Period"], arguments)
        return {
            "Label": arguments["MetricName"],
            "Datapoints": [
                {"Timestamp": moment, "Unit": "None", **{name: of(values) for name, of in statistics.items()}}
                for moment, values in periods.items()
            ],
        }

    def _periods(self, metric: Mapping[str, Any], period: int, span: Mapping[str, Any]) -> dict[datetime, list[float]]:
        """Group a metric's values so far by period; the key is the period's beginning."""
        if period not in _SHORT_PERIODS and (period < 1 or period % _MINUTE):
            raise ServiceError(
                "ValidationError", f"Period is {period}; it must be 1, 5, 10, 20, 30 or a multiple of 60."
            )
        start, end = (botocore_models.parse_time(span[key]).timestamp() for key in ("StartTime", "EndTime"))
        start -= start % min(period, _MINUTE)
        now = self._account.clock.wall_time().timestamp()
        if any(now - start > age and period % kept for age, kept in _KEPT):
            return {}
        grouped: dict[datetime, list[float]] = {}
        for moment, value in self._values(metric):
            beginning = moment - moment % period
            if max(start, now - _LONGEST) <= beginning < end:
                grouped.setdefault(_START_OF_TIME + timedelta(seconds=beginning), []).append(value)
        return grouped

    def _values(self, metric: Mapping[str, Any]) -> list[tuple[float, float]]:
        """Return a metric's values so far, each with its epoch second."""
        dimensions = {dimension["Name"]: dimension["Value"] for dimension in metric.get("Dimensions", ())}
        job = self._account.jobs.get(dimensions.get(DIMENSION, ""))
        if job is None or metric["Namespace"] != NAMESPACE or set(dimensions) != {DIMENSION}:
            return []
        created = self._account.clock.wall_time(job.created).timestamp()
        points = job.points(self._account.clock.now()).get(metric["MetricName"], [])
        return [(created + point.second, point.value) for point in points]


_START_OF_TIME = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _result(query: Mapping[str, Any], page: list[tuple[datetime, float]], *, is_whole: bool) -> dict[str, Any]:
    return {
        "Id": query["Id"],
        "Label": query.get("Label", query["MetricStat"]["Metric"]["MetricName"]),
        "Timestamps": [moment for moment, _ in page],
        "Values": [value for _, value in page],
        "StatusCode": "Complete" if is_whole else "PartialData",
    }


def _statistic(name: str) -> Callable[[Sequence[float]], float]:
    if name not in _STATISTICS:
        raise NotImplementedError(
            f"the fake 'cloudwatch' client has no statistic {name!r}; it has {', '.join(_STATISTICS)}"
        )
    return _STATISTICS[name]
