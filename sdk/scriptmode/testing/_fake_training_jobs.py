"""The fake's Amazon SageMaker: training jobs and their tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scriptmode.testing._fake_account import FakeAccount, Operation
from scriptmode.testing._fake_job import FakeJob
from scriptmode_serve._operations.aws_json import not_found_error
from scriptmode_serve._operations.paging import list_tags, list_training_jobs
from scriptmode_serve._operations.quotas import require_quotas
from scriptmode_serve._operations.request_errors import check_training_job, name_used_error, status_error, validate


class FakeTrainingJobs:
    """The operations on training jobs."""

    def __init__(self, account: FakeAccount) -> None:
        self._account = account
        self.operations: dict[str, Operation] = {
            "create_training_job": self._create,
            "describe_training_job": lambda arguments: self._job(arguments).description(account.clock.now()),
            "list_tags": self._list_tags,
            "list_training_jobs": self._list,
            "stop_training_job": self._stop,
            "update_training_job": self._update,
        }

    def _create(self, request: Mapping[str, Any]) -> dict[str, object]:
        account = self._account
        validate("CreateTrainingJobRequest", request)
        check_training_job(request)
        name = request["TrainingJobName"]
        if name in account.jobs:
            raise name_used_error(account.jobs[name].arn)
        arn = account.arn("sagemaker", f"training-job/{name}")
        life = account.lives[0] if account.lives else account.default_life
        job = FakeJob(request, life, account.clock, arn=arn)
        now = account.clock.now()
        in_progress = [other.request for other in account.jobs.values() if not other.ended(now)]
        require_quotas(request, in_progress, account.quotas)
        del account.lives[:1]
        account.jobs[name] = job
        return {"TrainingJobArn": arn}

    def _stop(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        job = self._job(arguments)
        now = self._account.clock.now()
        if job.ended(now):
            raise status_error(job.status(now))
        job.stop(now)
        return {}

    def _update(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        job = self._job(arguments)
        for name, value in arguments.items():
            job.request[name] = {**job.request.get(name, {}), **value} if isinstance(value, Mapping) else value
        return {"TrainingJobArn": job.arn}

    def _list(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        now = self._account.clock.now()
        return list_training_jobs([job.summary(now) for job in self._account.jobs.values()], arguments)

    def _list_tags(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        validate("ListTagsInput", arguments)
        for job in self._account.jobs.values():
            if job.arn == arguments["ResourceArn"]:
                tags = {tag["Key"]: tag["Value"] for tag in job.request.get("Tags", [])}
                return list_tags(tags, arguments)
        raise not_found_error()

    def _job(self, arguments: Mapping[str, Any]) -> FakeJob:
        job = self._account.jobs.get(arguments["TrainingJobName"])
        if job is None:
            raise not_found_error()
        return job
