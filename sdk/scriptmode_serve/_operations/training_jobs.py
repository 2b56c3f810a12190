"""Amazon SageMaker's operations on training jobs, which the local platform runs."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from scriptmode._core.platforms.registry import local_platform
from scriptmode._core.spec.service_values import ENDED, UNREADABLE
from scriptmode.errors import (
    ContainerError,
    CredentialsError,
    DataError,
    JobExistsError,
    JobNotFoundError,
    MissingPackageError,
    QuotaError,
    RequestError,
    SpecError,
    UnreadableJobError,
)
from scriptmode_local import LocalPlatform
from scriptmode_local._store.state import STATUS_OF, JobSummary
from scriptmode_local._store.summary_response import render_summary
from scriptmode_serve._operations import paging, request_errors, request_mapping
from scriptmode_serve._operations.allowed_paths import check_paths
from scriptmode_serve._operations.aws_json import ApiError, Operation, not_found_error, validation_error
from scriptmode_serve._operations.quotas import require_quotas
from scriptmode_serve._operations.request_errors import validate
from scriptmode_serve._operations.request_mapping import HostTable

_NAME = "TrainingJobName"
_ROW = (_NAME, "TrainingJobStatus", "CreationTime", "LastModifiedTime", "job")
#: Fields of the platform's summaries that the service lacks.
_OWN_FIELDS = ("InstanceCount", "Distribution", "LastMetric", "QueuePosition", "QueueEndTime", "StatusMessage")
_resource_not_found = partial(ApiError, "ResourceNotFound", "Requested resource not found.")
#: What the platform's errors about S3 and directories begin with, and what a request calls it.
_MEMBERS = {
    "source_dir": "HyperParameters.sagemaker_submit_directory",
    "output_path": "OutputDataConfig.S3OutputPath",
    "checkpoint_s3_uri": "CheckpointConfig.S3Uri",
}
#: Of a tuning job after the definition that has it.
_ARGUMENT = re.compile(rf"(TrainingJobDefinition\S*: )?({'|'.join(_MEMBERS)})(?=[: ])")


class TrainingJobs:
    """The operations on training jobs, by their names in Amazon SageMaker's API.

    Args:
        platform: The platform that runs the jobs.
        table: The hosts and images that stand for SageMaker's.
        final_metrics: Returns FinalMetricDataList of a job that has ended.
        check: Raises `ApiError` for a path that a request may not name.
        quotas: Most instances that jobs use at once by instance type.
    """

    def __init__(
        self,
        platform: LocalPlatform,
        table: HostTable,
        *,
        final_metrics: Callable[[str], list[dict[str, object]]] = lambda _: [],
        check: Callable[..., None] = check_paths,
        quotas: Mapping[str, int] | None = None,
    ) -> None:
        self._platform = platform
        self._table = table
        self._final_metrics = final_metrics
        self._check = check
        self._quotas = quotas
        #: Creates wait for one another where there are quotas.
        self._quota_lock: AbstractContextManager[object] = threading.Lock() if quotas else nullcontext()
        self.operations: dict[str, Operation] = {
            "CreateTrainingJob": self._create,
            "DescribeTrainingJob": self._describe,
            "ListTrainingJobs": self._list,
            "StopTrainingJob": self._stop,
            "DeleteTrainingJob": self._delete,
        }

    def _create(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("CreateTrainingJobRequest", request, partial(request_mapping.is_extension, self._table))
        self._check(request)
        request_errors.check_training_job(request)
        mapped = request_mapping.to_local(request, self._table)
        with translated_errors():
            platform = local_platform(mapped.kind) if mapped.kind.has_own_platform else self._platform
            try:
                with self._quota_lock:
                    if self._quotas:
                        require_quotas(request, self.describe_all(ENDED), self._quotas)
                    return {"TrainingJobArn": platform.create(mapped.request, failure=mapped.failure)}
            except JobExistsError as error:
                raise request_errors.name_used_error(platform.record(mapped.request[_NAME]).arn) from error

    def describe_all(self, without: Collection[str] = ()) -> Iterator[Mapping[str, Any]]:
        """Yield descriptions without metrics of jobs, but for those of some statuses, deleted meanwhile, or damaged."""
        with translated_errors():
            jobs = self._platform.list()
        for job in jobs:
            with translated_errors(), suppress(JobNotFoundError, UnreadableJobError):
                if job["TrainingJobStatus"] not in without:
                    yield self._read(job[_NAME])

    def _describe(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("DescribeTrainingJobRequest", arguments)
        with translated_errors():
            answer = self._read(arguments[_NAME])
            # It looks at all jobs that wait.
            if answer["SecondaryStatus"] == "Pending" and (position := self._platform.queue_position(answer[_NAME])):
                *others, last = answer["SecondaryStatusTransitions"]
                waits = {**last, "StatusMessage": f"{last['StatusMessage']} (position {position})"}
                answer["SecondaryStatusTransitions"] = [*others, waits]
        metrics = self.metrics(answer)
        return {**answer, "FinalMetricDataList": metrics} if metrics else answer

    def metrics(self, job: Mapping[str, Any]) -> list[dict[str, object]]:
        """Return the last values of the metrics of a described job; none while it runs."""
        is_measured = "MetricDefinitions" in job["AlgorithmSpecification"] and job["TrainingJobStatus"] in ENDED
        return self._final_metrics(job[_NAME]) if is_measured else []

    def _read(self, name: str) -> dict[str, Any]:
        """Return the description of a job without its metrics; raises errors of the platform."""
        description = self._platform.describe(name)
        answer = request_mapping.to_described(description.response, self._platform.tags(description))
        # The service describes what the request left out; the SageMaker SDK reads the key.
        answer["OutputDataConfig"] = {"KmsKeyId": "", "CompressionType": "GZIP", **answer.get("OutputDataConfig", {})}
        answer["ProfilingStatus"] = "Disabled"
        algorithm = answer["AlgorithmSpecification"]
        # The default (EnableSageMakerMetricsTimeSeries, API reference)
        has_series = "MetricDefinitions" in algorithm or "/tensorflow-training:" in algorithm.get("TrainingImage", "")
        answer["AlgorithmSpecification"] = {"EnableSageMakerMetricsTimeSeries": has_series, **algorithm}
        return answer

    def _list(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = list_jobs(self._platform, arguments)
        jobs = answer["TrainingJobSummaries"]
        told = [{field: value for field, value in job.items() if field not in _OWN_FIELDS} for job in jobs]
        return {**answer, "TrainingJobSummaries": told}

    def _stop(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("StopTrainingJobRequest", arguments)
        name = arguments["TrainingJobName"]
        with translated_errors():
            status = self._status(name)
            if status in ENDED:
                raise request_errors.status_error(status)
            self._platform.stop(name)
        return {}

    def _status(self, name: str) -> str:
        """Return the status of a job; `UNREADABLE` for one that ended and whose files are damaged."""
        try:
            return str(self._platform.describe(name).status)
        except UnreadableJobError as error:
            return "InProgress" if error.is_running else UNREADABLE

    def _delete(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("DeleteTrainingJobRequest", arguments)
        name = arguments["TrainingJobName"]
        with translated_errors(_resource_not_found):
            status = self._status(name)
            if status not in (*ENDED, UNREADABLE):
                raise ApiError("ResourceInUse", f"The training job is in status {status}. Stop it first.")
            self._platform.delete(name)
        return {}


def list_jobs(platform: LocalPlatform, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer of ListTrainingJobs, with the fields that the service lacks; raise `ApiError`."""
    with translated_errors():
        return platform.select(partial(_page, arguments=arguments))


