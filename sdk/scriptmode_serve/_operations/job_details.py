"""What AWS does not tell of training jobs: structured failures, events, hosts, channels, the queue, every value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from scriptmode_local import LocalPlatform
from scriptmode_serve._operations.aws_json import Operation, validation_error
from scriptmode_serve._operations.metric_operations import MetricValue, ReadValues
from scriptmode_serve._operations.training_jobs import list_jobs, translated_errors


def job_details(platform: LocalPlatform, values: ReadValues) -> dict[str, Operation]:
    """Return the operations that return them, in the fields of the SDK's own; ``values`` returns those of metrics."""
    details: dict[str, Callable[[str], object]] = {
        "Failure": lambda name: platform.failure(platform.describe(name)),
        "Events": platform.events,
        "Activity": platform.activity,
        "Channels": platform.progress,
        "QueuePosition": platform.queue_position,
        "Metrics": lambda name: _in_columns(values(name)),
    }
    return {"DescribeTrainingJobDetails": partial(_describe, details), "ListTrainingJobs": partial(list_jobs, platform)}


def _describe(details: Mapping[str, Callable[[str], object]], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    name, asked = arguments.get("TrainingJobName"), arguments.get("Details")
    if not isinstance(name, str) or not isinstance(asked, list) or any(detail not in [*details] for detail in asked):
        raise validation_error(f"TrainingJobName and Details, a list of {', '.join(details)}, are required.")
    with translated_errors():
        found = {detail: details[detail](name) for detail in asked}
    return {detail: value for detail, value in found.items() if value is not None}


def _in_columns(metrics: Mapping[str, Sequence[MetricValue]]) -> list[dict[str, object]]:
    """Return the values of each metric, of each host one after the other, in columns: there may be a million."""
    ordered = {
        name: sorted(values, key=lambda value: (len(value.host), value.host)) for name, values in metrics.items()
    }
    return [{"name": name, **dict(zip(MetricValue._fields, zip(*values)))} for name, values in ordered.items()]
