"""Amazon SageMaker's operations on hyperparameter tuning jobs, whose training jobs the local platform runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from scriptmode._core.platforms.registry import local_platform
from scriptmode._core.request.tuning import DEFINITION, FINAL_OBJECTIVE, REQUEST_SHAPE, field_of_training_job
from scriptmode._core.spec.service_values import ENDED
from scriptmode_local._tuning.tuning_service import LocalTuning
from scriptmode_serve._operations import paging, request_mapping
from scriptmode_serve._operations.allowed_paths import check_paths
from scriptmode_serve._operations.aws_json import ApiError, Operation, validation_error
from scriptmode_serve._operations.paging import SORT_FIELDS
from scriptmode_serve._operations.request_errors import check_training_job, status_error, validate
from scriptmode_serve._operations.request_mapping import HostTable
from scriptmode_serve._operations.training_jobs import translated_errors

_KIND = "HyperParameterTuningJob"
_NAME = f"{_KIND}Name"
_SORT_FIELDS = {"Name": _NAME, "Status": f"{_KIND}Status", "CreationTime": "CreationTime"}
_FINAL_VALUE = "FinalObjectiveMetricValue"
_not_found = partial(ApiError, "ResourceNotFound", "Amazon SageMaker can't find a tuning job of that name.")


class TuningJobs:
    """The operations on tuning jobs, by their names in Amazon SageMaker's API. Arguments are as of `TrainingJobs`."""

    def __init__(self, tuning: LocalTuning, table: HostTable, check: Callable[..., None] = check_paths) -> None:
        self._tuning = tuning
        self._table = table
        self._check = check
        self.operations: dict[str, Operation] = {
            "CreateHyperParameterTuningJob": self._create,
            "DescribeHyperParameterTuningJob": self._describe,
            "ListHyperParameterTuningJobs": self._list,
            "StopHyperParameterTuningJob": partial(self._end, "Stop", tuning.stop),
            "DeleteHyperParameterTuningJob": partial(self._end, "Delete", tuning.delete),
            "ListTrainingJobsForHyperParameterTuningJob": self._list_training_jobs,
        }

    def _create(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        is_extension = partial(request_mapping.is_extension, self._table)
        validate(REQUEST_SHAPE, request, lambda field, value: is_extension(field_of_training_job(field), value))
        self._check(request)
        if DEFINITION in request:
            check_training_job(request[DEFINITION], "trainingJobDefinition")
        mapped = request_mapping.tuning_to_local(request, self._table)
        if mapped.failure:
            raise validation_error(mapped.failure)
        with translated_errors():
            tuning = LocalTuning(local_platform(mapped.kind)) if mapped.kind.has_own_platform else self._tuning
            return {"HyperParameterTuningJobArn": tuning.create(mapped.request, mapped.tags)}

    def _describe(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("DescribeHyperParameterTuningJobRequest", arguments)
        name = arguments[_NAME]
        with translated_errors(_not_found):
            return request_mapping.tuning_to_described(self._tuning.describe(name), self._tuning.definition_tags(name))

    def _list(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("ListHyperParameterTuningJobsRequest", arguments)
        with translated_errors():
            rows = paging.select(self._tuning.list(), arguments, _KIND)
        shown, more = paging.page(rows, arguments, key=_SORT_FIELDS[arguments.get("SortBy", "Name")], name=_NAME)
        return {"HyperParameterTuningJobSummaries": shown, **more}

    def _end(self, verb: str, end: Callable[[str], object], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate(f"{verb}{_KIND}Request", arguments)
        with translated_errors(_not_found):
            status = self._tuning.describe(arguments[_NAME])[f"{_KIND}Status"]
            if (status in ENDED) != (verb == "Delete"):
                raise status_error(status, "tuning job")
            end(arguments[_NAME])
        return {}

    def _list_training_jobs(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("ListTrainingJobsForHyperParameterTuningJobRequest", arguments)
        with translated_errors(_not_found):
            rows = paging.select(self._tuning.training_jobs(arguments[_NAME]), arguments, "TrainingJob")
        order = arguments.get("SortBy", "Name")
        if order == _FINAL_VALUE:
            # Training jobs without a value are not listed. (SortBy, API reference)
            rows = [{**row, order: row[FINAL_OBJECTIVE]["Value"]} for row in rows if FINAL_OBJECTIVE in row]
        shown, more = paging.page(rows, arguments, key=SORT_FIELDS.get(order, order), name="TrainingJobName")
        summaries = [{field: value for field, value in row.items() if field != _FINAL_VALUE} for row in shown]
        return {"TrainingJobSummaries": summaries, **more}
