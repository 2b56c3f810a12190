"""`LocalTuning`: the service's calls of tuning jobs, whose training jobs a `LocalPlatform` runs."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.request import service_model, tuning
from scriptmode._core.request.violation_texts import raise_violations
from scriptmode._core.spec.hosts import LOCAL_ACCOUNT
from scriptmode._core.spec.service_values import ENDED
from scriptmode._core.text.messages import Problem
from scriptmode.errors import DataError, PlatformError, SpecError
from scriptmode_local._hosts.local_agent import TUNING_MODULE, start_agent
from scriptmode_local._service import validation
from scriptmode_local._store.job_store import JobFolder
from scriptmode_local._system.interrupts import deferred_interrupts
from scriptmode_local._tuning import search, tuning_response, tuning_store
from scriptmode_runtime._files import directory_tree

if TYPE_CHECKING:
    from scriptmode_local._service.service import LocalPlatform
_CONFIG, _HYPERBAND = "HyperParameterTuningJobConfig", "HyperbandStrategyConfig"
#: Fields of a request that only Amazon SageMaker executes.
_CLOUD_ONLY = (
    "Autotune",
    "WarmStartConfig",
    "TuningJobCompletionCriteria",
    tuning.DEFINITIONS,
    "AutoParameters",
    "InstanceConfigs",
)


class LocalTuning:
    """The tuning jobs of a local platform.

    A tuning job belongs to a detached process, its agent, which outlives the caller. A call that reads a tuning job
    whose agent was killed starts an agent again, which continues it.
    """

    def __init__(self, platform: LocalPlatform) -> None:
        self._platform = platform
        self._store = tuning_store.TuningStore(Path(str(platform.arguments["data_dir"])))

    def validate(self, request: Mapping[str, Any]) -> None:
        """Raise `RequestError` with all reasons why a CreateHyperParameterTuningJob request would be refused.

        Raises `MissingPackageError` without Optuna.
        """
        search.require_optuna()
        violations = service_model.violations(
            request,
            lambda field, value: validation.is_extension(tuning.field_of_training_job(field), value),
            tuning.REQUEST_SHAPE,
        )
        raise_violations("the request is not valid", violations)
        # Those that come later rely on those before.
        service_model.raise_problems("the tuning job cannot run", list(itertools.islice(_problems(request), 1)))
        at_once = request[_CONFIG]["ResourceLimits"]["MaxParallelTrainingJobs"]
        with _named():
            sample = tuning.training_request(request, "training-job", tuning.sample_values(request))
            self._platform.validate(sample, jobs=at_once)

    def create(self, request: Mapping[str, Any], tags: Sequence[Mapping[str, str]] = ()) -> str:
        """Validate a request and start its tuning job; return the tuning job's ARN without waiting.

        ``tags`` are those of training jobs that the tuning job does not have.

        Raises what `LocalPlatform.create` raises, and `MissingPackageError` without Optuna.
        """
        self.validate(request)
        name = request["HyperParameterTuningJobName"]
        # The name is not case sensitive (CreateHyperParameterTuningJob, API reference).
        for existing in self._store.names():
            if existing.lower() == name.lower():
                raise tuning_store.tuning_job_exists_error(existing)
        with _named():
            # Without the names of the training jobs in their checkpoints, where directories would be made.
            self._platform.require_runnable(tuning.estimator_request(request))
        if tags:
            request = {**request, tuning.DEFINITION: {**request[tuning.DEFINITION], "Tags": [*tags]}}
        arn = f"arn:aws:sagemaker:{self._platform.region}:{LOCAL_ACCOUNT}:hyper-parameter-tuning-job/{name}"
        record = tuning_store.TuningRecord(dict(request), self._platform.arguments, arn)
        # A directory without an agent would be continued by the next call that reads it.
        with (
            deferred_interrupts(),
            self._store.create(record, tuning_store.starting_state(time.time())) as (folder, lock),
        ):
            try:
                start_agent(TUNING_MODULE, folder.path, lock, folder.agent_log)
            except PlatformError:
                with suppress(OSError):
                    directory_tree.remove_tree(folder.path)
                raise
        return arn

    def describe(self, name: str) -> dict[str, Any]:
        """Return DescribeHyperParameterTuningJob's response; raise `JobNotFoundError`."""
        folder, state = self._find(name)
        return tuning_response.render_describe_response(folder.read_record(), state)

    def stop(self, name: str) -> None:
        """Request that a tuning job and its training jobs stop; leave one that ended as it is."""
        folder = self._store.find(name)
        if not _has_ended(folder.read_state()):
            folder.request_stop()
            self._find(name)

    def delete(self, name: str) -> None:
        """Delete the record of a tuning job that has ended; its training jobs are kept.

        Raises:
            JobNotFoundError: There is no such tuning job.
            DataError: It has not ended, or its directory cannot be removed.
        """
        folder = self._store.find(name)
        if not _has_ended(folder.read_state()):
            raise DataError(f"tuning job {name!r} cannot be deleted: it has not ended", "stop it first, or wait for it")
        # Its agent, which recorded the end, writes nothing more.
        folder.remove()

    def training_jobs(self, name: str) -> list[dict[str, Any]]:
        """Return the HyperParameterTrainingJobSummary objects of a tuning job, in the order of their creation."""
        return tuning_response.render_training_jobs(self._find(name)[1])

    def tags(self, name: str) -> dict[str, str]:
        """Return the tags that a tuning job was created with; raise `JobNotFoundError`."""
        request = self._store.find(name).read_record().request
        return {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}

    def definition_tags(self, name: str) -> list[dict[str, str]]:
        """Return the tags of a tuning job's training jobs that it does not have, as `create` takes them."""
        tags: list[dict[str, str]] = self._store.find(name).read_record().request[tuning.DEFINITION].get("Tags", [])
        return tags

    def server_folder(self, name: str) -> Path:
        """Return a tuning job's directory for a server's files, or raise `JobNotFoundError`; it need not exist."""
        return self._store.find(name).server_files

    def list(self) -> list[dict[str, Any]]:
        """Return HyperParameterTuningJobSummary objects, newest first; those that cannot be read are left out."""
        summaries = []
        for name in self._store.names():
            with suppress(PlatformError):
                folder = self._store.find(name)
                summaries.append(tuning_response.render_summary(folder.read_record(), folder.read_state()))
        return sorted(summaries, key=lambda summary: summary["CreationTime"], reverse=True)

    def _find(self, name: str) -> tuple[tuning_store.TuningFolder, dict[str, Any]]:
        """Return a tuning job and its state; its agent is started again if it was killed."""
        folder = self._store.find(name)
        if not _has_ended(folder.read_state()):
            # The lock and the log are where a training job has them.
            with JobFolder(folder.path).try_lock() as (is_locked, lock):
                if is_locked is None:
                    what = f"tuning job {name!r} has no agent, and this user cannot start one"
                    raise DataError(what, "it goes on when its own user or server reads it")
                if is_locked and not _has_ended(folder.read_state()):
                    search.require_optuna()
                    start_agent(TUNING_MODULE, folder.path, lock, folder.agent_log)
        return folder, folder.read_state()


