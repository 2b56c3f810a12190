"""The Amazon SageMaker in memory that users' tests stand on: training jobs and what goes wrong with calls."""

import io
import math
import subprocess
import sys
import tarfile
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError, ParamValidationError

from scriptmode.testing import Call, FakeClock, FakeSageMaker, Life, Phase, ServiceError

BUCKET = "sagemaker-us-west-2-123456789012"


def request(name="job-1", count=1, **extra):
    return {
        "TrainingJobName": name,
        "AlgorithmSpecification": {"TrainingImage": "registry/tf:2.15", "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::123456789012:role/training",
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out/"},
        "ResourceConfig": {"InstanceType": "ml.p3.2xlarge", "InstanceCount": count, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        **extra,
    }


@pytest.fixture
def fake():
    return FakeSageMaker()


@pytest.fixture
def sagemaker(fake):
    return fake.client("sagemaker")


@pytest.fixture
def started(fake, sagemaker):
    """Start a job that will live a life; the second it is at is the clock's."""

    def start(life=None, **extra):
        fake.expect(*([] if life is None else [life]))
        sagemaker.create_training_job(**request(**extra))
        return lambda: sagemaker.describe_training_job(TrainingJobName=extra.get("name", "job-1"))

    return start


def code_of(error):
    return error.value.response["Error"]["Code"]


def statuses(description):
    return [transition["Status"] for transition in description["SecondaryStatusTransitions"]]


def test_a_job_goes_through_its_phases_as_time_passes(fake, started):
    describe = started()
    seen = []
    for _ in range(8):
        seen.append((describe()["TrainingJobStatus"], describe()["SecondaryStatus"]))
        fake.clock.sleep(60)
    assert seen == [
        ("InProgress", "Starting"),
        ("InProgress", "Downloading"),
        *[("InProgress", "Training")] * 5,
        ("Completed", "Completed"),
    ]


def test_a_description_tells_the_times_of_the_phases(fake, started):
    describe = started()
    fake.clock.advance(70)
    first, second = describe()["SecondaryStatusTransitions"]
    start = fake.clock.start
    assert first == {
        "Status": "Starting",
        "StartTime": start,
        "EndTime": start + timedelta(seconds=60),
        "StatusMessage": "Launching requested ML instances",
    }
    assert (second["StartTime"], "EndTime" in second) == (start + timedelta(seconds=60), False)
    assert describe()["LastModifiedTime"] == describe()["TrainingStartTime"] == start + timedelta(seconds=60)
    fake.clock.advance(1000)
    ended = describe()
    assert statuses(ended) == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert ended["TrainingEndTime"] == start + timedelta(seconds=390)
    assert (ended["TrainingTimeInSeconds"], ended["BillableTimeInSeconds"]) == (330, 330)


def test_a_description_gives_every_field_of_the_request_back_but_its_tags(started, sagemaker):
    tags = [{"Key": f"key-{number}", "Value": "v"} for number in range(3)]
    extra = {"Tags": tags, "HyperParameters": {"rate": "0.1"}, "Environment": {"A": "b"}}
    described = started(**extra)()
    asked = request(**extra)
    assert {key: described[key] for key in asked if key != "Tags"} == {
        key: value for key, value in asked.items() if key != "Tags"
    }
    assert "Tags" not in described
    described["HyperParameters"]["rate"] = "9"
    assert sagemaker.describe_training_job(TrainingJobName="job-1")["HyperParameters"] == {"rate": "0.1"}


def test_tags_are_listed_page_by_page(started, sagemaker):
    tags = [{"Key": f"key-{number}", "Value": "v"} for number in range(50)]
    arn = started(Tags=tags)()["TrainingJobArn"]
    pages = sagemaker.get_paginator("list_tags").paginate(ResourceArn=arn)
    assert [tag for page in pages for tag in page["Tags"]] == tags
    with pytest.raises(ClientError):
        sagemaker.list_tags(ResourceArn=f"{arn}-2")


@pytest.mark.parametrize(
    ("life", "status", "secondary", "seconds"),
    [
        (Life.completed(training=1000), "Completed", "Completed", 1090),
        (Life.failed("AlgorithmError: no"), "Failed", "Failed", 140),
        (Life.out_of_capacity(), "Failed", "Failed", 600),
        (Life.interrupted(), "Completed", "Completed", 650),
        (Life(ends="Stopped", secondary_status="MaxWaitTimeExceeded"), "Stopped", "MaxWaitTimeExceeded", 390),
    ],
    ids=["completed", "failed", "out of capacity", "interrupted", "stopped"],
)
def test_every_story_ends_as_it_says(fake, started, life, status, secondary, seconds):
    describe = started(life)
    fake.clock.advance(seconds - 1)
    assert describe()["TrainingJobStatus"] == "InProgress"
    fake.clock.advance(1)
    assert (describe()["TrainingJobStatus"], describe()["SecondaryStatus"]) == (status, secondary)
    assert describe().get("FailureReason") == life.failure_reason


def test_a_job_without_capacity_never_trained(fake, started):
    describe = started(Life.out_of_capacity())
    fake.clock.advance(1000)
    assert describe()["FailureReason"].startswith("CapacityError: Unable to provision requested ML compute capacity.")
    assert not {"TrainingStartTime", "TrainingTimeInSeconds", "ModelArtifacts"} & set(describe())


def test_an_interrupted_spot_job_starts_again_and_pays_for_less_than_it_trained(fake, started):
    describe = started(Life.interrupted(), EnableManagedSpotTraining=True)
    fake.clock.advance(1000)
    assert statuses(describe()).count("Starting") == 2
    assert "Interrupted" in statuses(describe())
    assert 0 < describe()["BillableTimeInSeconds"] < describe()["TrainingTimeInSeconds"] == 470


@pytest.mark.parametrize(
    ("condition", "why", "second"),
    [
        ({"MaxRuntimeInSeconds": 100}, "MaxRuntimeExceeded", 160),
        ({"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 3600}, "Completed", 390),
        ({"MaxRuntimeInSeconds": 200, "MaxWaitTimeInSeconds": 200}, "MaxWaitTimeExceeded", 200),
    ],
    ids=["max_run", "neither", "max_wait"],
)
def test_the_limits_of_the_request_stop_the_job(fake, started, condition, why, second):
    describe = started(StoppingCondition=condition)
    fake.clock.advance(second - 1)
    assert describe()["TrainingJobStatus"] == "InProgress"
    fake.clock.advance(1)
    assert describe()["SecondaryStatus"] == why
    assert describe()["TrainingJobStatus"] == ("Completed" if why == "Completed" else "Stopped")


def test_a_stopped_job_is_stopping_first_and_stops_once(fake, started, sagemaker):
    describe = started(Life(phases=(Phase("Training", math.inf),), stop_seconds=20))
    fake.clock.advance(100)
    sagemaker.stop_training_job(TrainingJobName="job-1")
    fake.clock.advance(10)
    sagemaker.stop_training_job(TrainingJobName="job-1")
    assert (describe()["TrainingJobStatus"], describe()["SecondaryStatus"]) == ("Stopping", "Stopping")
    fake.clock.advance(10)
    assert statuses(describe()) == ["Training", "Stopping", "Stopped"]
    with pytest.raises(ClientError, match="because the training job is in status Stopped") as error:
        sagemaker.stop_training_job(TrainingJobName="job-1")
    assert code_of(error) == "ValidationException"


def test_metrics_appear_when_they_are_seen(fake, started):
    describe = started(Life.completed(metrics={"loss": [(100, 0.9), (200, 0.5)]}))
    assert "FinalMetricDataList" not in describe()
    fake.clock.advance(150)
    assert describe()["FinalMetricDataList"] == [
        {"MetricName": "loss", "Value": 0.9, "Timestamp": fake.clock.start + timedelta(seconds=100)}
    ]


def test_the_model_is_in_s3_when_the_job_has_completed(fake, started):
    describe = started(Life.completed(model={"1/saved_model.pb": b"graph"}))
    fake.clock.advance(389)
    assert fake.objects == {}
    fake.clock.advance(1)
    uri = describe()["ModelArtifacts"]["S3ModelArtifacts"]
    assert uri == f"s3://{BUCKET}/out/job-1/output/model.tar.gz"
    with tarfile.open(fileobj=io.BytesIO(fake.objects[uri])) as archive:
        assert archive.extractfile("1/saved_model.pb").read() == b"graph"
    del fake.objects[uri]
    assert fake.objects == {}


def test_a_model_that_is_not_compressed_is_a_folder(fake, started):
    describe = started(OutputDataConfig={"S3OutputPath": "s3://b", "CompressionType": "NONE"})
    fake.clock.advance(1000)
    assert describe()["ModelArtifacts"]["S3ModelArtifacts"] == "s3://b/job-1/output/model/"
    assert list(fake.objects) == ["s3://b/job-1/output/model/model.txt"]


def test_a_failed_job_leaves_no_model(fake, started):
    started(Life.failed("AlgorithmError: no"))
    fake.clock.advance(1000)
    assert fake.objects == {}


@pytest.mark.parametrize(
    ("extra", "code", "text"),
    [
        ({"RoleArn": "admin" * 5}, "ValidationException", "1 validation error detected: RoleArn is"),
        ({"name": "a_b", "RoleArn": "admin" * 5}, "ValidationException", "2 validation errors detected"),
        ({"name": "there"}, "ResourceInUse", "Training job names must be unique within an AWS account and region"),
    ],
    ids=["one field", "two fields", "name taken"],
)
def test_a_request_that_the_service_refuses_is_refused(started, sagemaker, extra, code, text):
    started(name="there")
    with pytest.raises(ClientError, match=text) as error:
        sagemaker.create_training_job(**request(**extra))
    assert code_of(error) == code
    assert error.value.operation_name == "CreateTrainingJob"


def test_a_request_that_boto3_would_not_send_does_not_arrive(fake, sagemaker):
    with pytest.raises(ParamValidationError, match="InstanceCount"):
        sagemaker.create_training_job(**request(count="two"))
    assert fake.calls == []


def test_quotas_count_the_instances_that_run(fake, sagemaker):
    fake.limit("ml.p3.2xlarge", 3)
    sagemaker.create_training_job(**request("first", 2))
    sagemaker.create_training_job(**request("spot", 3, EnableManagedSpotTraining=True))
    with pytest.raises(ClientError) as error:
        sagemaker.create_training_job(**request("second", 2))
    assert code_of(error) == "ResourceLimitExceeded"
    assert (
        "The account-level service limit 'ml.p3.2xlarge for training job usage' is 3 Instances, with current "
        "utilization of 2 Instances and a request delta of 2 Instances."
    ) in str(error.value)
    fake.clock.advance(1000)
    sagemaker.create_training_job(**request("second", 2))


def test_quotas_count_instance_groups(fake, sagemaker):
    fake.limit("ml.m5.large", 2)
    groups = [
        {"InstanceGroupName": name, "InstanceType": "ml.m5.large", "InstanceCount": 2} for name in ("chief", "worker")
    ]
    with pytest.raises(ClientError, match="a request delta of 4 Instances"):
        sagemaker.create_training_job(**request(ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 30}))


def test_a_job_that_is_not_there_is_not_found(sagemaker):
    with pytest.raises(ClientError, match="Requested resource not found") as error:
        sagemaker.describe_training_job(TrainingJobName="none")
    assert code_of(error) == "ValidationException"


def names(answer):
    return [summary["TrainingJobName"] for summary in answer["TrainingJobSummaries"]]


def test_jobs_are_listed_as_asked(fake, sagemaker):
    for number in range(12):
        sagemaker.create_training_job(**request(f"job-{number:02}"))
        fake.clock.advance(60)
    first = sagemaker.list_training_jobs(SortBy="CreationTime", SortOrder="Descending")
    assert names(first)[:2] == ["job-11", "job-10"]
    rest = sagemaker.list_training_jobs(
        SortBy="CreationTime", SortOrder="Descending", NextToken=first["NextToken"], MaxResults=100
    )
    assert (names(rest), "NextToken" in rest) == (["job-01", "job-00"], False)
    pages = sagemaker.get_paginator("list_training_jobs").paginate(StatusEquals="Completed")
    assert [name for page in pages for name in names(page)] == [f"job-{number:02}" for number in range(6)]
    after = fake.clock.start + timedelta(seconds=60)
    assert names(sagemaker.list_training_jobs(CreationTimeAfter=after, NameContains="job-0"))[0] == "job-02"
    assert names(sagemaker.list_training_jobs(CreationTimeBefore=after)) == ["job-00"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"MaxResults": 101}, "Value '101' at 'maxResults' .* less than or equal to 100"),
        ({"StatusEquals": "Done"}, "Value 'Done' at 'statusEquals' .* enum value set"),
        ({"SortBy": "Age", "NameContains": "x" * 64}, "2 validation errors detected"),
        ({"NextToken": "there"}, "The pagination token is invalid"),
    ],
    ids=["too many", "no such status", "two arguments", "no such token"],
)
def test_a_list_that_the_service_refuses_is_refused(sagemaker, arguments, text):
    with pytest.raises(ClientError, match=text) as error:
        sagemaker.list_training_jobs(**arguments)
    assert code_of(error) == "ValidationException"


