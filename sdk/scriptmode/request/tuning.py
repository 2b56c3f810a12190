"""Render CreateHyperParameterTuningJob requests, and the CreateTrainingJob requests of their training jobs. Pure."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

from scriptmode.errors import SpecError, invalid
from scriptmode.request import service_model
from scriptmode.request.fields import argument_of
from scriptmode.spec import hyperparameters
from scriptmode.spec.parameter_ranges import CategoricalParameter, IntegerParameter
from scriptmode.spec.tuning_description import TunedJob, TuningDescription
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.spec.parameter_ranges import ParameterRange
    from scriptmode.spec.tuning_job import TuningJobSpec

REQUEST_SHAPE = "CreateHyperParameterTuningJobRequest"
_DEFINITION = "TrainingJobDefinition"
_DEFINITION_SHAPE = "HyperParameterTrainingJobDefinition"
_ALGORITHM, _ALGORITHM_SHAPE = "AlgorithmSpecification", "HyperParameterAlgorithmSpecification"
#: Fields of a training job that a tuning job has elsewhere, or that its training jobs have by default.
_ELSEWHERE = frozenset({"TrainingJobName", "HyperParameters", "Tags", f"{_ALGORITHM}.EnableSageMakerMetricsTimeSeries"})
#: Fields without which a training job would run something else.
_ESSENTIAL = frozenset(
    f"{_ALGORITHM}.{name}" for name in ("ContainerEntrypoint", "ContainerArguments", "TrainingImageConfig")
)
#: Fields of a tuning job's training jobs that a training job does not have.
_OF_TUNING = ("DefinitionName", "TuningObjective", "HyperParameterRanges", "StaticHyperParameters")


def render_tuning_request(training: Mapping[str, Any], spec: TuningJobSpec) -> dict[str, Any]:
    """Return the CreateHyperParameterTuningJob request for the CreateTrainingJob request of one of its jobs.

    The name of ``training`` is that of the tuning job. Warns of hyperparameters and monitoring that have no effect;
    raises `SpecError` for what training jobs of a tuning job cannot have.
    """
    given = training.get("HyperParameters", {})
    ranges = render_ranges(spec.ranges, script_mode=contract.PROGRAM in given)
    limits = {
        "MaxNumberOfTrainingJobs": spec.max_jobs,
        "MaxParallelTrainingJobs": spec.max_parallel_jobs,
        "MaxRuntimeInSeconds": spec.max_runtime,
    }
    config: dict[str, Any] = {
        "Strategy": spec.strategy,
        "StrategyConfig": spec.strategy_config or None,
        "HyperParameterTuningJobObjective": {"Type": spec.objective_type, "MetricName": spec.objective},
        "ResourceLimits": {key: value for key, value in limits.items() if value is not None},
        "ParameterRanges": ranges,
        "TrainingJobEarlyStoppingType": spec.early_stopping,
        "RandomSeed": spec.random_seed,
    }
    request = {
        "HyperParameterTuningJobName": training["TrainingJobName"],
        "HyperParameterTuningJobConfig": {key: value for key, value in config.items() if value is not None},
        _DEFINITION: _shared_fields(training),
    }
    if static := _static_hyperparameters(given, spec.ranges):
        request[_DEFINITION]["StaticHyperParameters"] = static
    if training.get("Tags"):
        request["Tags"] = training["Tags"]
    return copy.deepcopy(request)


def _static_hyperparameters(given: Mapping[str, str], ranges: Mapping[str, ParameterRange]) -> dict[str, str]:
    for name in ranges:
        if name in given:
            warnings.warn(
                f"hyperparameters[{name!r}] is not used: hyperparameter_ranges has {name!r} too", stacklevel=5
            )
    return {name: value for name, value in given.items() if name not in ranges}


def _shared_fields(training: Mapping[str, Any]) -> dict[str, Any]:
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
            warnings.warn(f"{argument} is not used: training jobs of a tuning job do not have it", stacklevel=6)
    return {name: value for name, value in given.items() if name in known}


def render_ranges(ranges: Mapping[str, ParameterRange], *, script_mode: bool) -> dict[str, list[dict[str, Any]]]:
    """Return the service's ParameterRanges; values of categorical parameters are encoded as hyperparameters are."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, each in ranges.items():
        if isinstance(each, CategoricalParameter):
            values = _encode_values(name, each, script_mode=script_mode)
            found.setdefault("CategoricalParameterRanges", []).append({"Name": name, "Values": values})
            continue
        is_integer = isinstance(each, IntegerParameter)
        convert = int if is_integer else float
        found.setdefault("IntegerParameterRanges" if is_integer else "ContinuousParameterRanges", []).append(
            {
                "Name": name,
                "MinValue": str(convert(each.min_value)),
                "MaxValue": str(convert(each.max_value)),
                "ScalingType": each.scaling_type,
            }
        )
    return found


