"""What AWS does not describe of a training job: its structured failure, events, hosts, channels, place in the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.serve.aws_json import validation_error
from scriptmode.serve.training_jobs import translated_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.local import LocalPlatform
    from scriptmode.serve.training_jobs import Operation


class JobDetails:
    """The operation that returns them, in the fields of ``scriptmode describe --json``."""

    def __init__(self, platform: LocalPlatform) -> None:
        self._details = {
            "Failure": lambda name: platform.failure(platform.describe(name)),
            "Events": platform.events,
            "Activity": platform.activity,
            "Channels": platform.progress,
            "QueuePosition": platform.queue_position,
        }
        self.operations: dict[str, Operation] = {"DescribeTrainingJobDetails": self._describe}

    def _describe(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        name, details, known = arguments.get("TrainingJobName"), arguments.get("Details"), [*self._details]
        if not isinstance(name, str) or not isinstance(details, list) or any(detail not in known for detail in details):
            raise validation_error(f"TrainingJobName and Details, a list of {', '.join(known)}, are required.")
        with translated_errors():
            values = {detail: self._details[detail](name) for detail in details}
        return {detail: value for detail, value in values.items() if value is not None}