def test_throttled_calls_succeed_again_after_a_number_of_failures(fake, sagemaker):
    fake.throttle("list_training_jobs", times=2, after=1)
    assert names(sagemaker.list_training_jobs()) == []
    for _ in range(2):
        with pytest.raises(ClientError) as error:
            sagemaker.list_training_jobs()
        assert error.value.response["Error"] == {"Code": "ThrottlingException", "Message": "Rate exceeded"}
    assert names(sagemaker.list_training_jobs()) == []
    assert [call.operation for call in fake.calls] == ["list_training_jobs"] * 4


def test_a_disconnected_call_names_its_endpoint_and_does_nothing(fake, sagemaker):
    fake.disconnect("create_training_job")
    with pytest.raises(EndpointConnectionError, match="https://api.sagemaker.us-west-2.amazonaws.com/"):
        sagemaker.create_training_job(**request())
    assert names(sagemaker.list_training_jobs()) == []


def test_a_call_whose_answer_is_lost_is_done_nevertheless(fake, sagemaker):
    fake.disconnect("create_training_job", answer_lost=True)
    with pytest.raises(ConnectionClosedError):
        sagemaker.create_training_job(**request())
    assert names(sagemaker.list_training_jobs()) == ["job-1"]


@pytest.mark.parametrize(
    ("error", "raised"),
    [(ServiceError("AccessDeniedException", "no"), ClientError), (KeyboardInterrupt(), KeyboardInterrupt)],
    ids=["of the service", "any other"],
)
def test_a_call_raises_an_injected_error(fake, sagemaker, error, raised):
    fake.fault("list_training_jobs", error, service="sagemaker")
    with pytest.raises(raised):
        sagemaker.list_training_jobs()


