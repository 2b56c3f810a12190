"""What AWS does not tell of training jobs: structured failures, events, hosts, channels, the queue, every value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from scriptmode_local import LocalPlatform
from scriptmode_serve._operations.aws_json import Operation, validation_error
from scriptmode_serve._operations.metric_operations import MetricValue, ReadValues
from scriptmode_serve._operations.training_jobs import list_jobs, translated_errors


class JobDetails:
    """The operations that return them, in the fields of the SDK's own; ``values`` has those of a job's metrics."""

    def __init__(self, platform: LocalPlatform, values: ReadValues) -> None:
        self._details: dict[str, Callable[[str], object]] = {
            "Failure": lambda name: platform.failure(platform.describe(name)),
            "Events": platform.events,
            "Activity": platform.activity,
            "Channels": platform.progress,
            "QueuePosition": platform.queue_position,
            "Metrics": lambda name: _in_columns(values(name)),
        }
        self.operations: dict[str, Operation] = {
            "DescribeTrainingJobDetails": self._describe,
            "ListTrainingJobs": partial(list_jobs, platform),
        }

    def _describe(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        name, details, known = arguments.get("TrainingJobName"), arguments.get("Details"), [*self._details]
        if not isinstance(name, str) or not isinstance(details, list) or any(detail not in known for detail in details):
            raise validation_error(f"TrainingJobName and Details, a list of {', '.join(known)}, are required.")
        with translated_errors():
            values = {detail: self._details[detail](name) for detail in details}
        return {detail: value for detail, value in values.items() if value is not None}


def _in_columns(metrics: Mapping[str, Sequence[MetricValue]]) -> list[dict[str, object]]:
    """Return the values of each metric, of each host one after the other, in columns: there may be a million."""
    ordered = {
        name: sorted(values, key=lambda value: (len(value.host), value.host)) for name, values in metrics.items()
    }
    return [{"name": name, **dict(zip(MetricValue._fields, zip(*values)))} for name, values in ordered.items()]
