"""A job's metrics from CloudWatch: averages per minute, and over longer periods for older jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from scriptmode._core.aws.session import Connection
from scriptmode._core.spec.service_values import Metric

NAMESPACE = "/aws/sagemaker/TrainingJobs"
#: Days for which CloudWatch keeps values of this many seconds (Metrics retention, CloudWatch user guide).
_KEPT = ((15, 60), (63, 300), (455, 3600))
#: Queries that one call may have (GetMetricData, CloudWatch API reference).
_QUERIES = 500


def read_metrics(description: Mapping[str, Any], connection: Connection) -> list[Metric]:
    """Return every value of the job's metrics, metric by metric as they were defined, in order of time.

    A metric of which CloudWatch has nothing (any more) has its final value. Without metrics no call is made.
    """
    final = {row["MetricName"]: row for row in description.get("FinalMetricDataList", ())}
    defined = description.get("AlgorithmSpecification", {}).get("MetricDefinitions", ())
    names = list(dict.fromkeys([*(definition["Name"] for definition in defined), *final]))
    values: dict[str, list[Metric]] = {name: [] for name in names}
    for start in range(0, len(names), _QUERIES):
        for metric in _stored(names[start : start + _QUERIES], description, connection):
            values[metric.name].append(metric)
    for name, last in final.items():
        if not values[name]:
            values[name] = [Metric(name, float(last["Value"]), last.get("Timestamp"))]
    never = datetime.min.replace(tzinfo=timezone.utc)
    return [metric for name in names for metric in sorted(values[name], key=lambda value: value.timestamp or never)]


def _stored(names: list[str], description: Mapping[str, Any], connection: Connection) -> Iterator[Metric]:
    now = connection.clock.wall_time()
    begun = description.get("TrainingStartTime") or description["CreationTime"]
    ended = description.get("TrainingEndTime") or max(now, description["LastModifiedTime"])
    period = next((seconds for days, seconds in _KEPT if now - begun < timedelta(days=days)), _KEPT[-1][1])
    job = {"Dimensions": [{"Name": "TrainingJobName", "Value": description["TrainingJobName"]}]}
    metrics = [{"Namespace": NAMESPACE, "MetricName": name, **job} for name in names]
    queries = [
        {"Id": f"m{number}", "MetricStat": {"Metric": metric, "Period": period, "Stat": "Average"}}
        for number, metric in enumerate(metrics)
    ]
    # A period begins before its first value and ends after its last one.
    span = {"StartTime": begun - timedelta(seconds=period), "EndTime": ended + timedelta(seconds=period)}
    selection = {"MetricDataQueries": queries, **span}
    subject = f"the metrics of {description['TrainingJobName']}"
    for result in connection.list_all(subject, "cloudwatch", "get_metric_data", "MetricDataResults", selection):
        name = names[int(result["Id"][1:])]
        for moment, value in zip(result["Timestamps"], result["Values"]):
            yield Metric(name, float(value), moment)
