"""Amazon SageMaker's operations on hyperparameter tuning jobs, whose training jobs the local platform runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scriptmode.core.spec.service_values import ENDED
from scriptmode.errors import JobNotFoundError
from scriptmode.platforms.local.tuning.tuning_service import LocalTuning
from scriptmode.serve import paging, request_mapping
from scriptmode.serve.allowed_paths import check_file_uris
from scriptmode.serve.aws_json import ApiError, validation_error
from scriptmode.serve.training_jobs import translated_errors, validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from scriptmode.platforms.local import LocalPlatform
    from scriptmode.serve.request_mapping import HostTable
    from scriptmode.serve.training_jobs import Operation

_KIND = "HyperParameterTuningJob"
_NAME = f"{_KIND}Name"
_SORT_FIELDS = {"Name": _NAME, "Status": f"{_KIND}Status", "CreationTime": "CreationTime"}
_TRAINING_SORT_FIELDS = {"Name": "TrainingJobName", "Status": "TrainingJobStatus", "CreationTime": "CreationTime"}
_OBJECTIVE = "FinalHyperParameterTuningJobObjectiveMetric"


class TuningJobs:
    """The operations on tuning jobs, by their names in Amazon SageMaker's API.

    Args:
        tuning: The tuning jobs of the platform.
        table: The hosts and images that stand for SageMaker's.
        slurm: Creates the platform of jobs on a Slurm cluster, which has the same jobs.
        allowed: Directories of this machine that a request may name.
    """

    def __init__(
        self,
        tuning: LocalTuning,
        table: HostTable,
        slurm: Callable[[], LocalPlatform],
        *,
        allowed: Sequence[str] = (),
    ) -> None:
        self._tuning = tuning
        self._table = table
        self._slurm = slurm
        self._allowed = allowed
        self.operations: dict[str, Operation] = {
            "CreateHyperParameterTuningJob": self._create,
            "DescribeHyperParameterTuningJob": self._describe,
            "ListHyperParameterTuningJobs": self._list,
            "StopHyperParameterTuningJob": self._stop,
            "DeleteHyperParameterTuningJob": self._delete,
            "ListTrainingJobsForHyperParameterTuningJob": self._list_training_jobs,
        }

    def _create(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        check_file_uris(request, self._allowed)
        mapped = request_mapping.tuning_to_local(request, self._table)
        if mapped.failure:
            raise validation_error(mapped.failure)
        with translated_errors():
            tuning = LocalTuning(self._slurm()) if mapped.is_scheduled else self._tuning
            return {"HyperParameterTuningJobArn": tuning.create(mapped.request)}

    def _describe(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("DescribeHyperParameterTuningJobRequest", arguments)
        name = arguments[_NAME]
        with _translated_errors():
            return request_mapping.tuning_to_described(self._tuning.describe(name), self._tuning.tags(name))

    def _list(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("ListHyperParameterTuningJobsRequest", arguments)
        with translated_errors():
            rows = paging.select(self._tuning.list(), arguments, _KIND)
        shown, more = paging.page(rows, arguments, key=_SORT_FIELDS[arguments.get("SortBy", "Name")], name=_NAME)
        return {"HyperParameterTuningJobSummaries": shown, **more}

    def _stop(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("StopHyperParameterTuningJobRequest", arguments)
        name = arguments[_NAME]
        with _translated_errors():
            status = self._tuning.describe(name)[f"{_KIND}Status"]
            if status in ENDED:
                raise validation_error(f"The request was rejected because the tuning job is in status {status}.")
            self._tuning.stop(name)
        return {}

    def _delete(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("DeleteHyperParameterTuningJobRequest", arguments)
        name = arguments[_NAME]
        with _translated_errors():
            status = self._tuning.describe(name)[f"{_KIND}Status"]
            if status not in ENDED:
                raise validation_error(f"The request was rejected because the tuning job is in status {status}.")
            self._tuning.delete(name)
        return {}

    def _list_training_jobs(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("ListTrainingJobsForHyperParameterTuningJobRequest", arguments)
        with _translated_errors():
            rows = self._tuning.training_jobs(arguments[_NAME])
        if "StatusEquals" in arguments:
            rows = [row for row in rows if row["TrainingJobStatus"] == arguments["StatusEquals"]]
        order = arguments.get("SortBy", "Name")
        key = _TRAINING_SORT_FIELDS.get(order, order)
        if key == order == "FinalObjectiveMetricValue":
            # Training jobs without a value are not listed. (SortBy, API reference)
            rows = [{**row, key: row[_OBJECTIVE]["Value"]} for row in rows if _OBJECTIVE in row]
        shown, more = paging.page(rows, arguments, key=key, name="TrainingJobName")
        return {
            "TrainingJobSummaries": [
                {field: value for field, value in row.items() if field != "FinalObjectiveMetricValue"} for row in shown
            ],
            **more,
        }


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Translate errors as those of training jobs are, but for the code of a tuning job that does not exist."""
    try:
        with translated_errors():
            yield
    except ApiError as error:
        if isinstance(error.__cause__, JobNotFoundError):
            raise ApiError("ResourceNotFound", "Amazon SageMaker can't find a tuning job of that name.") from error
        raise