def _has_ended(state: Mapping[str, Any]) -> bool:
    return state["HyperParameterTuningJobStatus"] in ENDED


@contextmanager
def _named() -> Iterator[None]:
    """Add the field of the definition to the message of an error of its training jobs."""
    try:
        yield
    except PlatformError as error:
        raise type(error)(f"{tuning.DEFINITION}: {error.message}", error.advice, argument=error.argument) from error


def _problems(request: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what a tuning job of this machine cannot have; raise `QuotaError` for too many training jobs."""
    config, definition = request[_CONFIG], request.get(tuning.DEFINITION, {})
    ranges, limits, strategy = config.get("ParameterRanges", {}), config["ResourceLimits"], config["Strategy"]
    parts = (request, config, ranges, definition.get(tuning.RESOURCES, {}))
    if given := [name for part in parts for name in _CLOUD_ONLY if name in part]:
        text = f"{', '.join(given)} is given, but tuning jobs on this machine do not have it"
        yield Problem(text, "leave it out, or run the tuning job on Amazon SageMaker")
    needed = {
        tuning.DEFINITION: definition,
        f"{_CONFIG}.HyperParameterTuningJobObjective": config.get("HyperParameterTuningJobObjective"),
        f"{_CONFIG}.ParameterRanges": any(ranges.values()),
        f"{_CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs": "MaxNumberOfTrainingJobs" in limits or strategy == "Grid",
        f"{_CONFIG}.StrategyConfig.{_HYPERBAND}.MaxResource": (
            strategy != "Hyperband" or config.get("StrategyConfig", {}).get(_HYPERBAND, {}).get("MaxResource")
        ),
    }
    yield from (Problem(f"{field} is missing", "add it") for field, value in needed.items() if not value)
    tuning.require_quota(request)
    try:
        spec = tuning.parse_spec(request, script_mode=False)
    except (ValueError, SpecError) as error:
        yield Problem(f"{_CONFIG} cannot be searched: {error}")
        return
    metrics = definition["AlgorithmSpecification"].get("MetricDefinitions", [])
    if spec.objective not in [metric["Name"] for metric in metrics]:
        text = f"the objective {spec.objective!r} is not one of the MetricDefinitions of {tuning.DEFINITION}"
        yield Problem(f"{text}.AlgorithmSpecification", "add it", "metric_definitions")
    names = [
        *definition.get("StaticHyperParameters", {}),
        *(item["Name"] for group in ranges.values() for item in group),
    ]
    values = [
        f"{item['Name']}={value}" for item in ranges.get("CategoricalParameterRanges", ()) for value in item["Values"]
    ]
    hosts = ["hosts" for field in ("ResourceConfig", tuning.RESOURCES) if field in definition]
    repeated = [name for group in (names, values, hosts) for name, count in Counter(group).items() if count > 1]
    yield from (Problem(f"the request has {name!r} more than once", "keep one") for name in repeated)
