"""Render CreateHyperParameterTuningJob requests, and the CreateTrainingJob requests of their training jobs. Pure."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

from scriptmode._core.request import service_model
from scriptmode._core.request.fields import Field, parse_fields, render_fields
from scriptmode._core.request.violation_texts import argument_of
from scriptmode._core.spec import hyperparameters
from scriptmode._core.spec.parameter_ranges import (
    CategoricalParameter,
    ContinuousParameter,
    IntegerParameter,
    ParameterRange,
)
from scriptmode._core.spec.tuning_description import TunedJob, TuningDescription
from scriptmode._core.spec.tuning_job import TuningJobSpec
from scriptmode._core.text.messages import warn_caller
from scriptmode.errors import QuotaError, SpecError, invalid
from scriptmode_runtime import contract

#: The objective of a training job that ended, in its HyperParameterTrainingJobSummary.
FINAL_OBJECTIVE = "FinalHyperParameterTuningJobObjectiveMetric"
REQUEST_SHAPE = "CreateHyperParameterTuningJobRequest"
_CONFIG, _OBJECTIVE = "HyperParameterTuningJobConfig", "HyperParameterTuningJobObjective"
DEFINITION, DEFINITIONS = "TrainingJobDefinition", "TrainingJobDefinitions"
#: The service's ParameterRanges.
Ranges = dict[str, list[dict[str, object]]]
#: The hosts of training jobs, as only a tuning job has them.
RESOURCES = "HyperParameterTuningResourceConfig"
_DEFINITION_SHAPE = "HyperParameterTrainingJobDefinition"
_ALGORITHM, _ALGORITHM_SHAPE = "AlgorithmSpecification", "HyperParameterAlgorithmSpecification"
#: Fields of a training job that a tuning job has elsewhere, or that its training jobs have by default.
_ELSEWHERE = frozenset({"TrainingJobName", "HyperParameters", "Tags", f"{_ALGORITHM}.EnableSageMakerMetricsTimeSeries"})
#: Fields without which a training job would run something else.
_ESSENTIAL = frozenset(
    f"{_ALGORITHM}.{name}" for name in ("ContainerEntrypoint", "ContainerArguments", "TrainingImageConfig")
)
#: What a TuningJobSpec and the configuration of a request say alike, in the order of a rendered one.
_SEARCH_FIELDS = (
    Field("Strategy", "strategy"),
    Field("StrategyConfig", "strategy_config"),
    Field(f"{_OBJECTIVE}.Type", "objective_type"),
    Field(f"{_OBJECTIVE}.MetricName", "objective"),
    Field("ResourceLimits.MaxNumberOfTrainingJobs", "max_jobs"),
    Field("ResourceLimits.MaxParallelTrainingJobs", "max_parallel_jobs"),
    Field("ResourceLimits.MaxRuntimeInSeconds", "max_runtime"),
    Field("TrainingJobEarlyStoppingType", "early_stopping"),
    Field("TuningJobCompletionCriteria", "completion_criteria"),
    Field("RandomSeed", "random_seed"),
)
#: Training jobs at once, and in all by strategy. (Resource Limits for Automatic Model Tuning, developer guide)
_MOST_PARALLEL, _MOST_JOBS, _MOST_OF_STRATEGY = 100, 750, {"Random": 10_000}
#: Fields of a tuning job's training jobs that a training job does not have.
_OF_TUNING = ("DefinitionName", "TuningObjective", "HyperParameterRanges", "StaticHyperParameters")


def render_tuning_request(training: Mapping[str, Any], spec: TuningJobSpec) -> dict[str, object]:
    """Return the CreateHyperParameterTuningJob request for the CreateTrainingJob request of one of its jobs.

    The name of ``training`` is that of the tuning job. Warns of hyperparameters and monitoring that have no effect;
    raises `SpecError` for what training jobs of a tuning job cannot have.
    """
    given = training.get("HyperParameters", {})
    static, ranges = _parameters(given, spec)
    request = {
        "HyperParameterTuningJobName": training["TrainingJobName"],
        _CONFIG: {**render_fields(_SEARCH_FIELDS, spec), "ParameterRanges": ranges},
        DEFINITION: {**_shared_fields(training), **({"StaticHyperParameters": static} if static else {})},
        "WarmStartConfig": spec.warm_start,
        "Autotune": {"Mode": "Enabled"} if spec.autotune else None,
        "Tags": training.get("Tags"),
    }
    return copy.deepcopy({key: value for key, value in request.items() if value})


def _parameters(given: Mapping[str, str], spec: TuningJobSpec) -> tuple[dict[str, str], Ranges]:
    """Return the static hyperparameters, and the service's ParameterRanges."""
    for name in (name for name in spec.ranges if name in given):
        warn_caller(f"hyperparameters[{name!r}] is not used: hyperparameter_ranges has {name!r} too")
    static = {name: value for name, value in given.items() if name not in spec.ranges}
    is_script = contract.PROGRAM in given
    ranges = render_ranges(spec.ranges, script_mode=is_script)
    if not spec.autotune:
        return static, ranges
    if unknown := sorted({*spec.kept_static} - {*static}):
        what = f"has {unknown[0]!r}, which is not a hyperparameter of the estimator, or has a range"
        raise invalid("hyperparameters_to_keep_static", what, "leave it out")
    chosen = {name: static[name] for name in _users_names(static) if name not in spec.kept_static}
    if chosen:
        ranges["AutoParameters"] = [{"Name": name, "ValueHint": value} for name, value in chosen.items()]
    return {name: value for name, value in static.items() if name not in chosen}, ranges


