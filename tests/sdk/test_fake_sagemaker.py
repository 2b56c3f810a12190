"""The Amazon SageMaker in memory that users' tests stand on: training jobs, logs, metrics, objects and faults."""

import io
import math
import pickle
import subprocess
import sys
import tarfile
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError, ParamValidationError

from scriptmode.testing import FakeSageMaker, Life, Phase, ServiceError

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
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
    def start(life=None, **extra):
        fake.expect(*([] if life is None else [life]))
        sagemaker.create_training_job(**request(**extra))
        return lambda: sagemaker.describe_training_job(TrainingJobName=extra.get("name", "job-1"))

    return start


def code_of(error):
    return error.value.response["Error"]["Code"]


def statuses(description):
    return [transition["Status"] for transition in description["SecondaryStatusTransitions"]]


def test_a_description_tells_the_times_of_the_phases(fake, started):
    describe = started()
    fake.clock.advance(70)
    first, second = describe()["SecondaryStatusTransitions"]
    start = fake.clock.start
    assert first == {
        "Status": "Starting", "StartTime": start, "EndTime": start + timedelta(seconds=60),
        "StatusMessage": "Launching requested ML instances",
    }  # fmt: skip
    assert (second["StartTime"], "EndTime" in second) == (start + timedelta(seconds=60), False)
    assert describe()["LastModifiedTime"] == describe()["TrainingStartTime"] == start + timedelta(seconds=60)
    fake.clock.advance(1000)
    ended = describe()
    assert statuses(ended) == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert ended["TrainingEndTime"] == start + timedelta(seconds=390)
    assert (ended["TrainingTimeInSeconds"], ended["BillableTimeInSeconds"]) == (330, 330)


def test_a_description_is_the_request_without_its_tags_which_are_listed_page_by_page(started, sagemaker):
    extra = {"HyperParameters": {"rate": "0.1"}, "Environment": {"A": "b"}}
    tags = [{"Key": f"key-{number:02}", "Value": "v"} for number in range(50)]
    described = started(**extra, Tags=tags)()
    assert described.items() >= request(**extra).items()
    assert "Tags" not in described
    described["HyperParameters"]["rate"] = "9"
    assert sagemaker.describe_training_job(TrainingJobName="job-1")["HyperParameters"] == {"rate": "0.1"}
    pages = sagemaker.get_paginator("list_tags").paginate(ResourceArn=described["TrainingJobArn"])
    assert [tag for page in pages for tag in page["Tags"]] == tags
    with pytest.raises(ClientError):
        sagemaker.list_tags(ResourceArn=f"{described['TrainingJobArn']}-2")


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


def test_the_model_is_in_s3_when_the_job_has_completed(fake, started):
    describe = started(Life.completed(model={"1/saved_model.pb": b"graph"}))
    fake.clock.advance(389)
    assert fake.objects == {}
    fake.clock.advance(1)
    uri = describe()["ModelArtifacts"]["S3ModelArtifacts"]
    assert uri == f"s3://{BUCKET}/out/job-1/output/model.tar.gz"
    with tarfile.open(fileobj=io.BytesIO(fake.objects.pop(uri))) as archive:
        assert archive.extractfile("1/saved_model.pb").read() == b"graph"
    started(name="job-2", OutputDataConfig={"S3OutputPath": "s3://b", "CompressionType": "NONE"})
    started(Life.failed("AlgorithmError: no"), name="job-3")
    fake.clock.advance(1000)
    assert list(fake.objects) == ["s3://b/job-2/output/model/model.txt"]


