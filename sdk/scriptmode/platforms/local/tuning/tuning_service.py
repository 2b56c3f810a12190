"""`LocalTuning`: the service's calls of tuning jobs, whose training jobs a `LocalPlatform` runs."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.core.request import service_model, tuning
from scriptmode.core.spec.hosts import LOCAL_ACCOUNT
from scriptmode.errors import DataError, PlatformError, RequestError
from scriptmode.platforms.local.hosts.local_agent import start_agent
from scriptmode.platforms.local.system.interrupts import deferred_interrupts
from scriptmode.platforms.local.tuning import search, tuning_response
from scriptmode.platforms.local.tuning.tuning_store import (
    TuningFolder,
    TuningRecord,
    TuningState,
    TuningStore,
    tuning_job_exists_error,
)
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.local.service import LocalPlatform
_AGENT = "scriptmode.platforms.local.tuning.tuning_agent"
#: Fields of a request and of its configuration that only Amazon SageMaker executes, and the argument of each.
_CLOUD_ONLY = {
    "WarmStartConfig": "warm_start_config",
    "TrainingJobDefinitions": "estimator_dict",
    "Autotune": "autotune",
    "TuningJobCompletionCriteria": "completion_criteria_config",
    "InstanceConfigs": "instance_configs",
}
#: Seconds in which an agent that recorded the end of its tuning job ends.
_ENDING_SECONDS, _POLL_SECONDS = 10.0, 0.05


class LocalTuning:
    """The tuning jobs of a local platform. Implements `scriptmode.core.platforms.base.TuningService`.

    A tuning job belongs to a detached process, its agent, which outlives the caller. A call that reads a tuning job
    whose agent was killed starts an agent again, which continues it.
    """

    def __init__(self, platform: LocalPlatform) -> None:
        self._platform = platform
        self._store = TuningStore(Path(str(platform.arguments["data_dir"])))

    def validate(self, request: Mapping[str, Any]) -> None:
        """Raise `RequestError` with all reasons why a CreateHyperParameterTuningJob request would be refused.

        Raises `MissingPackageError` without Optuna.
        """
        search.require_optuna()
        # The training jobs' fields are validated as a training job's, which may be of this machine.
        found = service_model.problems(
            request, lambda field, _: field.startswith("TrainingJobDefinition."), tuning.REQUEST_SHAPE
        )
        service_model.raise_problems("the request is not valid", found)
        _require_local(request)
        _require_ranges(request)
        self._platform.validate(tuning.training_request(request, "training-job", tuning.sample_values(request)))
        definitions = request["TrainingJobDefinition"]["AlgorithmSpecification"].get("MetricDefinitions", [])
        objective = tuning.objective_of(request)["MetricName"]
        if objective not in [each["Name"] for each in definitions]:
            raise RequestError(
                f"the objective {objective!r} is not one of the MetricDefinitions",
                argument="metric_definitions",
                advice="add it",
            )

    def create(self, request: Mapping[str, Any]) -> str:
        """Validate a request and start its tuning job; return the tuning job's ARN without waiting.

        Raises:
            RequestError: The request is invalid.
            JobExistsError: A tuning job of that name exists.
            MissingPackageError: Optuna is not installed.
            PlatformError: The agent cannot be started, or the data directory cannot be written.
        """
        self.validate(request)
        name = request["HyperParameterTuningJobName"]
        if self._store.exists(name):
            raise tuning_job_exists_error(name)
        arn = f"arn:aws:sagemaker:{self._platform.region}:{LOCAL_ACCOUNT}"
        record = TuningRecord(
            dict(request),
            self._platform.arguments,
            f"{arn}:hyper-parameter-tuning-job/{name}",
            f"{arn}:training-job/",
        )
        now = time.time()
        # A directory without an agent would be continued by the next call that reads it.
        with deferred_interrupts(), self._store.create(record, TuningState(now, now)) as (folder, lock):
            try:
                start_agent(_AGENT, folder.path, lock, folder.agent_log)
            except PlatformError:
                with suppress(OSError):
                    beneath.remove_tree(folder.path)
                raise
        return record.arn

    def describe(self, name: str) -> dict[str, Any]:
        """Return DescribeHyperParameterTuningJob's response; raise `JobNotFoundError`."""
        folder, state = self._find(name)
        return tuning_response.render_describe_response(folder.read_record(), state)

    def stop(self, name: str) -> None:
        """Request that a tuning job and its training jobs stop; leave one that ended as it is."""
        folder, state = self._find(name)
        if not state.has_ended:
            folder.request_stop()
            self._continue(folder)

    def delete(self, name: str) -> None:
        """Delete the record of a tuning job that has ended; its training jobs are kept.

        Raises:
            JobNotFoundError: There is no such tuning job.
            DataError: It has not ended, or its directory cannot be removed.
        """
        folder = self._store.find(name)
        deadline = time.monotonic() + _ENDING_SECONDS
        while not self._delete_ended(folder):
            # An agent that recorded the end ends a moment later.
            if not folder.read_state().has_ended or time.monotonic() > deadline:
                raise DataError(
                    f"tuning job {name!r} cannot be deleted: it has not ended", advice="stop it first, or wait for it"
                )
            time.sleep(_POLL_SECONDS)

    @staticmethod
    def _delete_ended(folder: TuningFolder) -> bool:
        with folder.try_lock() as lock:
            if lock is None or not folder.read_state().has_ended:
                return False
            try:
                folder.remove()
            except OSError as error:
                raise DataError(
                    f"tuning job {folder.name!r} cannot be deleted: {error}", advice=f"remove {folder.path}"
                ) from error
        return True

    def training_jobs(self, name: str) -> list[dict[str, Any]]:
        """Return the HyperParameterTrainingJobSummary objects of a tuning job, in the order of their creation."""
        folder, state = self._find(name)
        record = folder.read_record()
        return [tuning_response.render_training_job(record, each) for each in state.trials]

    def tags(self, name: str) -> dict[str, str]:
        """Return the tags that a tuning job was created with; raise `JobNotFoundError`."""
        request = self._store.find(name).read_record().request
        return {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}

    def server_folder(self, name: str) -> Path:
        """Return a tuning job's directory for a server's files, or raise `JobNotFoundError`; it need not exist."""
        return self._store.find(name).path / "server"

    def list(self) -> list[dict[str, Any]]:
        """Return HyperParameterTuningJobSummary objects, newest first; those that cannot be read are left out."""
        found = []
        for name in self._store.names():
            with suppress(PlatformError):
                folder = self._store.find(name)
                found.append(tuning_response.render_summary(folder.read_record(), folder.read_state()))
        return sorted(found, key=lambda each: each["CreationTime"], reverse=True)

    def _find(self, name: str) -> tuple[TuningFolder, TuningState]:
        """Return a tuning job and its state; its agent is started again if it was killed."""
        folder = self._store.find(name)
        state = folder.read_state()
        if not state.has_ended:
            self._continue(folder)
            state = folder.read_state()
        return folder, state

    @staticmethod
    def _continue(folder: TuningFolder) -> None:
        """Start the agent of a tuning job that has not ended, unless it runs."""
        with folder.try_lock() as lock:
            if lock is not None and not folder.read_state().has_ended:
                search.require_optuna()
                start_agent(_AGENT, folder.path, lock, folder.agent_log)


