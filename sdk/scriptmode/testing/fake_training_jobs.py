"""The fake's Amazon SageMaker: training jobs and their tags."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from scriptmode.core.request import service_model
from scriptmode.testing import botocore_models
from scriptmode.testing.fake_account import FakeAccount
from scriptmode.testing.fake_client import Operation
from scriptmode.testing.fake_job import FakeJob
from scriptmode.testing.service_calls import ServiceError

#: The most entries in an answer when the call does not say (ListTrainingJobs and ListTags, API reference).
_JOBS_A_PAGE = 10
_TAGS_A_PAGE = 50


class FakeTrainingJobs:
    """The operations on training jobs."""

    def __init__(self, account: FakeAccount) -> None:
        self._account = account
        self.operations: dict[str, Operation] = {
            "create_training_job": self._create,
            "describe_training_job": self._describe,
            "list_tags": self._list_tags,
            "list_training_jobs": self._list,
            "stop_training_job": self._stop,
        }

    def _create(self, request: Mapping[str, Any]) -> dict[str, Any]:
        account = self._account
        if problems := service_model.problems(request, lambda _field, _value: False):
            raise botocore_models.validation_error(list(map(str, problems)))
        name = request["TrainingJobName"]
        if name in account.jobs:
            raise ServiceError(
                "ResourceInUse",
                "Training job names must be unique within an AWS account and region, "
                f"and a training job with this name already exists ({account.jobs[name].arn})",
            )
        arn = account.arn("sagemaker", f"training-job/{name}")
        life = account.lives[0] if account.lives else account.default_life
        job = FakeJob(request, life, account.clock, arn=arn, number=len(account.jobs))
        self._check_quotas(job)
        del account.lives[:1]
        account.jobs[name] = job
        return {"TrainingJobArn": arn}

    def _check_quotas(self, job: FakeJob) -> None:
        now = self._account.clock.now()
        running = [
            other.instances()
            for other in self._account.jobs.values()
            if other.is_spot == job.is_spot and not other.ended(now)
        ]
        usage = "spot training job usage" if job.is_spot else "training job usage"
        for kind, count in job.instances().items():
            used = sum(instances.get(kind, 0) for instances in running)
            quota = self._account.quotas.get(kind, used + count)
            if used + count > quota:
                raise ServiceError(
                    "ResourceLimitExceeded",
                    f"The account-level service limit '{kind} for {usage}' is {quota} Instances, with current "
                    f"utilization of {used} Instances and a request delta of {count} Instances. Please use AWS "
                    "Service Quotas to request an increase for this quota. If AWS Service Quotas is not available, "
                    "contact AWS support to request an increase for this quota.",
                )

    def _describe(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self._job(arguments).description(self._account.clock.now())

    def _stop(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        job = self._job(arguments)
        now = self._account.clock.now()
        if job.ended(now):
            raise ServiceError(
                "ValidationException",
                f"The request was rejected because the training job is in status {job.status(now)}.",
            )
        job.stop(now)
        return {}

    def _list(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        botocore_models.check_limits("sagemaker", "list_training_jobs", arguments)
        now = self._account.clock.now()
        key = {"Name": "TrainingJobName", "Status": "TrainingJobStatus"}.get(
            arguments.get("SortBy", "CreationTime"), "CreationTime"
        )
        jobs = [(job.summary(now), job.number) for job in self._account.jobs.values()]
        jobs.sort(key=lambda job: (job[0][key], job[1]), reverse=arguments.get("SortOrder") == "Descending")
        found = [summary for summary, _ in jobs if _is_asked_for(summary, arguments)]
        page, following = _page(found, arguments, _JOBS_A_PAGE)
        return {"TrainingJobSummaries": page, **following}

    def _list_tags(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        botocore_models.check_limits("sagemaker", "list_tags", arguments)
        for job in self._account.jobs.values():
            if job.arn == arguments["ResourceArn"]:
                page, following = _page(job.request.get("Tags", []), arguments, _TAGS_A_PAGE)
                return {"Tags": [dict(tag) for tag in page], **following}
        raise _not_found()

    def _job(self, arguments: Mapping[str, Any]) -> FakeJob:
        job = self._account.jobs.get(arguments["TrainingJobName"])
        if job is None:
            raise _not_found()
        return job


def _not_found() -> ServiceError:
    return ServiceError("ValidationException", "Requested resource not found.")


def _is_asked_for(summary: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    wanted = [
        arguments.get("NameContains", "") in summary["TrainingJobName"],
        arguments.get("StatusEquals", summary["TrainingJobStatus"]) == summary["TrainingJobStatus"],
    ]
    for field in ("CreationTime", "LastModifiedTime"):
        for suffix, compare in (("After", operator.gt), ("Before", operator.lt)):
            if f"{field}{suffix}" in arguments:
                wanted.append(compare(summary[field], botocore_models.parse_time(arguments[f"{field}{suffix}"])))
    return all(wanted)


def _page(found: list[Any], arguments: Mapping[str, Any], size: int) -> tuple[list[Any], dict[str, str]]:
    """Return a page and, where there are more, the token of the next one."""
    token = arguments.get("NextToken", "0")
    if not token.isdigit():
        raise ServiceError("ValidationException", "The pagination token is invalid.")
    start = int(token)
    end = start + arguments.get("MaxResults", size)
    return found[start:end], {"NextToken": str(end)} if end < len(found) else {}