@pytest.mark.parametrize(
    ("extra", "code", "text"),
    [
        ({"RoleArn": "admin" * 5}, "ValidationException", "1 validation error detected: Value .* at 'roleArn'"),
        ({"name": "a_b", "RoleArn": "admin" * 5}, "ValidationException", "2 validation errors detected"),
        ({"EnableManagedSpotTraining": True}, "ValidationException", "Invalid MaxWaitTimeInSeconds. It must be"),
        ({"name": "there"}, "ResourceInUse", "Training job names must be unique within an AWS account and region"),
    ],
    ids=["one field", "two fields", "fields that exclude each other", "name taken"],
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
    fake.quotas["ml.p3.2xlarge"] = 3
    sagemaker.create_training_job(**request("first", 2))
    limits = {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 3600}
    sagemaker.create_training_job(**request("spot", 3, EnableManagedSpotTraining=True, StoppingCondition=limits))
    with pytest.raises(ClientError) as error:
        sagemaker.create_training_job(**request("second", 2))
    assert code_of(error) == "ResourceLimitExceeded"
    assert (
        "The account-level service limit 'ml.p3.2xlarge for training job usage' is 3 Instances, with current "
        "utilization of 2 Instances and a request delta of 2 Instances."
    ) in str(error.value)
    fake.clock.advance(1000)
    sagemaker.create_training_job(**request("second", 2))


def names(answer):
    return [summary["TrainingJobName"] for summary in answer["TrainingJobSummaries"]]


def test_a_list_that_the_service_refuses_is_refused(sagemaker):
    with pytest.raises(ClientError, match="2 validation errors detected") as error:
        sagemaker.list_training_jobs(SortBy="Age", NameContains="x" * 64)
    assert code_of(error) == "ValidationException"


@pytest.mark.parametrize(
    ("answer_lost", "error", "created"),
    [(False, EndpointConnectionError, []), (True, ConnectionClosedError, ["job-1"])],
    ids=["not connected", "answer lost"],
)
def test_a_call_that_is_disconnected_is_done_only_if_the_answer_is_lost(fake, sagemaker, answer_lost, error, created):
    fake.disconnect("create_training_job", answer_lost=answer_lost)
    with pytest.raises(error, match="https://api.sagemaker.us-west-2.amazonaws.com/"):
        sagemaker.create_training_job(**request())
    assert names(sagemaker.list_training_jobs()) == created


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda fake: fake.client("dynamodb"), NotImplementedError, "'dynamodb'; it has cloudwatch, iam, logs, s3"),
        (lambda fake: fake.client("logs").put_log_events(), NotImplementedError, "'put_log_events'; it has describe"),
        (
            lambda fake: fake.client("s3").put_object(Bucket=BUCKET, Key="a", Body=b"", IfNoneMatch="*"),
            NotImplementedError,
            "the fake 's3' client has no IfNoneMatch",
        ),
        (lambda fake: fake.throttle("get_events"), ValueError, "'get_events' of any service .*get_log_events"),
        (lambda fake: fake.throttle("get_role", service="s3"), ValueError, "'get_role' of s3 "),
        (lambda _: Phase("Trainig", 1), ValueError, "'Trainig' is not a status of a job"),
        (lambda _: Life(ends="Finished"), ValueError, "give one of Completed, Failed, Stopped"),
        (lambda _: Life(logs={"algo-1": [(900, "late")]}), ValueError, "let a phase last longer"),
    ],
)
def test_invalid_arguments_of_the_fake_are_named(fake, use, error, text):
    with pytest.raises(error, match=text):
        use(fake)


def test_importing_the_fake_imports_no_botocore():
    code = "import sys, scriptmode.testing; assert not {'boto3', 'botocore', 'click'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def stream_name(logs):
    (stream,) = logs.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix="job-1/")["logStreams"]
    return stream["logStreamName"]


def test_a_stream_that_is_not_there_is_not_found(fake, started):
    started(Life.completed(logs={"algo-1": [(0, "one")]}))
    logs = fake.client("logs")
    with pytest.raises(logs.exceptions.ResourceNotFoundException, match="The specified log stream does not exist"):
        logs.get_log_events(logGroupName=LOG_GROUP, logStreamName="job-1/algo-2-0")
    with pytest.raises(logs.exceptions.InvalidParameterException):
        logs.get_log_events(logGroupName=LOG_GROUP, logStreamName=stream_name(logs), nextToken="1")
    for refused in ({"limit": 51}, {"nextToken": "there"}, {"orderBy": "Age"}):
        with pytest.raises(logs.exceptions.InvalidParameterException):
            logs.describe_log_streams(logGroupName=LOG_GROUP, **refused)


