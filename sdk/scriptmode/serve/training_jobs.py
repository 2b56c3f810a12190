"""Amazon SageMaker's operations on training jobs, which the local platform runs."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.core.spec.hosts import CLIENT_REGION
from scriptmode.core.spec.service_values import ENDED, UNREADABLE
from scriptmode.data import regular_files
from scriptmode.data.durable import replace_file
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
from scriptmode.serve import paging, request_errors, request_mapping
from scriptmode.serve.allowed_paths import check_local_paths
from scriptmode.serve.aws_json import ApiError, not_found_error, validation_error
from scriptmode.serve.request_errors import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from scriptmode.core.spec.job_description import JobDescription
    from scriptmode.platforms.local import LocalPlatform
    from scriptmode.platforms.local.tuning.tuning_service import LocalTuning
    from scriptmode.serve.request_mapping import HostTable

    Operation = Callable[[Mapping[str, Any]], Mapping[str, Any]]
    Room = Callable[[int], AbstractContextManager[object]]

_NAME = "TrainingJobName"
#: What UpdateTrainingJob changed in the description of a job: a file of the job, for hosts of this machine have neither
#: a profiler nor remote debugging.
_UPDATES = "update.json"
_UPDATED_PARTS, _RULES = ("ProfilerConfig", "RemoteDebugConfig"), "ProfilerRuleConfigurations"
_UPDATING = threading.Lock()
#: What the platform's errors about S3 and directories begin with, and what a request calls it.
_MEMBERS = {
    "source_dir": "HyperParameters.sagemaker_submit_directory",
    "output_path": "OutputDataConfig.S3OutputPath",
    "checkpoint_s3_uri": "CheckpointConfig.S3Uri",
}
#: Of a tuning job after the definition that has it.
_ARGUMENT = re.compile(rf"(TrainingJobDefinition\S*: )?({'|'.join(_MEMBERS)})(?=[: ])")
_NOT_NEW_ELSEWHERE = (
    "The Regions of scriptmode serve share the names of training jobs, and a training job in {region} has this name "
    "({arn}). Choose another name."
)


class JobLimit:
    """The most training jobs in progress at once, 0 if unlimited. A tuning job has as many as it may run at once."""

    def __init__(self, platform: LocalPlatform, tuning: LocalTuning, most: int) -> None:
        self._platform = platform
        self._tuning = tuning
        self._most = most
        self._lock = threading.Lock()

    @contextmanager
    def room_for(self, count: int) -> Iterator[None]:
        """Raise `ApiError` if there is no room for ``count`` jobs; two calls do not find the same room for a job."""
        if not self._most:
            yield
            return
        with self._lock:
            jobs = [job for job in self._platform.list() if job["TrainingJobStatus"] not in (*ENDED, UNREADABLE)]
            # Afterwards, for the agent of a tuning job records the name of a training job before it creates it.
            reserved, names = self._tuning.reserved_jobs()
            running = reserved + sum(job[_NAME] not in names for job in jobs)
            if running + count > self._most:
                raise ApiError(
                    "ResourceLimitExceeded",
                    f"The server runs at most {self._most} training jobs at once. {running} are in progress, with as "
                    f"many of each tuning job as its MaxParallelTrainingJobs, and the request is for {count}. "
                    "Wait for one to end, or start the server with a larger --max-jobs.",
                )
            yield


class TrainingJobs:
    """The operations on training jobs, by their names in Amazon SageMaker's API.

    Args:
        platform: The platform that runs the jobs.
        table: The hosts and images that stand for SageMaker's.
        slurm: Creates the platform of jobs on a Slurm cluster, which has the same jobs.
        final_metrics: Returns FinalMetricDataList of a job that has ended.
        allowed: Directories of this machine that a request may name.
        room: Raises `ApiError` if there is no room for a number of jobs, and keeps it while one is created.
    """

    def __init__(
        self,
        platform: LocalPlatform,
        table: HostTable,
        slurm: Callable[[], LocalPlatform],
        *,
        final_metrics: Callable[[str], list[dict[str, Any]]] = lambda _: [],
        allowed: Sequence[str] = (),
        room: Room = nullcontext,
    ) -> None:
        self._platform = platform
        self._table = table
        self._slurm = slurm
        self._final_metrics = final_metrics
        self._allowed = allowed
        self._room = room
        self.operations: dict[str, Operation] = {
            "CreateTrainingJob": self._create,
            "DescribeTrainingJob": self._describe,
            "ListTrainingJobs": self._list,
            "StopTrainingJob": self._stop,
            "UpdateTrainingJob": self._update,
            "DeleteTrainingJob": self._delete,
        }

    def _create(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("CreateTrainingJobRequest", request, partial(request_mapping.is_extension, self._table))
        check_local_paths(request, self._allowed)
        request_errors.check_training_job(request)
        mapped = request_mapping.to_local(request, self._table)
        with translated_errors():
            platform = self._slurm() if mapped.is_scheduled else self._platform
            platform.validate(mapped.request)
            with self._room(1):
                try:
                    return {"TrainingJobArn": platform.create(mapped.request, failure=mapped.failure)}
                except JobExistsError as error:
                    arn = platform.arn_of(mapped.request[_NAME])
                    if is_in_region(arn):
                        raise request_errors.name_used_error(arn) from error
                    text = _NOT_NEW_ELSEWHERE.format(arn=arn, region=_region(arn))
                    raise ApiError("ResourceInUse", text) from error

    def _describe(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("DescribeTrainingJobRequest", arguments)
        with translated_errors():
            description = self._find(arguments["TrainingJobName"])
            found = request_mapping.to_described(description.response, self._platform.tags(description))
            found.update(_read_updates(self._platform.server_folder(found[_NAME])))
            if found["SecondaryStatus"] == "Pending" and (position := self._platform.queue_position(found[_NAME])):
                *others, last = found["SecondaryStatusTransitions"]
                waits = {**last, "StatusMessage": f"{last['StatusMessage']} (position {position})"}
                found["SecondaryStatusTransitions"] = [*others, waits]
        # The service describes a key that the request left out; the SageMaker SDK reads it.
        found["OutputDataConfig"] = {"KmsKeyId": "", **found.get("OutputDataConfig", {})}
        is_measured = "MetricDefinitions" in found["AlgorithmSpecification"]
        if found["TrainingJobStatus"] in ENDED and is_measured and (metrics := self._final_metrics(found[_NAME])):
            found["FinalMetricDataList"] = metrics
        return found

    def _list(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        with translated_errors():
            jobs = [
                job for job in self._platform.list() if job["TrainingJobArn"] and is_in_region(job["TrainingJobArn"])
            ]
        return paging.list_training_jobs(jobs, arguments)

    def _stop(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("StopTrainingJobRequest", arguments)
        name = arguments["TrainingJobName"]
        with translated_errors():
            status = self._status(name)
            if status in ENDED:
                raise request_errors.status_error(status)
            self._platform.stop(name)
        return {}

    def _find(self, name: str) -> JobDescription:
        """Return the description of a job; raise `JobNotFoundError` also for one outside of the client's Region."""
        description = self._platform.describe(name)
        if not is_in_region(description.arn):
            raise JobNotFoundError(f"there is no training job {name!r} in this Region")
        return description

    def _status(self, name: str) -> str:
        """Return the status of a job; `UNREADABLE` for one that ended and whose files are damaged."""
        try:
            return str(self._find(name).status)
        except UnreadableJobError as error:
            return "InProgress" if error.is_running else UNREADABLE

    def _update(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("UpdateTrainingJobRequest", arguments)
        name = arguments[_NAME]
        with translated_errors(_resource_not_found):
            description = self._find(name)
            if "ResourceConfig" in arguments:
                raise validation_error("KeepAlivePeriodInSeconds cannot be updated: the training job has no warm pool.")
            status = description.status
            if status != "InProgress":
                raise request_errors.status_error(status)
            _add_update(self._platform.server_folder(name), arguments, description.response)
        return {"TrainingJobArn": description.arn}

    def _delete(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        validate("DeleteTrainingJobRequest", arguments)
        name = arguments["TrainingJobName"]
        with translated_errors(_resource_not_found):
            status = self._status(name)
            if status not in (*ENDED, UNREADABLE):
                raise ApiError("ResourceInUse", f"The training job is in status {status}. Stop it first.")
            self._platform.delete(name)
        return {}


def _region(arn: str) -> str:
    return arn.split(":")[3]


def is_in_region(arn: str) -> bool:
    """Return whether a job is in the Region for which the request is signed, if it is signed for one."""
    return CLIENT_REGION.get() in ("", _region(arn))


def _read_updates(folder: Path) -> dict[str, Any]:
    """Return the fields of a description that were updated, from a job's directory for a server's files."""
    try:
        return dict(regular_files.read_json(folder / _UPDATES))
    except FileNotFoundError:
        return {}


def _add_update(folder: Path, arguments: Mapping[str, Any], description: Mapping[str, Any]) -> None:
    """Record an update of a described job: fields of its configurations, and its rules as a whole."""
    with _UPDATING:
        changed = _read_updates(folder)
        before = {**description, **changed}
        parts = [name for name in _UPDATED_PARTS if name in arguments]
        changed.update({name: {**before.get(name, {}), **arguments[name]} for name in parts})
        if _RULES in arguments:
            changed[_RULES] = arguments[_RULES]
        folder.mkdir(mode=0o700, exist_ok=True)
        replace_file(folder / _UPDATES, regular_files.render_json(changed))


def _resource_not_found() -> ApiError:
    return ApiError("ResourceNotFound", "Requested resource not found.")


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
    if found := _ARGUMENT.match(text):
        definition, argument = found.groups(default="")
        member = _MEMBERS[argument]
        text = definition + (member.replace("Hyper", "StaticHyper") if definition else member) + text[found.end() :]
    return text.replace("the local platform", "scriptmode serve")
