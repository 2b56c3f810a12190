"""A job's metrics as CloudWatch keeps them: one value a minute, its average."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from scriptmode.platforms import Metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scriptmode.platforms.sagemaker.connection import Connection

NAMESPACE = "/aws/sagemaker/TrainingJobs"
_PERIOD = 60
#: Queries that one call may have (GetMetricData, CloudWatch API reference).
_QUERIES = 500


def values_of(description: Mapping[str, Any], connection: Connection) -> list[Metric]:
    """Give every value of the job's metrics, metric by metric as they were defined, in order of time.

    A metric of which CloudWatch has nothing (any more) has its final value. Without metrics nobody is asked.
    """
    final = {each["MetricName"]: each for each in description.get("FinalMetricDataList", ())}
    defined = description.get("AlgorithmSpecification", {}).get("MetricDefinitions", ())
    names = list(dict.fromkeys([*(each["Name"] for each in defined), *final]))
    values: dict[str, list[Metric]] = {name: [] for name in names}
    for start in range(0, len(names), _QUERIES):
        for metric in _stored(names[start : start + _QUERIES], description, connection):
            values[metric.name].append(metric)
    for name, last in final.items():
        if not values[name]:
            values[name] = [Metric(name, float(last["Value"]), last.get("Timestamp"))]
    return [metric for name in names for metric in sorted(values[name], key=_time_of)]


def _stored(names: list[str], description: Mapping[str, Any], connection: Connection) -> Iterator[Metric]:
    dimensions = [{"Name": "TrainingJobName", "Value": description["TrainingJobName"]}]
    queries = [
        {
            "Id": f"m{number}",
            "MetricStat": {
                "Metric": {"Namespace": NAMESPACE, "MetricName": name, "Dimensions": dimensions},
                "Period": _PERIOD,
                "Stat": "Average",
            },
        }
        for number, name in enumerate(names)
    ]
    begun = description.get("TrainingStartTime") or description["CreationTime"]
    ended = description.get("TrainingEndTime") or max(datetime.now(timezone.utc), description["LastModifiedTime"])

    def read() -> list[Any]:
        pages = connection.client("cloudwatch").get_paginator("get_metric_data")
        # CloudWatch's minutes begin before the first value and end after the last one.
        found = pages.paginate(
            MetricDataQueries=queries,
            StartTime=begun - timedelta(seconds=_PERIOD),
            EndTime=ended + timedelta(seconds=_PERIOD),
        )
        return [result for page in found for result in page["MetricDataResults"]]

    for result in connection.call(f"the metrics of {description['TrainingJobName']}", read):
        name = names[int(result["Id"][1:])]
        for moment, value in zip(result["Timestamps"], result["Values"]):
            yield Metric(name, float(value), moment)


def _time_of(metric: Metric) -> datetime:
    return metric.timestamp or datetime.min.replace(tzinfo=timezone.utc)