def query(metric="loss", period=60, stat="Average", job="job-1"):
    dimensions = [{"Name": "TrainingJobName", "Value": job}]
    asked = {"Namespace": LOG_GROUP, "MetricName": metric, "Dimensions": dimensions}
    return {"Id": metric, "MetricStat": {"Metric": asked, "Period": period, "Stat": stat}}


def data(fake, *queries, **extra):
    span = {"StartTime": fake.clock.start, "EndTime": fake.clock.wall_time() + timedelta(seconds=1)}
    answer = fake.client("cloudwatch").get_metric_data(MetricDataQueries=list(queries), **span, **extra)
    assert "NextToken" not in answer
    return [result["Values"] for result in answer["MetricDataResults"]]


def test_what_the_operations_do_not_have_is_not_implemented_and_needs_no_package_of_the_server(fake):
    for unknown in ({**query(), "MetricStat": {**query()["MetricStat"], "Stat": "p9"}}, {"Id": "a", "Expression": "b"}):
        with pytest.raises(NotImplementedError, match="the fake 'cloudwatch' client: "):
            data(fake, unknown)
    code = (
        "import sys; from scriptmode.testing import FakeSageMaker; FakeSageMaker();"
        "assert not {'cbor2', 'moto', 'waitress', 'botocore.session'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_lines_are_filtered_and_have_the_time_at_which_the_service_has_them(fake, started):
    started(Life.completed(logs={"algo-1": [(1, "loss 1"), (2, "other"), (3, "loss 2"), (9, "loss 3")]}))
    fake.log_delay = 5
    fake.clock.advance(10)
    events = fake.client("logs").filter_log_events(logGroupName=LOG_GROUP, filterPattern="loss")["events"]
    assert [event["message"] for event in events] == ["loss 1", "loss 2"]
    assert {event["ingestionTime"] - event["timestamp"] for event in events} == {5000}


def test_files_are_uploaded_downloaded_and_listed(fake, tmp_path):
    s3 = fake.client("s3")
    (tmp_path / "a b").write_bytes(b"one")
    s3.upload_file(str(tmp_path / "a b"), BUCKET, "a", ExtraArgs={"ServerSideEncryption": "AES256"})
    s3.put_object(Bucket=BUCKET, Key="b", Body=b"two")
    assert fake.calls[0].arguments["ServerSideEncryption"] == "AES256"
    s3.download_file(BUCKET, "a", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == b"one"
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, PaginationConfig={"PageSize": 1})
    assert [[(item["Key"], item["Size"]) for item in page["Contents"]] for page in pages] == [[("a", 3)], [("b", 3)]]


@pytest.mark.parametrize(
    ("operation", "arguments", "code"),
    [
        ("head_object", {"Bucket": BUCKET, "Key": "none"}, "404"),
        ("get_object", {"Bucket": BUCKET, "Key": "none"}, "NoSuchKey"),
        ("put_object", {"Bucket": "none", "Key": "a", "Body": b""}, "NoSuchBucket"),
        ("put_object", {"Bucket": "theirs", "Key": "a", "ExpectedBucketOwner": "123456789012"}, "AccessDenied"),
        ("head_bucket", {"Bucket": "theirs", "ExpectedBucketOwner": "123456789012"}, "403"),
        ("create_bucket", {"Bucket": "theirs"}, "BucketAlreadyExists"),
        ("create_bucket", {"Bucket": BUCKET}, "BucketAlreadyOwnedByYou"),
    ],
)
def test_s3_refuses_as_s3_does(fake, operation, arguments, code):
    fake.buckets["theirs"] = "999999999999"
    with pytest.raises(ClientError) as error:
        getattr(fake.client("s3"), operation)(**arguments)
    assert code_of(error) == code


def test_an_error_of_a_service_can_be_sent_to_another_process():
    found = pickle.loads(pickle.dumps(ServiceError("NoSuchKey", "There is no such key.", 404)))
    assert (found.code, found.message, found.status) == ("NoSuchKey", "There is no such key.", 404)
    assert str(found) == "NoSuchKey: There is no such key."
