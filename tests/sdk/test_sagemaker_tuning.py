"""Tuning jobs of Amazon SageMaker: the calls, with botocore's own check of arguments and responses."""

import copy
import sys
from datetime import datetime, timedelta, timezone

import boto3
import pytest
from botocore.stub import ANY, Stubber

from scriptmode import (
    MPI,
    CategoricalParameter,
    ContinuousParameter,
    CredentialsError,
    Estimator,
    InstanceConfig,
    RequestError,
    SpecError,
    Tuner,
)
from scriptmode.testing import FakeSageMaker

ROLE = "arn:aws:iam::123456789012:role/training"
ARN = "arn:aws:sagemaker:us-west-2:123456789012:hyper-parameter-tuning-job/search"
BEGIN = datetime(2026, 1, 2, tzinfo=timezone.utc)
NAME = "HyperParameterTuningJobName"
OF_SEARCH = {NAME: "search"}


class Account(FakeSageMaker):
    """An account whose SageMaker client is botocore's, with recorded responses."""

    def __init__(self):
        super().__init__()
        self.sagemaker = boto3.Session("key", "secret", region_name="us-west-2").client("sagemaker")
        self.responses = Stubber(self.sagemaker)

    def client(self, service_name, region_name=None, **settings):
        if service_name == "sagemaker":
            return self.sagemaker
        return super().client(service_name, region_name, **settings)

    def describes(self, status="InProgress", *, completed=0, running=0, failed=0, **fields):
        response = {
            **OF_SEARCH,
            "HyperParameterTuningJobArn": ARN,
            "HyperParameterTuningJobConfig": {
                "Strategy": "Bayesian",
                "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "accuracy"},
                "ResourceLimits": {"MaxNumberOfTrainingJobs": 2, "MaxParallelTrainingJobs": 2},
            },
            "HyperParameterTuningJobStatus": status, "CreationTime": BEGIN,
            "TrainingJobStatusCounters": {"Completed": completed, "InProgress": running, "NonRetryableError": failed},
            "ObjectiveStatusCounters": {"Succeeded": completed}, **fields,
        }  # fmt: skip
        self.responses.add_response("describe_hyper_parameter_tuning_job", response, OF_SEARCH)

    def lists(self, *summaries):
        self.responses.add_response(
            "list_training_jobs_for_hyper_parameter_tuning_job",
            {"TrainingJobSummaries": list(summaries)},
            {**OF_SEARCH, "SortBy": "CreationTime", "SortOrder": "Ascending"},
        )


def summary(number, value=None, status="Completed"):
    name = f"search-{number:03d}-abc"
    found = {
        "TrainingJobName": name, "TrainingJobArn": f"arn:aws:sagemaker:us-west-2:123456789012:training-job/{name}",
        "CreationTime": BEGIN, "TrainingStartTime": BEGIN + timedelta(seconds=10),
        "TrainingEndTime": BEGIN + timedelta(seconds=70), "TrainingJobStatus": status,
        "TunedHyperParameters": {"lr": f"0.{number}"},
    }  # fmt: skip
    if value is not None:
        found["FinalHyperParameterTuningJobObjectiveMetric"] = {"MetricName": "accuracy", "Value": value}
    return found


@pytest.fixture
def account(no_settings):
    made = Account()
    with made.responses:
        yield made
    made.responses.assert_no_pending_responses()


@pytest.fixture
def tuner(account, code):
    estimator = Estimator(
        entry_point="train.py",
        source_dir=code,
        role=ROLE,
        image_uri="registry/img:1",
        instance_type="ml.m5.large",
        metric_definitions=[{"Name": "accuracy", "Regex": "accuracy=([0-9.]+)"}],
        sagemaker_session=account,
    )
    return Tuner(estimator, "accuracy", {"lr": ContinuousParameter(0, 1)}, max_jobs=2, max_parallel_jobs=2)


def test_results_are_rows_of_the_training_jobs_and_a_frame_with_the_columns_of_the_sagemaker_sdk(account, monkeypatch):
    class Frames:
        @staticmethod
        def DataFrame(rows, columns):  # noqa: N802 - pandas' own name
            return rows, columns

    monkeypatch.setitem(sys.modules, "pandas", Frames)
    account.describes()
    account.describes("Completed", completed=1, failed=1, BestTrainingJob=summary(1, 0.7))
    account.lists(summary(1, 0.7), summary(2, status="Failed"))
    results = Tuner.attach("search", account).analytics()
    first, second = results
    assert first == {
        "lr": 0.1, "TrainingJobName": "search-001-abc", "TrainingJobStatus": "Completed", "FinalObjectiveValue": 0.7,
        "TrainingStartTime": BEGIN + timedelta(seconds=10), "TrainingEndTime": BEGIN + timedelta(seconds=70),
        "TrainingElapsedTimeSeconds": 60.0,
    }  # fmt: skip
    assert second["FinalObjectiveValue"] is None
    assert results.dataframe() == ([first, second], list(first))


def test_throttling_is_retried_while_it_waits(account):
    account.describes()
    account.responses.add_client_error("describe_hyper_parameter_tuning_job", "ThrottlingException", "Rate exceeded")
    account.describes("Completed", completed=1)
    assert Tuner.attach("search", account).wait(logs=False)["HyperParameterTuningJobStatus"] == "Completed"


@pytest.mark.parametrize(
    ("code_of_error", "kind"), [("ResourceNotFound", RequestError), ("AccessDeniedException", CredentialsError)]
)
def test_a_refused_request_is_translated(tuner, account, code_of_error, kind):
    account.responses.add_client_error("create_hyper_parameter_tuning_job", code_of_error, "it is refused")
    with pytest.raises(kind, match="tuning job search: it is refused"):
        tuner.fit(job_name="search", wait=False)
    assert tuner.latest_tuning_job is None


