"""Whatever the Amazon SageMaker in memory answers is what botocore's models say the service may answer."""

import pytest
from fakes.output_shapes import problems

from scriptmode.testing import FakeSageMaker, Life

BUCKET = "sagemaker-us-west-2-123456789012"
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
METRIC = {"Namespace": LOG_GROUP, "MetricName": "loss", "Dimensions": [{"Name": "TrainingJobName", "Value": "job-1"}]}
REQUEST = {
    "TrainingJobName": "job-1",
    "AlgorithmSpecification": {"TrainingImage": "registry/tf:2.15", "TrainingInputMode": "File"},
    "RoleArn": "arn:aws:iam::123456789012:role/training",
    "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    "Tags": [{"Key": "a", "Value": "b"}],
    "SessionChainingConfig": {"EnableSessionTagChaining": True},
}
LIVES = {
    "completes": Life.completed(logs={"algo-1": [(0, "one")]}, metrics={"loss": [(0, 1), (90, 0.5)]}),
    "fails": Life.failed("AlgorithmError: no", logs={"algo-1": [(0, "one")]}),
    "has no capacity": Life.out_of_capacity(),
    "is interrupted": Life.interrupted(logs={"algo-1": [(0, "one")]}),
}


def breaches(client, operation, answer):
    """Say everything in an answer that the model of its operation does not have."""
    shape = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[operation]).output_shape
    members = {key: value for key, value in answer.items() if key != "ResponseMetadata"}
    # The model says that an answer always has the artifacts; the service leaves them out until there are some.
    found = members if shape is None else problems(shape, members)
    return [problem for problem in found if problem != "the answer lacks 'ModelArtifacts'"]


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
def test_a_job_is_described_in_the_services_terms_all_its_life(life):
    fake = FakeSageMaker()
    sagemaker = fake.client("sagemaker")
    fake.expect(life)
    sagemaker.create_training_job(**REQUEST)
    for _ in range(60):
        described = sagemaker.describe_training_job(TrainingJobName="job-1")
        assert breaches(sagemaker, "describe_training_job", described) == []
        assert breaches(sagemaker, "list_training_jobs", sagemaker.list_training_jobs()) == []
        fake.clock.advance(20)
    assert described["TrainingJobStatus"] in ("Completed", "Failed")


@pytest.fixture
def fake():
    """An account with one training job, two logged lines, one object and one role."""
    fake = FakeSageMaker()
    fake.expect(LIVES["completes"])
    fake.roles["training"] = REQUEST["RoleArn"]
    fake.objects[f"s3://{BUCKET}/a"] = b"one"
    fake.client("sagemaker").create_training_job(**REQUEST)
    fake.clock.advance(100)
    return fake


def calls(fake):
    """One call of every operation that the fake has, by service and operation."""
    span = {"StartTime": fake.clock.start, "EndTime": fake.clock.wall_time()}
    statistic = {"Metric": METRIC, "Period": 60, "Stat": "Average"}
    job = {"TrainingJobName": "job-1"}
    stream = f"job-1/algo-1-{round(fake.clock.start.timestamp() * 1000)}"
    return {
        ("cloudwatch", "get_metric_data"): {"MetricDataQueries": [{"Id": "m", "MetricStat": statistic}], **span},
        ("cloudwatch", "get_metric_statistics"): {**METRIC, **span, "Period": 60, "Statistics": ["Average", "Sum"]},
        ("iam", "get_role"): {"RoleName": "training"},
        ("logs", "describe_log_groups"): {"logGroupNamePrefix": "/aws/"},
        ("logs", "describe_log_streams"): {"logGroupName": LOG_GROUP, "limit": 1},
        ("logs", "filter_log_events"): {"logGroupName": LOG_GROUP, "filterPattern": "one"},
        ("logs", "get_log_events"): {"logGroupName": LOG_GROUP, "logStreamName": stream},
        ("s3", "create_bucket"): {"Bucket": "new"},
        ("s3", "get_object"): {"Bucket": BUCKET, "Key": "a"},
        ("s3", "head_bucket"): {"Bucket": BUCKET},
        ("s3", "head_object"): {"Bucket": BUCKET, "Key": "a"},
        ("s3", "list_objects_v2"): {"Bucket": BUCKET, "MaxKeys": 1},
        ("s3", "put_object"): {"Bucket": BUCKET, "Key": "b", "Body": b"two"},
        ("sagemaker", "create_training_job"): {**REQUEST, "TrainingJobName": "job-2"},
        ("sagemaker", "describe_training_job"): job,
        ("sagemaker", "list_tags"): {"ResourceArn": fake.arn("sagemaker", "training-job/job-1")},
        ("sagemaker", "list_training_jobs"): {"MaxResults": 1},
        **dict.fromkeys([("sagemaker", "stop_training_job"), ("sagemaker", "update_training_job")], job),
        ("sts", "get_caller_identity"): {},
    }


@pytest.mark.parametrize(("service", "operation"), calls(FakeSageMaker()))
def test_every_answer_is_one_of_the_services(fake, service, operation):
    known = {(service, operation) for service, operations in fake._operations.items() for operation in operations}
    assert known == set(calls(fake))
    client = fake.client(service)
    answer = getattr(client, operation)(**calls(fake)[service, operation])
    assert breaches(client, operation, answer) == []
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    if operation in ("get_log_events", "filter_log_events"):
        (event,) = answer["events"]
        assert event["timestamp"] == round(fake.clock.start.timestamp() * 1000)