def _page(jobs: Iterable[JobSummary], arguments: Mapping[str, Any]) -> dict[str, object]:
    facts = ((job.name, STATUS_OF.get(job.secondary), job.created, job.modified, job) for job in jobs if job.arn)
    rows = [dict(zip(_ROW, values)) for values in facts]
    return paging.list_training_jobs(rows, arguments, lambda row: render_summary(row["job"]))


@contextmanager
def translated_errors(not_found: Callable[[], ApiError] = not_found_error) -> Iterator[None]:
    """Translate the errors of a platform into those of the service; ``not_found`` has that of a missing job."""
    try:
        yield
    except JobExistsError as error:
        raise ApiError("ResourceInUse", f"Names must be unique within an AWS account and Region: {error}") from error
    except JobNotFoundError as error:
        raise not_found() from error
    except QuotaError as error:
        raise ApiError("ResourceLimitExceeded", str(error)) from error
    except UnreadableJobError as error:
        advice = "StopTrainingJob stops it" if error.is_running else "DeleteTrainingJob removes it"
        file = Path(error.path).name
        raise validation_error(f"Training job {error.job_name} cannot be read: {file} is damaged; {advice}.") from error
    except (RequestError, SpecError, DataError, ContainerError, CredentialsError, MissingPackageError) as error:
        raise validation_error(_with_members(str(error))) from error


def _with_members(text: str) -> str:
    """Return the text of an error of the platform with the members of the request, and this server's name."""
    if match := _ARGUMENT.match(text):
        definition, argument = match.groups(default="")
        member = _MEMBERS[argument]
        text = definition + (member.replace("Hyper", "StaticHyper") if definition else member) + text[match.end() :]
    return text.replace("the local platform", "scriptmode serve")