def test_hosts_that_train_together_share_a_secret(tuner, account):
    tuner.estimator.instance_count = 2
    tuner.estimator.distribution = MPI(processes_per_host=2)
    request = tuner.request(job_name="search")
    definition = {**request["TrainingJobDefinition"], "Environment": ANY}
    account.responses.add_response(
        "create_hyper_parameter_tuning_job",
        {"HyperParameterTuningJobArn": ARN},
        {**request, "TrainingJobDefinition": definition},
    )
    tuner.fit(job_name="search", wait=False)


def test_an_attached_tuner_has_the_arguments_of_its_tuning_job(tuner, account):
    tuner.override_resource_config([InstanceConfig(2, "ml.c5.xlarge"), InstanceConfig(1, "ml.m5.large")])
    criteria = {"TargetObjectiveMetricValue": 0.5}
    request = tuner.request("s3://data/train", job_name="search")
    request["HyperParameterTuningJobConfig"]["TuningJobCompletionCriteria"] = criteria
    fields = ("HyperParameterTuningJobConfig", "TrainingJobDefinition")
    for _ in range(2):
        account.describes("Completed", **{name: request[name] for name in fields})
    attached = Tuner.attach("search", account)
    assert repr(attached) == "Tuner(attached to 'search')"
    assert attached.estimator.instance_count == 2
    assert attached.estimator.instance_type == "ml.c5.xlarge"
    assert attached.hyperparameter_ranges() == tuner.hyperparameter_ranges()
    again = attached.transfer_learning_tuner({"older"})
    assert again.latest_tuning_job is None
    made = again.request("s3://data/train", job_name="next")
    assert made["WarmStartConfig"] == {
        "WarmStartType": "TransferLearning",
        "ParentHyperParameterTuningJobs": [{NAME: "older"}, {NAME: "search"}],
    }
    assert made["HyperParameterTuningJobConfig"] == request["HyperParameterTuningJobConfig"]
    definition = made["TrainingJobDefinition"]
    assert definition["AlgorithmSpecification"] == request["TrainingJobDefinition"]["AlgorithmSpecification"]
    assert definition["HyperParameterTuningResourceConfig"] == {
        "InstanceConfigs": [
            {"InstanceCount": 2, "InstanceType": "ml.c5.xlarge", "VolumeSizeInGB": 30},
            {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 30},
        ]
    }
    assert attached.sagemaker_session == account


HYPERPARAMETERS = {"epochs": 3, "rate": 0.1, "name": "a"}
TUNED = {
    "plain": ({}, {}),
    "checkpoints": ({"checkpoint_s3_uri": "s3://b/ckpt"}, {}),
    "autotune": ({}, {"autotune": True}),
    "some kept static": ({}, {"autotune": True, "hyperparameters_to_keep_static": ["epochs", "name"]}),
    "all kept static": ({}, {"autotune": True, "hyperparameters_to_keep_static": list(HYPERPARAMETERS)}),
    "an image without script mode": (
        {"entry_point": None, "source_dir": None},
        {"autotune": True, "hyperparameters_to_keep_static": ["name"]},
    ),
}


@pytest.mark.parametrize(("changes", "arguments"), TUNED.values(), ids=TUNED.keys())
def test_an_attached_tuner_sends_the_same_request_again(tuner, account, code, changes, arguments):
    settings = {"entry_point": "train.py", "source_dir": code, "hyperparameters": HYPERPARAMETERS, **changes}
    metrics = [{"Name": "accuracy", "Regex": "accuracy=(.*)"}]
    estimator = Estimator("registry/img:1", ROLE, 1, "ml.m5.large", sagemaker_session=account, **settings)
    request = Tuner(estimator, "accuracy", {"lr": ContinuousParameter(0, 1)}, metrics, **arguments).request(
        "s3://data/train", job_name="search"
    )
    described = copy.deepcopy({key: each for key, each in request.items() if key != "Tags"})
    # As the service describes it.
    described["TrainingJobDefinition"].setdefault("StaticHyperParameters", {})["_tuning_objective_metric"] = "accuracy"
    account.describes("Completed")
    account.describes("Completed", **described)
    attached = Tuner.attach("search", account)
    assert attached.request("s3://data/train", job_name="search") == request
    assert attached.estimator.checkpoint_s3_uri == changes.get("checkpoint_s3_uri")
    assert not attached.estimator.additional_request_fields


def test_an_attached_tuner_of_several_estimators_has_each(tuner, account):
    both = Tuner.create(
        dict.fromkeys(("one", "two"), tuner.estimator),
        dict.fromkeys(("one", "two"), "accuracy"),
        {"one": {"lr": ContinuousParameter(0, 1)}, "two": {"kind": CategoricalParameter([True, "b"])}},
    )
    request = both.request(job_name="search")
    fields = ("HyperParameterTuningJobConfig", "TrainingJobDefinitions")
    account.describes("Completed")
    account.describes("Completed", **{name: request[name] for name in fields})
    account.describes("Completed", **{name: request[name] for name in fields})
    account.lists(summary(1, 0.7))
    attached = Tuner.attach("search", account)
    assert list(attached.estimator_dict) == ["one", "two"]
    assert attached.hyperparameter_ranges_dict() == both.hyperparameter_ranges_dict()
    assert set(attached.analytics().tuning_ranges) == {"lr", "kind"}
    with pytest.raises(SpecError, match="estimator_dict has several estimators, which have no warm start"):
        attached.identical_dataset_and_algorithm_tuner()