def test_errors_are_of_the_clients_own_classes(fake, sagemaker, started):
    started()
    with pytest.raises(sagemaker.exceptions.ResourceInUse):
        sagemaker.create_training_job(**request())
    with pytest.raises(fake.client("iam").exceptions.NoSuchEntityException):
        fake.client("iam").get_role(RoleName="none")


def test_calls_are_kept_as_they_were(fake, sagemaker):
    tags = [{"Key": "a", "Value": "b"}]
    sagemaker.create_training_job(**request(Tags=tags))
    tags.clear()
    assert fake.calls == [
        Call("sagemaker", "create_training_job", request(Tags=[{"Key": "a", "Value": "b"}])),
    ]


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda fake: fake.client("dynamodb"), NotImplementedError, "'dynamodb'; it has cloudwatch, iam, logs, s3"),
        (lambda fake: fake.client("logs").put_log_events, NotImplementedError, "'put_log_events'; it has describe"),
        (lambda fake: fake.throttle("get_events"), ValueError, "'get_events' of any service .*get_log_events"),
        (lambda fake: fake.throttle("get_role", service="s3"), ValueError, "'get_role' of s3 "),
        (lambda fake: FakeClock(fake.clock.start.replace(tzinfo=None)), ValueError, "without a time zone"),
        (lambda fake: fake.clock.sleep(-1), ValueError, "a clock cannot go back"),
        (lambda _: Phase("Trainig", 1), ValueError, "'Trainig' is not a status of a job"),
        (lambda _: Phase("Training", -1), ValueError, "lasts -1 s"),
        (lambda _: Life(ends="Finished"), ValueError, "give one of Completed, Failed, Stopped"),
        (lambda _: Life(failure_reason="none"), ValueError, "only Failed has a reason"),
        (lambda _: Life(logs={"algo-1": ["no time"]}), ValueError, r"logs\['algo-1'\] has 'no time'"),
        (lambda _: Life(logs={"algo-1": [(900, "late")]}), ValueError, "let a phase last longer"),
        (lambda _: Life(metrics={"loss": [0.5]}), ValueError, r"metrics\['loss'\] has 0.5"),
    ],
)
def test_invalid_arguments_of_the_fake_are_named(fake, use, error, text):
    with pytest.raises(error, match=text):
        use(fake)


def test_the_clock_keeps_what_was_slept(fake):
    fake.clock.sleep(5)
    fake.clock.advance(10)
    fake.clock.sleep(0.5)
    assert (fake.clock.now(), fake.clock.slept) == (15.5, [5, 0.5])
    assert fake.clock.wall_time() == fake.clock.start + timedelta(seconds=15.5)


def test_importing_the_fake_imports_no_botocore():
    code = "import sys, scriptmode.testing; assert not {'boto3', 'botocore', 'click'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
