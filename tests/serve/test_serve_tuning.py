"""SageMaker's operations on tuning jobs, called by boto3. Every answer is checked against botocore's model."""

import copy
import json
import time
import urllib.error
import urllib.request

import pytest
from botocore.exceptions import ClientError
from fakes.processes import until
from serve.conftest import ENDED, TENSORFLOW

from scriptmode.platforms.local import LocalPlatform
from scriptmode.platforms.local.tuning.tuning_service import LocalTuning

pytestmark = pytest.mark.slow

SCRIPT = """
import argparse, time
parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float)
parser.add_argument("--seconds", type=float, default=0)
arguments = parser.parse_known_args()[0]
print("loss=%f" % abs(arguments.rate - 0.5))
time.sleep(arguments.seconds)
"""


@pytest.fixture(scope="module")
def tuning(api):
    """The request of a tuning job with two training jobs of a grid, and its name."""
    training = api.request(SCRIPT)
    api.names.clear()
    name = f"tune-{time.time_ns() % 10**12}"
    definition = {
        "AlgorithmSpecification": {
            "TrainingImage": TENSORFLOW,
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
        },
        **{name: training[name] for name in ("RoleArn", "OutputDataConfig", "StoppingCondition")},
        # As the SageMaker SDK v2 sends it.
        "HyperParameterTuningResourceConfig": training["ResourceConfig"],
        "StaticHyperParameters": training["HyperParameters"],
    }
    config = {
        "Strategy": "Grid",
        "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
        "ResourceLimits": {"MaxParallelTrainingJobs": 2},
        "ParameterRanges": {"CategoricalParameterRanges": [{"Name": "rate", "Values": ["0.25", "0.75", "0.5"]}]},
    }
    request = {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": config,
        "TrainingJobDefinition": definition,
        "Tags": [{"Key": "team", "Value": "a"}],
    }
    arn = api.sagemaker.create_hyper_parameter_tuning_job(**request)["HyperParameterTuningJobArn"]

    def described():
        return api.sagemaker.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)

    until(lambda: described()["HyperParameterTuningJobStatus"] in ENDED)
    return request, arn, described()


def test_a_tuning_job_runs_its_training_jobs(api, tuning):
    request, arn, found = tuning
    assert found["HyperParameterTuningJobStatus"] == "Completed", found
    assert found["HyperParameterTuningJobArn"] == arn
    hosts = request["TrainingJobDefinition"]["HyperParameterTuningResourceConfig"]
    assert found["TrainingJobDefinition"]["ResourceConfig"] == hosts
    assert found["BestTrainingJob"]["TunedHyperParameters"] == {"rate": "0.5"}
    best = api.sagemaker.describe_training_job(TrainingJobName=found["BestTrainingJob"]["TrainingJobName"])
    assert best["ResourceConfig"]["InstanceType"] == "ml.m5.xlarge"
    assert best["TuningJobArn"] == arn
    # The service adds it, and the SDK v2 takes it out.
    assert found["TrainingJobDefinition"]["StaticHyperParameters"]["_tuning_objective_metric"] == "loss"
    assert found["TrainingJobStatusCounters"]["Completed"] == found["ObjectiveStatusCounters"]["Succeeded"] == 3
    listed = api.sagemaker.list_training_jobs_for_hyper_parameter_tuning_job(
        HyperParameterTuningJobName=request["HyperParameterTuningJobName"]
    )
    ends = {row["TrainingJobName"]: row["TrainingEndTime"] for row in listed["TrainingJobSummaries"]}
    later = sum(each > ends[best["TrainingJobName"]] for each in ends.values())
    assert found["TuningJobCompletionDetails"]["NumberOfTrainingJobsObjectiveNotImproving"] == later
    seconds = (found["HyperParameterTuningEndTime"] - found["CreationTime"]).total_seconds()
    assert found["ConsumedResources"]["RuntimeInSeconds"] == pytest.approx(seconds, abs=1)
    assert [tag["Key"] for tag in api.sagemaker.list_tags(ResourceArn=arn)["Tags"]] == ["team"]
    # Neither the SDK nor a client sees the tags of the server.
    service = LocalTuning(LocalPlatform(data_dir=api.folder / "data"))
    assert "Tags" not in service.describe(request["HyperParameterTuningJobName"])["TrainingJobDefinition"]
    name = request["HyperParameterTuningJobName"]
    rows = api.sagemaker.list_hyper_parameter_tuning_jobs(NameContains=name, StatusEquals="Completed")
    assert [row["HyperParameterTuningJobName"] for row in rows["HyperParameterTuningJobSummaries"]] == [name]


