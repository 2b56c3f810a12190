"""What `scriptmode serve` tells of a job beside SageMaker's API. Amazon SageMaker has no such operation.

Its model for botocore is beside `scriptmode._core.aws`; values are JSON objects of the fields of the SDK's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlsplit

from scriptmode._core import aws
from scriptmode._core.aws.direct_endpoints import add_models
from scriptmode._core.aws.session import Connection
from scriptmode._core.spec.host_values import ChannelProgress, HostActivity
from scriptmode._core.spec.job_failure import Failure
from scriptmode._core.spec.service_values import JobEvent, Metric
from scriptmode.errors import JobNotFoundError, PlatformError, RequestError, TransientError

_T = TypeVar("_T")
_AMAZONS = (".amazonaws.com", ".amazonaws.com.cn", ".aws")


class ServerDetails:
    """The details of jobs of the service that a connection leads to."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_unknown = False

    @cached_property
    def _url(self) -> str:
        url = str(getattr(getattr(self._connection.client("sagemaker"), "meta", None), "endpoint_url", ""))
        return "" if (urlsplit(url).hostname or _AMAZONS[0]).endswith(_AMAZONS) else url

    @property
    def are_known(self) -> bool:
        """Whether the service may know them: it is not Amazon SageMaker, and has not refused to tell."""
        return bool(self._url) and not self._is_unknown

    def read(self, name: str, detail: str) -> Any:
        """Return a detail of a training job; None where the service does not know it. Raises `JobNotFoundError`."""
        asked = {"TrainingJobName": name, "Details": [detail]}
        answer = self._ask(f"training job {name}", lambda client: client.describe_training_job_details(**asked))
        return answer and answer.get(detail)

    def summaries(self, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the summaries that ListTrainingJobs returns, with more fields."""

        def read(client: Any) -> list[dict[str, Any]]:
            return [*client.get_paginator("list_training_jobs").paginate(**asked).search("TrainingJobSummaries")]

        return self._ask("the list of training jobs", read) or []

    def _ask(self, subject: str, ask: Callable[[Any], _T]) -> _T | None:
        """Return an answer of the service; None where it does not know the operation, and is asked no more."""
        if not self.are_known:
            return None
        try:
            return self._connection.call(subject, lambda: ask(self._client))
        except JobNotFoundError:
            raise
        except PlatformError as error:
            # A server that does not answer once, or refuses a filter, may answer another request.
            self._is_unknown = not isinstance(error, (TransientError, RequestError))
            return None

    def failure(self, name: str) -> Failure | None:
        """Return the recorded failure of a job."""
        fields_of_failure = self.read(name, "Failure")
        return _from_fields(Failure, fields_of_failure) if fields_of_failure else None

    def channels(self, name: str) -> tuple[ChannelProgress, ...]:
        """Return the progress of the data of a job's channels."""
        return tuple(_from_fields(ChannelProgress, channel) for channel in self.read(name, "Channels") or ())

    def activity(self, name: str) -> dict[str, HostActivity]:
        """Return what each host of a job does now."""
        hosts = self.read(name, "Activity") or {}
        return {host: _from_fields(HostActivity, values) for host, values in hosts.items()}

    def events(self, name: str) -> tuple[JobEvent, ...]:
        """Return what a job lost and did again."""
        return tuple(_from_fields(JobEvent, event) for event in self.read(name, "Events") or ())

    def queue_position(self, name: str) -> int:
        """Return the position of a job in the queue; 0 for one that does not wait or does not exist."""
        with suppress(PlatformError):
            return int(self.read(name, "QueuePosition") or 0)
        return 0

    def metrics(self, name: str) -> list[Metric]:
        """Return every value of a job's metrics with the time of its line."""
        return [
            Metric(told["name"], value, datetime.fromtimestamp(time, timezone.utc), *position)
            for told in self.read(name, "Metrics") or ()
            for time, value, *position in zip(*(told[column] for column in ("time", "value", "host", "step", "epoch")))
        ]

    @cached_property
    def _client(self) -> Any:
        add_models(self._connection.boto_session, f"{aws.__path__[0]}/models")
        # The values of a large log take their time.
        return self._connection.brief_client("scriptmode", read_timeout=30, endpoint_url=self._url)


def _from_fields(kind: type[_T], values: Mapping[str, Any]) -> _T:
    """Return a dataclass with the fields that a service sent; one of another release may have others."""
    return kind(**{field.name: values[field.name] for field in fields(kind) if field.name in values})  # type: ignore[arg-type]
