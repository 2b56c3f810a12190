"""SageMaker's operations on tuning jobs, called by boto3. Every answer is checked against botocore's model."""

import copy
import time

import pytest
from botocore.exceptions import ClientError
from fakes.processes import until
from serve.conftest import ENDED, TENSORFLOW

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
    assert [tag["Key"] for tag in api.sagemaker.list_tags(ResourceArn=arn)["Tags"]] == ["team"]
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
    with pytest.raises(ClientError, match="ResourceInUse"):
        api.sagemaker.create_hyper_parameter_tuning_job(**request)
    with pytest.raises(ClientError, match="ResourceNotFound"):
        api.sagemaker.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName="none")
    with pytest.raises(ClientError, match="in status Completed"):
        api.sagemaker.stop_hyper_parameter_tuning_job(
            HyperParameterTuningJobName=request["HyperParameterTuningJobName"]
        )


@pytest.mark.parametrize(
    ("ends", "message"),
    [(("5", "4"), "exchange its ends"), (("a", "4"), "give a whole number for each end")],
    ids=["reversed", "no number"],
)
def test_a_range_that_is_none_is_refused(api, tuning, ends, message):
    request = copy.deepcopy({**tuning[0], "HyperParameterTuningJobName": "refused"})
    ranges = {"IntegerParameterRanges": [{"Name": "layers", "MinValue": ends[0], "MaxValue": ends[1]}]}
    request["HyperParameterTuningJobConfig"].update(Strategy="Random", ParameterRanges=ranges)
    request["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = 2
    with pytest.raises(ClientError, match=f"ValidationException.*the range of 'layers' is .*{message}"):
        api.sagemaker.create_hyper_parameter_tuning_job(**request)


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
    api.sagemaker.delete_hyper_parameter_tuning_job(**name)
    for call in (described, api.sagemaker.delete_hyper_parameter_tuning_job):
        with pytest.raises(ClientError, match="ResourceNotFound"):
            call(**name)
    assert api.sagemaker.describe_training_job(TrainingJobName=first["TrainingJobName"])["TrainingJobStatus"] in ENDED
    api.sagemaker.create_hyper_parameter_tuning_job(**request)
    stop()