def test_training_jobs_of_a_tuning_job_are_listed_by_their_objective(api, tuning):
    pages = api.sagemaker.get_paginator("list_training_jobs_for_hyper_parameter_tuning_job").paginate(
        HyperParameterTuningJobName=tuning[0]["HyperParameterTuningJobName"],
        SortBy="FinalObjectiveMetricValue",
        SortOrder="Descending",
        PaginationConfig={"PageSize": 1},
    )
    rows = [row for page in pages for row in page["TrainingJobSummaries"]]
    values = [row["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] for row in rows]
    assert values == [0.25, 0.25, 0.0]


def test_errors_have_the_codes_of_aws(api, tuning):
    request, _, _ = tuning
    name = request["HyperParameterTuningJobName"]
    for same in (name, name.upper()):
        with pytest.raises(ClientError, match=f"ResourceInUse.*'{name}' already"):
            api.sagemaker.create_hyper_parameter_tuning_job(**{**request, "HyperParameterTuningJobName": same})
    operations = ("describe_hyper_parameter_tuning_job", "stop_hyper_parameter_tuning_job")
    for operation in (*operations, "list_training_jobs_for_hyper_parameter_tuning_job"):
        with pytest.raises(ClientError, match="ResourceNotFound"):
            getattr(api.sagemaker, operation)(HyperParameterTuningJobName="none")
    with pytest.raises(ClientError, match="ValidationException.*in status Completed"):
        api.sagemaker.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)


def changed(request, path, value):
    """Return a request with another value of a field, without the field for None."""
    found = copy.deepcopy({**request, "HyperParameterTuningJobName": "refused"})
    *parents, field = path.split(".")
    part = found
    for name in parents:
        part = part[int(name)] if isinstance(part, list) else part[name]
    part[field] = value
    if value is None:
        del part[field]
    return found


def refusal(api, request):
    """Return status, code and message for a request that boto3 would not send."""
    headers = {"X-Amz-Target": "SageMaker.CreateHyperParameterTuningJob", "Content-Type": "application/x-amz-json-1.1"}
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(urllib.request.Request(api.server.url, json.dumps(request).encode(), headers))
    with raised.value as answer:
        content = json.loads(answer.read())
    return answer.code, content["__type"], content["message"]


CONFIG, DEFINITION = "HyperParameterTuningJobConfig", "TrainingJobDefinition"
#: By the field: a value that the service's model does not have.
INVALID = {
    CONFIG: None,
    f"{CONFIG}.Strategy": "Best",
    f"{CONFIG}.ResourceLimits": None,
    f"{CONFIG}.RandomSeed": -1,
    f"{CONFIG}.ParameterRanges.CategoricalParameterRanges.0.Values": [],
    f"{DEFINITION}.DefinitionName": "a b",
    f"{DEFINITION}.TuningObjective": {"Type": "Maximize"},
    f"{DEFINITION}.AlgorithmSpecification": None,
    f"{DEFINITION}.HyperParameterRanges": {"IntegerParameterRanges": [{"Name": "a", "MinValue": "1"}]},
    f"{DEFINITION}.HyperParameterTuningResourceConfig": {"InstanceType": "ml.m5.xlage", "InstanceCount": 1},
    f"{DEFINITION}.RoleArn": "role",
    f"{DEFINITION}.RetryStrategy": {},
    "Tags": [{"Key": "a"}],
    "WarmStartConfig": {"WarmStartType": "Other"},
}


@pytest.mark.parametrize("path", INVALID)
def test_a_field_that_the_model_does_not_have_is_named(api, tuning, path):
    status, code, message = refusal(api, changed(tuning[0], path, INVALID[path]))
    field = path.replace(".0", "").rpartition(".")[2]
    assert (status, code) == (400, "ValidationException")
    assert field.lower() in message.lower()


@pytest.mark.parametrize(
    "path",
    [
        "Tags",
        CONFIG,
        f"{CONFIG}.ParameterRanges",
        f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs",
        DEFINITION,
        f"{DEFINITION}.AlgorithmSpecification.MetricDefinitions",
        f"{DEFINITION}.CheckpointConfig",
        f"{DEFINITION}.HyperParameterTuningResourceConfig",
        f"{DEFINITION}.OutputDataConfig",
        f"{DEFINITION}.StaticHyperParameters",
        "TrainingJobDefinitions",
        "HyperParameterTuningJobName",
    ],
)
def test_a_value_of_another_type_is_refused(api, tuning, path):
    for value in ([5], 5.5, {"a": 1}):
        status, code, _ = refusal(api, changed(tuning[0], path, value))
        assert (status, code in ("ValidationException", "SerializationException")) == (400, True)


NUMBERS = {"Name": "layers", "MinValue": "5", "MaxValue": "4"}


def with_numbers(**fields):
    """Return a configuration with a range of whole numbers."""
    return {
        "Strategy": "Random",
        "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
        "ResourceLimits": {"MaxParallelTrainingJobs": 1, "MaxNumberOfTrainingJobs": 2},
        "ParameterRanges": {"IntegerParameterRanges": [{**NUMBERS, **fields}]},
    }


CRITERIA = {"ConvergenceDetected": {"CompleteOnConvergence": "Enabled"}}
#: Requests of the model that no tuning job of this machine has: the field, its value, and the message.
REFUSED = {
    "ends in the wrong order": (CONFIG, with_numbers(), "the range of 'layers' is .*; exchange its ends"),
    "an end that is no number": (CONFIG, with_numbers(MinValue="a"), "'layers' is .*; give a whole number for each"),
    "a logarithm of 0": (CONFIG, with_numbers(MinValue="0", ScalingType="Logarithmic"), "give ends above 0"),
    "an integer scaled in reverse": (
        CONFIG,
        with_numbers(MinValue="4", ScalingType="ReverseLogarithmic"),
        "with the scale ReverseLogarithmic; use Auto, Linear or Logarithmic",
    ),
    "too few combinations": (
        f"{CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs",
        4,
        "is 4, but the grid has 3 combinations",
    ),
    "ranges to be chosen": (
        f"{CONFIG}.ParameterRanges",
        {"AutoParameters": [{"Name": "rate", "ValueHint": "0.5"}]},
        f"{CONFIG}.ParameterRanges.AutoParameters is given without Autotune",
    ),
    "a name in two ranges": (
        f"{CONFIG}.ParameterRanges.CategoricalParameterRanges",
        [{"Name": "rate", "Values": ["0.5"]}, {"Name": "rate", "Values": ["0.6"]}],
        "StaticHyperParameters have 'rate' more than once; keep one",
    ),
    "a name with a fixed value": (
        f"{DEFINITION}.StaticHyperParameters.rate",
        "0.5",
        "StaticHyperParameters have 'rate' more than once; keep one",
    ),
    "equal values": (
        f"{CONFIG}.ParameterRanges.CategoricalParameterRanges.0.Values",
        ["0.5", "0.5"],
        "the range of 'rate' has a value more than once",
    ),
    "no ranges": (f"{CONFIG}.ParameterRanges", {}, f"{CONFIG}.ParameterRanges has no range; add one"),
    "no objective": (f"{CONFIG}.HyperParameterTuningJobObjective", None, "HyperParameterTuningJobObjective is missing"),
    "no limit": (f"{CONFIG}.Strategy", "Random", "ResourceLimits.MaxNumberOfTrainingJobs is missing; add it"),
    "a grid of numbers": (
        f"{CONFIG}.ParameterRanges",
        with_numbers()["ParameterRanges"],
        "strategy Grid has ranges of",
    ),
    "an unknown metric": (
        f"{CONFIG}.HyperParameterTuningJobObjective.MetricName",
        "gain",
        "'gain' is not one of the MetricDefinitions of TrainingJobDefinition.AlgorithmSpecification; add it",
    ),
    "resources in the wrong order": (
        f"{CONFIG}.StrategyConfig",
        {"HyperbandStrategyConfig": {"MinResource": 9, "MaxResource": 3}},
        "MinResource is 9, above MaxResource 3; exchange them",
    ),
    "no definition": (DEFINITION, None, "TrainingJobDefinition is missing; add it, or TrainingJobDefinitions"),
    "autotune": ("Autotune", {"Mode": "Enabled"}, r"\(Autotune\) is given, .*; leave it out, or"),
    "convergence": (f"{CONFIG}.TuningJobCompletionCriteria", CRITERIA, r"\(ConvergenceDetected\) is given"),
    "a warm start": (
        "WarmStartConfig",
        {
            "WarmStartType": "TransferLearning",
            "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": "other"}],
        },
        r"\(WarmStartConfig\) is given",
    ),
    "a reserved tag": ("Tags", [{"Key": "scriptmode:tuning-job", "Value": "a"}], "'scriptmode:tuning-job' is reserved"),
}


