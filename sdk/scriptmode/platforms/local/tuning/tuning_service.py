"""`LocalTuning`: the service's calls of tuning jobs, whose training jobs a `LocalPlatform` runs."""

from __future__ import annotations

import math
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.core.machine import drafts
from scriptmode.core.request import service_model, tuning
from scriptmode.core.spec.hosts import LOCAL_ACCOUNT
from scriptmode.core.text.messages import Problem
from scriptmode.errors import DataError, JobNotFoundError, PlatformError, RequestError
from scriptmode.platforms.local import validation
from scriptmode.platforms.local.hosts.local_agent import start_agent
from scriptmode.platforms.local.system.interrupts import deferred_interrupts
from scriptmode.platforms.local.tuning import search, tuning_response, warm_start
from scriptmode.platforms.local.tuning.tuning_store import (
    TuningFolder,
    TuningRecord,
    TuningState,
    TuningStore,
    tuning_job_exists_error,
)
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scriptmode.platforms.local.service import LocalPlatform
_AGENT = "scriptmode.platforms.local.tuning.tuning_agent"
_CONFIG = "HyperParameterTuningJobConfig"
#: Fields of a request that only Amazon SageMaker executes, and the argument of each.
_CLOUD_ONLY = {"Autotune": "autotune"}
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
        found = service_model.problems(request, _is_extension, tuning.REQUEST_SHAPE)
        service_model.raise_problems("the request is not valid", found)
        # Those that come later rely on those before.
        for rules in (_whole_request, _definitions, _limits):
            service_model.raise_problems("the tuning job cannot run", list(rules(request)))
        tuning.require_quota(request)
        found = list(warm_start.problems(request, self._parents(request)))
        service_model.raise_problems("the tuning job cannot start from others", found)
        at_once = request[_CONFIG]["ResourceLimits"]["MaxParallelTrainingJobs"]
        for field, part in _parts(request):
            with _named(field, part[tuning.DEFINITION]):
                sample = tuning.training_request(part, "training-job", tuning.sample_values(part))
                self._platform.validate(sample, jobs=at_once)

    def create(self, request: Mapping[str, Any], tags: Mapping[str, Sequence[Mapping[str, str]]] | None = None) -> str:
        """Validate a request and start its tuning job; return the tuning job's ARN without waiting.

        ``tags`` are those of training jobs that the tuning job does not have, by the names of the definitions.

        Raises:
            RequestError: The request is invalid.
            JobExistsError: A tuning job of that name exists.
            DataError: An input cannot be read, or an output path or the data directory cannot be written.
            CredentialsError: The request names S3 objects, and there are no AWS credentials.
            MissingPackageError: Optuna is not installed.
            PlatformError: The agent cannot be started, or the image is not built.
        """
        self.validate(request)
        name = request["HyperParameterTuningJobName"]
        # The name is not case sensitive (CreateHyperParameterTuningJob, API reference).
        for existing in self._store.names():
            if existing.lower() == name.lower():
                raise tuning_job_exists_error(existing)
        for field, part in _parts(request):
            with _named(field, part[tuning.DEFINITION]):
                # Without the names of the training jobs in their checkpoints, where directories would be made.
                self._platform.require_runnable(tuning.estimator_request(part))
        if tags:
            request = tuning.change_definitions(
                request, lambda each: {**each, "Tags": tags.get(each.get("DefinitionName", ""), [])}
            )
        drafts.remove_orphans(self._store.folder)
        arn = f"arn:aws:sagemaker:{self._platform.region}:{LOCAL_ACCOUNT}"
        record = TuningRecord(
            dict(request),
            self._platform.arguments,
            f"{arn}:hyper-parameter-tuning-job/{name}",
            f"{arn}:training-job/",
            [warm_start.as_parent(*each) for each in self._parents(request)],
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

    def _parents(self, request: Mapping[str, Any]) -> list[tuple[TuningRecord, TuningState]]:
        """Return the tuning jobs from which a request starts; raise `RequestError` if there is no such one."""
        try:
            folders = [self._store.find(name) for name in warm_start.parent_names(request)]
        except JobNotFoundError as error:
            raise RequestError(
                f"WarmStartConfig: {error.message}", error.advice, argument="warm_start_config"
            ) from error
        return [(each.read_record(), each.read_state()) for each in folders]

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
        return [tuning_response.render_training_job(record, each) for each in state.launched]

    def tags(self, name: str) -> dict[str, str]:
        """Return the tags that a tuning job was created with; raise `JobNotFoundError`."""
        request = self._store.find(name).read_record().request
        return {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}

    def definition_tags(self, name: str) -> dict[str, list[dict[str, str]]]:
        """Return the tags of a tuning job's training jobs that it does not have, as `create` takes them."""
        request = self._store.find(name).read_record().request
        definitions = tuning.definitions_of(request)
        return {each.get("DefinitionName", ""): each.get("Tags", []) for each in definitions}

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


def _is_extension(field: str, value: object) -> bool:
    """Return whether a value of a request's field, without indices, is one of this machine that the service refuses."""
    return validation.is_extension(tuning.field_of_training_job(field), value)


def _parts(request: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return a request with one definition for each one that a request has, after the field of the definition."""
    is_list = tuning.DEFINITIONS in request
    return [
        (f"{tuning.DEFINITIONS}[{index}]" if is_list else tuning.DEFINITION, part)
        for index, part in enumerate(tuning.split_requests(request))
    ]


@contextmanager
def _named(field: str, definition: Mapping[str, Any]) -> Iterator[None]:
    """Add the field of a definition to the message of an error of its training jobs, and name its own hosts."""
    resources = definition.get(tuning.RESOURCES, {})
    hosts = f"{tuning.RESOURCES}.InstanceConfigs[0]" if "InstanceConfigs" in resources else tuning.RESOURCES
    try:
        yield
    except PlatformError as error:
        text = error.message.replace("ResourceConfig", hosts) if resources else error.message
        raise type(error)(f"{field}: {text}", error.advice, argument=error.argument) from error


def _whole_request(request: Mapping[str, Any]) -> Iterator[Problem]:
    config = request[_CONFIG]
    criteria, has_list = config.get("TuningJobCompletionCriteria", {}), tuning.DEFINITIONS in request
    given = [(field, argument) for field, argument in _CLOUD_ONLY.items() if field in request]
    if criteria.get("ConvergenceDetected", {}).get("CompleteOnConvergence") == "Enabled":
        given.append(("ConvergenceDetected", "completion_criteria_config"))
    for field, argument in given:
        text = f"{argument} ({field}) is given, but tuning jobs on this machine do not have it"
        yield Problem(text, "leave it out, or run the tuning job on Amazon SageMaker", argument)
    if has_list and tuning.DEFINITION in request:
        yield Problem("TrainingJobDefinition and TrainingJobDefinitions are both given", "keep one")
    elif not has_list and tuning.DEFINITION not in request:
        yield Problem("TrainingJobDefinition is missing", "add it, or TrainingJobDefinitions")
    is_several = len(tuning.definitions_of(request)) > 1
    if config.get("TrainingJobEarlyStoppingType") == "Auto" and (is_several or config["Strategy"] == "Hyperband"):
        # HyperParameterTuningJobConfig, API reference; Tune Multiple Algorithms, developer guide.
        text = f"TrainingJobEarlyStoppingType is 'Auto' with {'several definitions' if is_several else 'Hyperband'}"
        yield Problem(text, "give 'Off'", "early_stopping_type")

    hyperband = config.get("StrategyConfig", {}).get("HyperbandStrategyConfig", {})
    if "StrategyConfig" in config and config["Strategy"] != "Hyperband":
        text = f"{_CONFIG}.StrategyConfig is given with the strategy {config['Strategy']}"
        yield Problem(text, "leave it out, or use Hyperband", "strategy_config")
    least, most = hyperband.get("MinResource", 1), hyperband.get("MaxResource", math.inf)
    if least > most:
        yield Problem(f"HyperbandStrategyConfig.MinResource is {least}, above MaxResource {most}", "exchange them")


def _definitions(request: Mapping[str, Any]) -> Iterator[Problem]:
    names = [part[tuning.DEFINITION].get("DefinitionName", "") for _, part in _parts(request)]
    if tuning.DEFINITIONS in request and ("" in names or len({*names}) < len(names)):
        yield Problem(f"TrainingJobDefinitions have the DefinitionNames {names}", "give each a name of its own")
    objectives = [part[_CONFIG].get("HyperParameterTuningJobObjective", {}).get("Type") for _, part in _parts(request)]
    if len({*objectives}) > 1:
        yield Problem(f"TuningObjective.Type is {objectives}", "maximize or minimize in all definitions")
    for field, part in _parts(request):
        yield from _definition(part, field)


def _definition(request: Mapping[str, Any], field: str) -> Iterator[Problem]:
    """Yield the problems of a request with one definition, which is the ``field`` of the whole one."""
    definition, config = request[tuning.DEFINITION], request[_CONFIG]
    yield from _hosts(definition, field)
    metrics = definition["AlgorithmSpecification"].get("MetricDefinitions", [])
    names = ("HyperParameterTuningJobObjective", "ParameterRanges")
    objective_field, ranges_field = (f"{_CONFIG}.{name}" for name in names)
    if tuning.DEFINITIONS in field:
        objective_field, ranges_field = f"{field}.TuningObjective", f"{field}.HyperParameterRanges"
    if "HyperParameterTuningJobObjective" not in config:
        yield Problem(f"{objective_field} is missing", "add it")
    elif tuning.objective_of(request)["MetricName"] not in [each["Name"] for each in metrics]:
        text = f"the objective {tuning.objective_of(request)['MetricName']!r} is not one of the MetricDefinitions"
        yield Problem(f"{text} of {field}.AlgorithmSpecification", "add it", "metric_definitions")
    ranges = config.get("ParameterRanges", {})
    if not any(ranges.values()):
        yield Problem(f"{ranges_field} has no range", "add one")
    if ranges.get("AutoParameters"):
        # With Autotune the request was refused before.
        yield Problem(f"{ranges_field}.AutoParameters is given without Autotune", "give ranges in their place")
    is_numeric = any(kind != "CategoricalParameterRanges" for kind in ranges if ranges[kind])
    if config["Strategy"] == "Grid" and is_numeric:
        yield Problem("the strategy Grid has ranges of numbers", "give CategoricalParameterRanges alone")
    if config["Strategy"] == "Hyperband" and tuning.max_resource_of(request) is None:
        text = f"{_CONFIG}.StrategyConfig.HyperbandStrategyConfig.MaxResource is missing"
        yield Problem(text, "add it, or the static hyperparameter 'epochs'", "strategy_config")
    yield from _repeated(ranges, definition.get("StaticHyperParameters", {}))
    yield from _ranges(ranges)


def _hosts(definition: Mapping[str, Any], field: str) -> Iterator[Problem]:
    if {"ResourceConfig", tuning.RESOURCES} <= definition.keys():
        yield Problem(f"{field}.ResourceConfig and {field}.{tuning.RESOURCES} are both given", "keep one")
    resources = definition.get(tuning.RESOURCES, {})
    if "InstanceConfigs" in resources:
        # HyperParameterTuningResourceConfig, API reference.
        for name in sorted(resources.keys() & {"InstanceType", "InstanceCount", "VolumeSizeInGB"}):
            yield Problem(f"{field}.{tuning.RESOURCES}.{name} is given beside InstanceConfigs", "leave it out")


def _repeated(ranges: Mapping[str, Any], static: Mapping[str, str]) -> Iterator[Problem]:
    names = Counter([*static, *(each["Name"] for found in ranges.values() for each in found)])
    if repeated := [name for name, count in names.items() if count > 1]:
        yield Problem(
            f"ranges and StaticHyperParameters have {', '.join(map(repr, repeated))} more than once", "keep one"
        )
    for each in ranges.get("CategoricalParameterRanges", ()):
        if len({*each["Values"]}) < len(each["Values"]):
            yield Problem(f"the range of {each['Name']!r} has a value more than once: {each['Values']}", "keep one")


def _ranges(ranges: Mapping[str, Any]) -> Iterator[Problem]:
    for kind, number, what in (("Integer", int, "a whole number"), ("Continuous", float, "a number")):
        for each in ranges.get(f"{kind}ParameterRanges", ()):
            subject = f"the range of {each['Name']!r} is {(each['MinValue'], each['MaxValue'])!r}"
            try:
                low, high = number(each["MinValue"]), number(each["MaxValue"])
                is_finite = math.isfinite(high - low)
            except (ValueError, OverflowError):
                is_finite = False
            if not is_finite:
                yield Problem(subject, f"give {what} for each end")
            elif low > high:
                yield Problem(subject, "exchange its ends")
            # ContinuousParameterRange, API reference.
            elif each.get("ScalingType") == "Logarithmic" and low <= 0:
                yield Problem(f"{subject} with the scale Logarithmic", "give ends above 0")
            elif each.get("ScalingType") == "ReverseLogarithmic" and (kind == "Integer" or low < 0 or high >= 1):
                step = "use Auto, Linear or Logarithmic" if kind == "Integer" else "give ends from 0 to below 1"
                yield Problem(f"{subject} with the scale ReverseLogarithmic", step)


def _limits(request: Mapping[str, Any]) -> Iterator[Problem]:
    config = request[_CONFIG]
    most, combinations = config["ResourceLimits"].get("MaxNumberOfTrainingJobs"), tuning.count_combinations(request)
    is_grid = config["Strategy"] == "Grid"
    if most is None and not is_grid:
        yield Problem("ResourceLimits.MaxNumberOfTrainingJobs is missing", "add it", "max_jobs")
    # The other strategies repeat values.
    elif most is not None and is_grid and most > combinations:
        yield Problem(
            f"MaxNumberOfTrainingJobs is {most}, but the grid has {combinations:.0f} combinations of values",
            "add ranges, or lower it",
            "max_jobs",
        )