def _encode_values(name: str, parameter: CategoricalParameter, *, script_mode: bool) -> list[str]:
    argument = f"hyperparameter_ranges[{name!r}]"
    encode = hyperparameters.encode_hyperparameters
    texts = [encode({name: value}, script_mode=script_mode)[name] for value in parameter.values]
    for index, text in enumerate(texts):
        if text in texts[:index]:
            raise SpecError(
                f"{argument} has the value {text} twice", argument="hyperparameter_ranges", advice="keep one"
            )
    return texts


def training_request(tuning: Mapping[str, Any], name: str, tuned: Mapping[str, str]) -> dict[str, Any]:
    """Return the CreateTrainingJob request of one training job of a tuning job, as the service makes it.

    ``tuned`` are the hyperparameters that the search chose, by name. The checkpoints of each job are below the
    job's name: a job must not resume from another's.
    """
    definition = tuning[_DEFINITION]
    objective = objective_of(tuning)["MetricName"]
    request = {key: value for key, value in definition.items() if key not in _OF_TUNING}
    request["TrainingJobName"] = name
    request["HyperParameters"] = {
        **definition.get("StaticHyperParameters", {}),
        **tuned,
        contract.TUNING_METRIC: objective,
    }
    if "CheckpointConfig" in request:
        checkpoints = request["CheckpointConfig"]
        request["CheckpointConfig"] = {**checkpoints, "S3Uri": f"{checkpoints['S3Uri'].rstrip('/')}/{name}"}
    if tuning.get("Tags"):
        request["Tags"] = tuning["Tags"]
    return copy.deepcopy(request)


def objective_of(tuning: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the objective of a tuning job, as its request or its description has it: Type and MetricName."""
    found: Mapping[str, str] = tuning["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"]
    return found


def sample_values(tuning: Mapping[str, Any]) -> dict[str, str]:
    """Return one value of each range of a request: what the training jobs of a tuning job are validated with."""
    ranges = tuning["HyperParameterTuningJobConfig"].get("ParameterRanges", {})
    found = {each["Name"]: each["Values"][0] for each in ranges.get("CategoricalParameterRanges", ())}
    for kind in ("IntegerParameterRanges", "ContinuousParameterRanges"):
        found.update({each["Name"]: each["MinValue"] for each in ranges.get(kind, ())})
    return found


def parse_tuning_description(response: Mapping[str, Any]) -> TuningDescription:
    """Return a response of DescribeHyperParameterTuningJob, or a request, as a value."""
    config = response["HyperParameterTuningJobConfig"]
    limits, objective = config["ResourceLimits"], config["HyperParameterTuningJobObjective"]
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
    objective = summary.get("FinalHyperParameterTuningJobObjectiveMetric")
    return TunedJob(
        name=summary["TrainingJobName"],
        status=summary["TrainingJobStatus"],
        tuned={name: contract.decode(text) for name, text in summary["TunedHyperParameters"].items()},
        objective=None if objective is None else float(objective["Value"]),
        started=summary.get("TrainingStartTime"),
        ended=summary.get("TrainingEndTime"),
        failure_reason=summary.get("FailureReason", ""),
    )