@pytest.mark.parametrize(("path", "value", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_tuning_job_here_can_do_is_refused(api, tuning, path, value, message):
    request = changed(tuning[0], path, value)
    with pytest.raises(ClientError, match=f"(?s)ValidationException.*{message}"):
        api.sagemaker.create_hyper_parameter_tuning_job(**request)


def test_the_tags_of_the_server_do_not_count_among_those_of_a_tuning_job(api, tuning):
    tags = [{"Key": f"k{each}", "Value": "v"} for each in range(50)]
    name = f"tags-{time.time_ns() % 10**12}"
    request = {**tuning[0], "HyperParameterTuningJobName": name, "Tags": tags}
    create = api.sagemaker.create_hyper_parameter_tuning_job
    with pytest.raises(ClientError, match="ValidationException.*less than or equal to 50"):
        create(**{**request, "Tags": [*tags, {"Key": "more", "Value": "v"}]})
    create(**request)

    def counters():
        found = api.sagemaker.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
        return found["HyperParameterTuningJobStatus"] in ENDED and found["TrainingJobStatusCounters"]

    assert until(counters)["Completed"] == 3


def several(request, name):
    """Return the request of a tuning job with two definitions, which have other hosts and images."""
    config = copy.deepcopy(request[CONFIG])
    objective, ranges = config.pop("HyperParameterTuningJobObjective"), config.pop("ParameterRanges")
    hosts = request[DEFINITION]["HyperParameterTuningResourceConfig"]
    definitions = [
        {
            **copy.deepcopy(request[DEFINITION]),
            "DefinitionName": each,
            "TuningObjective": dict(objective),
            "HyperParameterRanges": ranges,
            "HyperParameterTuningResourceConfig": {
                "InstanceConfigs": [{**hosts, "InstanceType": kind}, hosts],
                "AllocationStrategy": "Prioritized",
            },
        }
        for each, kind in (("one", "ml.c5.xlarge"), ("two", "ml.p3.2xlarge"))
    ]
    del definitions[0]["HyperParameterTuningResourceConfig"]
    definitions[0]["ResourceConfig"] = {**hosts, "InstanceType": "ml.c5.xlarge"}
    definitions[1]["AlgorithmSpecification"]["TrainingImage"] = TENSORFLOW.replace("2.15", "2.14")
    definitions[1]["HyperParameterRanges"] = {"CategoricalParameterRanges": [{"Name": "rate", "Values": ["0.51"]}]}
    return {"HyperParameterTuningJobName": name, CONFIG: config, "TrainingJobDefinitions": definitions}


def test_several_definitions_take_turns_and_each_has_its_hosts_its_image_and_its_ranges(api, tuning):
    request = several(tuning[0], f"several-{time.time_ns() % 10**12}")
    arn = api.sagemaker.create_hyper_parameter_tuning_job(**request)["HyperParameterTuningJobArn"]
    name = {"HyperParameterTuningJobName": request["HyperParameterTuningJobName"]}

    def ended():
        found = api.sagemaker.describe_hyper_parameter_tuning_job(**name)
        return found["HyperParameterTuningJobStatus"] in ENDED and found

    found = until(ended)
    assert found["HyperParameterTuningJobStatus"] == "Completed", found
    described = found["TrainingJobDefinitions"]
    for each in described:
        del each["StaticHyperParameters"]["_tuning_objective_metric"]
    assert described == request["TrainingJobDefinitions"]
    best = found["BestTrainingJob"]
    assert (best["TrainingJobDefinitionName"], best["TunedHyperParameters"]) == ("one", {"rate": "0.5"})
    listed = api.sagemaker.list_training_jobs_for_hyper_parameter_tuning_job(**name, SortBy="CreationTime")
    rows = [(row["TrainingJobDefinitionName"], row["TunedHyperParameters"]) for row in listed["TrainingJobSummaries"]]
    assert [definition for definition, _ in rows] == ["one", "two", "one", "one"]
    assert rows[1] == ("two", {"rate": "0.51"})
    second = api.sagemaker.describe_training_job(TrainingJobName=listed["TrainingJobSummaries"][1]["TrainingJobName"])
    assert second["TuningJobArn"] == arn
    assert second["ResourceConfig"]["InstanceType"] == "ml.p3.2xlarge"
    assert second["AlgorithmSpecification"]["TrainingImage"].endswith(":2.14-cpu-py310")


SEVERAL = {
    "a definition without a name": (
        "TrainingJobDefinitions.0.DefinitionName",
        None,
        "DefinitionNames .*, 'two'.; give",
    ),
    "equal names": ("TrainingJobDefinitions.0.DefinitionName", "two", "give each a name of its own"),
    "objectives of two types": ("TrainingJobDefinitions.0.TuningObjective.Type", "Maximize", "TuningObjective.Type is"),
    "no objective": ("TrainingJobDefinitions.1.TuningObjective", None, r"Definitions\[1\].TuningObjective is missing"),
    "no ranges": ("TrainingJobDefinitions.1.HyperParameterRanges", None, r"\[1\].HyperParameterRanges has no range"),
    "early stopping": (
        f"{CONFIG}.TrainingJobEarlyStoppingType",
        "Auto",
        "is 'Auto' with several definitions; give 'Off'",
    ),
}


@pytest.mark.parametrize(("path", "value", "message"), SEVERAL.values(), ids=SEVERAL.keys())
def test_several_definitions_that_do_not_fit_are_refused(api, tuning, path, value, message):
    request = changed(several(tuning[0], "refused"), path, value)
    with pytest.raises(ClientError, match=f"(?s)ValidationException.*{message}"):
        api.sagemaker.create_hyper_parameter_tuning_job(**request)


def test_one_definition_in_a_list_may_stop_early_and_values_may_repeat(api, tuning):
    request = several(tuning[0], f"listed-{time.time_ns() % 10**12}")
    # One value, and two training jobs.
    request["TrainingJobDefinitions"] = request["TrainingJobDefinitions"][1:]
    request[CONFIG].update(Strategy="Random", TrainingJobEarlyStoppingType="Auto")
    request[CONFIG]["ResourceLimits"] = {"MaxParallelTrainingJobs": 2, "MaxNumberOfTrainingJobs": 2}
    api.sagemaker.create_hyper_parameter_tuning_job(**request)
    name = {"HyperParameterTuningJobName": request["HyperParameterTuningJobName"]}

    def ended():
        found = api.sagemaker.describe_hyper_parameter_tuning_job(**name)
        return found["HyperParameterTuningJobStatus"] in ENDED and found

    assert until(ended)["TrainingJobStatusCounters"]["Completed"] == 2


def test_an_ended_tuning_job_is_deleted_and_its_training_jobs_are_kept(api, tuning):
    request = copy.deepcopy({**tuning[0], "HyperParameterTuningJobName": f"deleted-{time.time_ns() % 10**12}"})
    request["TrainingJobDefinition"]["StaticHyperParameters"]["seconds"] = "600"
    name = {"HyperParameterTuningJobName": request["HyperParameterTuningJobName"]}
    described = api.sagemaker.describe_hyper_parameter_tuning_job

    def stop():
        api.sagemaker.stop_hyper_parameter_tuning_job(**name)
        until(lambda: described(**name)["HyperParameterTuningJobStatus"] in ENDED)

    def rows():
        found = api.sagemaker.list_training_jobs_for_hyper_parameter_tuning_job(**name)
        return found["TrainingJobSummaries"]

    api.sagemaker.create_hyper_parameter_tuning_job(**request)
    with pytest.raises(ClientError, match="in status InProgress"):
        api.sagemaker.delete_hyper_parameter_tuning_job(**name)
    (first, *_) = until(rows)
    stop()
    with pytest.raises(ClientError, match="ValidationException.*in status Stopped"):
        api.sagemaker.stop_hyper_parameter_tuning_job(**name)
    api.sagemaker.delete_hyper_parameter_tuning_job(**name)
    for call in (described, api.sagemaker.delete_hyper_parameter_tuning_job):
        with pytest.raises(ClientError, match="ResourceNotFound"):
            call(**name)
    assert api.sagemaker.describe_training_job(TrainingJobName=first["TrainingJobName"])["TrainingJobStatus"] in ENDED
    api.sagemaker.create_hyper_parameter_tuning_job(**request)
    stop()