def _users_names(static: Mapping[str, str]) -> list[str]:
    """Return the names of the hyperparameters that are neither script mode's own nor the service's.

    With another value of script mode's own hyperparameters, the job would run another script.
    """
    own = (contract.RESERVED_PREFIX, contract.MODEL_DIR_PARAMETER) if contract.PROGRAM in static else ()
    return [name for name in static if not name.startswith((*own, contract.TUNING_METRIC))]


def with_instance_configs(request: Mapping[str, Any], configs: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return the request with other hosts of its training jobs: the service's InstanceConfigs."""
    definition = {key: value for key, value in request[DEFINITION].items() if key != "ResourceConfig"}
    resources: dict[str, object] = {"InstanceConfigs": [dict(config) for config in configs]}
    if key := request[DEFINITION].get("ResourceConfig", {}).get("VolumeKmsKeyId"):
        resources["VolumeKmsKeyId"] = key
    return {**request, DEFINITION: {**definition, RESOURCES: resources}}


def instance_configs_of(request: Mapping[str, Any]) -> tuple[dict[str, object], ...] | None:
    """Return the InstanceConfigs of a request or a description with one definition; ``None`` where it has none."""
    configs = (request[DEFINITION].get(RESOURCES) or {}).get("InstanceConfigs")
    return None if configs is None else tuple(dict(config) for config in configs)


def combine_requests(requests: Mapping[str, Mapping[str, Any]]) -> dict[str, object]:
    """Return the request of one tuning job with several definitions, by their names, for the requests of each.

    The first one's settings of the search are those of all.
    """
    first = next(iter(requests.values()))
    config = {key: value for key, value in first[_CONFIG].items() if key not in (_OBJECTIVE, "ParameterRanges")}
    definitions = [
        {
            "DefinitionName": name,
            "TuningObjective": request[_CONFIG][_OBJECTIVE],
            "HyperParameterRanges": request[_CONFIG]["ParameterRanges"],
            **request[DEFINITION],
        }
        for name, request in requests.items()
    ]
    shared = {key: value for key, value in first.items() if key != DEFINITION}
    return {**shared, _CONFIG: config, DEFINITIONS: definitions}


def split_requests(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a request with one definition for each one that a request or a description has.

    A definition's own objective and ranges are in the configuration of its request.
    """
    shared = {key: value for key, value in request.items() if key != DEFINITIONS}
    requests = []
    for definition in request.get(DEFINITIONS) or [request.get(DEFINITION, {})]:
        own = {_OBJECTIVE: definition.get("TuningObjective"), "ParameterRanges": definition.get("HyperParameterRanges")}
        config = {**request[_CONFIG], **{key: value for key, value in own.items() if value is not None}}
        requests.append({**shared, _CONFIG: config, DEFINITION: definition})
    return requests


def field_of_training_job(field: str) -> str:
    """Return the field of a training job that a field of a request stands for; "" for one of the tuning job."""
    parent, _, rest = field.partition(".")
    return rest.replace(RESOURCES, "ResourceConfig", 1) if parent == DEFINITION else ""


def require_quota(request: Mapping[str, Any]) -> None:
    """Raise `QuotaError` for more training jobs than Amazon SageMaker allows in a tuning job, whatever the account."""
    config = request[_CONFIG]
    limits, strategy = config["ResourceLimits"], config["Strategy"]
    values = (row["Values"] for row in config.get("ParameterRanges", {}).get("CategoricalParameterRanges", ()))
    jobs = limits.get("MaxNumberOfTrainingJobs") or (math.prod(map(len, values)) if strategy == "Grid" else 0)
    for name, argument, count, most in (
        ("MaxParallelTrainingJobs", "max_parallel_jobs", limits["MaxParallelTrainingJobs"], _MOST_PARALLEL),
        ("MaxNumberOfTrainingJobs", "max_jobs", jobs, _MOST_OF_STRATEGY.get(strategy, _MOST_JOBS)),
    ):
        if count > most:
            what = f"{name} is {count:,}, and a tuning job with strategy {strategy} has at most {most:,}"
            raise QuotaError(what, f"give at most {most:,}", argument=argument)


def with_resource_config(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition whose hosts are in ResourceConfig, which a training job has too.

    Of several InstanceConfigs it is the first one, which the service prefers.
    """
    given = definition.get(RESOURCES)
    if not isinstance(given, dict) or "ResourceConfig" in definition:
        return dict(definition)
    resources = {key: value for key, value in given.items() if key not in ("InstanceConfigs", "AllocationStrategy")}
    configs = given.get("InstanceConfigs")
    preferred = configs[0] if isinstance(configs, list) and configs and isinstance(configs[0], dict) else {}
    kept = {key: value for key, value in definition.items() if key != RESOURCES}
    return {**kept, "ResourceConfig": {**resources, **preferred}}


def ranges_of(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ranges of a tuning job's hyperparameters by name, as its request or its description has them."""
    configs = [request[_CONFIG].get("ParameterRanges") or {} for request in split_requests(response)]
    return {row["Name"]: row for ranges in configs for rows in ranges.values() for row in rows}


def _shared_fields(training: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields of a training job that the jobs of a tuning job can have."""
    shapes = service_model.shapes(REQUEST_SHAPE)
    known, algorithm = (shapes[name]["members"] for name in (_DEFINITION_SHAPE, _ALGORITHM_SHAPE))
    given = {**training, _ALGORITHM: {k: v for k, v in training[_ALGORITHM].items() if k in algorithm}}
    others = [name for name in training if name not in known]
    others += [f"{_ALGORITHM}.{name}" for name in training[_ALGORITHM] if name not in algorithm]
    for path in others:
        argument = argument_of(path) or path
        if path in _ESSENTIAL:
            raise invalid(argument, "is given, but training jobs of a tuning job do not have it", "leave it out")
        if path not in _ELSEWHERE:
            warn_caller(f"{argument} is not used: training jobs of a tuning job do not have it")
    return {name: value for name, value in given.items() if name in known}


def render_ranges(ranges: Mapping[str, ParameterRange], *, script_mode: bool) -> Ranges:
    """Return the service's ParameterRanges; values of categorical parameters are encoded as hyperparameters are."""
    rendered: Ranges = {}
    for name, parameter in ranges.items():
        if isinstance(parameter, CategoricalParameter):
            values = _encode_values(name, parameter, script_mode=script_mode)
            rendered.setdefault("CategoricalParameterRanges", []).append({"Name": name, "Values": values})
            continue
        is_integer = isinstance(parameter, IntegerParameter)
        low, high = map(int if is_integer else float, (parameter.min_value, parameter.max_value))
        rendered.setdefault("IntegerParameterRanges" if is_integer else "ContinuousParameterRanges", []).append(
            {"Name": name, "MinValue": str(low), "MaxValue": str(high), "ScalingType": parameter.scaling_type}
        )
    return rendered


def _encode_values(name: str, parameter: CategoricalParameter, *, script_mode: bool) -> list[str]:
    argument = f"hyperparameter_ranges[{name!r}]"
    encode = hyperparameters.encode_hyperparameters
    texts = [encode({name: value}, script_mode=False)[name] for value in parameter.values]
    if script_mode:
        # As the SageMaker SDK does: a value is a text, so that True is "True" for the script.
        texts = [encode({name: text}, script_mode=True)[name] for text in texts]
    for index, text in enumerate(texts):
        if text in texts[:index]:
            raise SpecError(f"{argument} has the value {text} twice", "keep one", argument="hyperparameter_ranges")
    return texts


def parse_spec(tuning: Mapping[str, Any], *, script_mode: bool) -> TuningJobSpec:
    """Return the search of a request or a description with one definition; raise `SpecError` or ``ValueError``.

    Values of categorical parameters are decoded in script mode, and the texts of the request without.
    """
    config, static = split_requests(tuning)[0][_CONFIG], tuning[DEFINITION].get("StaticHyperParameters", {})
    search, autotune = parse_fields(_SEARCH_FIELDS, config), "Autotune" in tuning
    at_once = search.pop("max_parallel_jobs")
    return TuningJobSpec(
        **search,
        ranges=parse_ranges(config.get("ParameterRanges", {}), script_mode=script_mode),
        max_parallel_jobs=min(at_once, search.get("max_jobs") or at_once),
        warm_start=tuning.get("WarmStartConfig", {}),
        autotune=autotune,
        kept_static=tuple(_users_names(static)) if autotune else (),
    )


def parse_ranges(ranges: Mapping[str, Any], *, script_mode: bool) -> dict[str, ParameterRange]:
    """Return the ranges of a service's ParameterRanges by the names of their hyperparameters."""
    parsed: dict[str, ParameterRange] = {}
    for kind, row in ((kind, row) for kind, given in ranges.items() for row in given or ()):
        if kind == "CategoricalParameterRanges":
            values = map(contract.decode, row["Values"]) if script_mode else row["Values"]
            parsed[row["Name"]] = CategoricalParameter(list(values))
        elif kind != "AutoParameters":
            convert: Any = int if kind == "IntegerParameterRanges" else float
            bounds = convert(row["MinValue"]), convert(row["MaxValue"])
            make = IntegerParameter if convert is int else ContinuousParameter
            parsed[row["Name"]] = make(*bounds, row.get("ScalingType", "Auto"))
    return parsed


def training_request(tuning: Mapping[str, Any], name: str, tuned: Mapping[str, str]) -> dict[str, Any]:
    """Return the CreateTrainingJob request of one training job of a tuning job, as the service makes it.

    ``tuned`` are the hyperparameters that the search chose, by name. The checkpoints of each job are below the
    job's name: a job must not resume from another's.
    """
    request = _request_of_definition(tuning, name)
    request["HyperParameters"] = {
        **request["HyperParameters"],
        **tuned,
        contract.TUNING_METRIC: objective_of(tuning)["MetricName"],
    }
    # A request that is not validated yet may have something else.
    checkpoints = request.get("CheckpointConfig", {})
    if isinstance(uri := checkpoints.get("S3Uri"), str):
        request["CheckpointConfig"] = {**checkpoints, "S3Uri": f"{uri.rstrip('/')}/{name}"}
    return request


def estimator_request(tuning: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CreateTrainingJob request that a request or a description with one definition was rendered of.

    It has the tuning job's name; `render_tuning_request` turns it into the request again.
    """
    request = _request_of_definition(tuning, tuning["HyperParameterTuningJobName"])
    chosen = tuning[_CONFIG].get("ParameterRanges", {}).get("AutoParameters") or ()
    given = {**request["HyperParameters"], **{row["Name"]: row["ValueHint"] for row in chosen}}
    # The service describes the objective among the static hyperparameters.
    request["HyperParameters"] = {name: value for name, value in given.items() if name != contract.TUNING_METRIC}
    return request


def _request_of_definition(tuning: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a CreateTrainingJob request with the fields and the static hyperparameters of a definition."""
    definition = with_resource_config(tuning[DEFINITION])
    request = {key: value for key, value in definition.items() if key not in _OF_TUNING}
    request["TrainingJobName"] = name
    request["HyperParameters"] = dict(definition.get("StaticHyperParameters", {}))
    # Those of a definition are the server's.
    if tags := [*tuning.get("Tags", ()), *definition.get("Tags", ())]:
        request["Tags"] = tags
    return copy.deepcopy(request)


def objective_of(tuning: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the objective of a tuning job, as its request or its description has it: Type and MetricName."""
    objective: Mapping[str, str] = split_requests(tuning)[0][_CONFIG][_OBJECTIVE]
    return objective


def sample_values(tuning: Mapping[str, Any]) -> dict[str, str]:
    """Return one value of each range of a request: what the training jobs of a tuning job are validated with."""
    ranges = tuning[_CONFIG].get("ParameterRanges", {})
    values = {row["Name"]: row["Values"][0] for row in ranges.get("CategoricalParameterRanges", ())}
    values.update({row["Name"]: row["ValueHint"] for row in ranges.get("AutoParameters", ())})
    for kind in ("IntegerParameterRanges", "ContinuousParameterRanges"):
        values.update({row["Name"]: row["MinValue"] for row in ranges.get(kind, ())})
    return values


def parse_tuning_description(response: Mapping[str, Any]) -> TuningDescription:
    """Return a response of DescribeHyperParameterTuningJob, or a request, as a value."""
    config, objective = response[_CONFIG], objective_of(response)
    limits = config["ResourceLimits"]
    counters = response.get("TrainingJobStatusCounters", {})
    created, ended = response.get("CreationTime"), response.get("HyperParameterTuningEndTime")
    best = response.get("BestTrainingJob")
    return TuningDescription(
        name=response["HyperParameterTuningJobName"],
        status=response.get("HyperParameterTuningJobStatus", ""),
        metric=objective["MetricName"],
        is_maximized=objective["Type"] == "Maximize",
        strategy=config["Strategy"],
        max_jobs=limits.get("MaxNumberOfTrainingJobs"),
        max_parallel_jobs=limits["MaxParallelTrainingJobs"],
        completed=counters.get("Completed", 0),
        running=counters.get("InProgress", 0),
        failed=counters.get("NonRetryableError", 0) + counters.get("RetryableError", 0),
        stopped=counters.get("Stopped", 0),
        seconds=(ended - created).total_seconds() if created and ended else None,
        best=parse_training_summary(best) if best else None,
        failure_reason=response.get("FailureReason", ""),
        response=response,
    )


def parse_training_summary(summary: Mapping[str, Any]) -> TunedJob:
    """Return a HyperParameterTrainingJobSummary as a value."""
    objective = summary.get(FINAL_OBJECTIVE)
    return TunedJob(
        name=summary["TrainingJobName"],
        status=summary["TrainingJobStatus"],
        tuned={name: _tuned_value(text) for name, text in summary["TunedHyperParameters"].items()},
        objective=None if objective is None else float(objective["Value"]),
        started=summary.get("TrainingStartTime"),
        ended=summary.get("TrainingEndTime"),
        failure_reason=summary.get("FailureReason", ""),
    )


def _tuned_value(text: str) -> object:
    """Return a value that the search chose; numbers of a categorical parameter are texts in the request."""
    value = contract.decode(text)
    number = contract.decode(value) if isinstance(value, str) else value
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) else value