def _require_ranges(request: Mapping[str, Any]) -> None:
    """Raise `RequestError` for a range whose ends are not numbers, or in the wrong order."""
    ranges = request["HyperParameterTuningJobConfig"].get("ParameterRanges", {})
    for kind, number, what in (("Integer", int, "a whole number"), ("Continuous", float, "a number")):
        for each in ranges.get(f"{kind}ParameterRanges", ()):
            name, ends = each["Name"], (each["MinValue"], each["MaxValue"])
            try:
                low, high = map(number, ends)
            except ValueError as error:
                raise RequestError(f"the range of {name!r} is {ends!r}", f"give {what} for each end") from error
            if low > high:
                raise RequestError(f"the range of {name!r} is {ends!r}", "exchange its ends")


def _require_local(request: Mapping[str, Any]) -> None:
    """Raise `RequestError` for what only Amazon SageMaker executes, or takes in another place too."""
    config = request["HyperParameterTuningJobConfig"]
    resources = request.get("TrainingJobDefinition", {}).get("HyperParameterTuningResourceConfig", {})
    for field, argument in _CLOUD_ONLY.items():
        if field in request or field in config or field in resources:
            raise RequestError(
                f"{argument} ({field}) is given, but tuning jobs on this machine do not have it",
                argument=argument,
                advice="leave it out, or give the estimator an 'ml.*' instance_type",
            )
    if "TrainingJobDefinition" not in request:
        raise RequestError("TrainingJobDefinition is missing", advice="add it")
    if "HyperParameterTuningJobObjective" not in config:
        what = "HyperParameterTuningJobConfig.HyperParameterTuningJobObjective is missing"
        raise RequestError(what, advice="add it")
