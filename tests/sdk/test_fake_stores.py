"""What surrounds training jobs in the Amazon SageMaker in memory: logs, metrics, objects, roles."""

import io
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from scriptmode.testing import FakeSageMaker, Life

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
BUCKET = "sagemaker-us-west-2-123456789012"


@pytest.fixture
def fake():
    return FakeSageMaker()


@pytest.fixture
def s3(fake):
    return fake.client("s3")


@pytest.fixture
def logs(fake):
    return fake.client("logs")


def start(fake, life, name="job-1"):
    fake.expect(life)
    fake.client("sagemaker").create_training_job(
        TrainingJobName=name,
        AlgorithmSpecification={"TrainingImage": "registry/tf:2.15", "TrainingInputMode": "File"},
        RoleArn="arn:aws:iam::123456789012:role/training",
        OutputDataConfig={"S3OutputPath": "s3://out"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 30},
        StoppingCondition={"MaxRuntimeInSeconds": 3600},
    )


def code_of(error):
    return error.value.response["Error"]["Code"]


def stream_names(logs, prefix="job-1/"):
    pages = logs.get_paginator("describe_log_streams").paginate(logGroupName=LOG_GROUP, logStreamNamePrefix=prefix)
    return [stream["logStreamName"] for page in pages for stream in page["logStreams"]]


def pages_of(logs, stream, token=None):
    """Read a stream until its token stays; give the lines of each page, and the token."""
    pages = []
    while True:
        arguments = {"logGroupName": LOG_GROUP, "logStreamName": stream, "startFromHead": True}
        page = logs.get_log_events(**arguments, **({} if token is None else {"nextToken": token}))
        pages.append([event["message"] for event in page["events"]])
        if page["nextForwardToken"] == token:
            return pages, token
        token = page["nextForwardToken"]


def test_a_stream_is_there_from_its_hosts_first_line_on(fake, logs):
    start(fake, Life.completed(logs={"algo-1": [(90, "one")], "algo-2": [(100, "two")]}))
    with pytest.raises(ClientError, match="The specified log group does not exist") as error:
        stream_names(logs)
    assert code_of(error) == "ResourceNotFoundException"
    fake.clock.advance(90)
    epoch = round((fake.clock.start.timestamp() + 90) * 1000)
    assert stream_names(logs) == [f"job-1/algo-1-{epoch}"]
    fake.clock.advance(10)
    assert stream_names(logs) == [f"job-1/algo-1-{epoch}", f"job-1/algo-2-{epoch + 10_000}"]
    assert stream_names(logs, "job-2/") == []


def test_a_stream_that_is_not_there_is_not_found(fake, logs):
    start(fake, Life.completed(logs={"algo-1": [(0, "one")]}))
    with pytest.raises(logs.exceptions.ResourceNotFoundException, match="The specified log stream does not exist"):
        pages_of(logs, "job-1/algo-2-0")
    with pytest.raises(logs.exceptions.InvalidParameterException):
        pages_of(logs, stream_names(logs)[0], token="1")
    for refused in ({"limit": 51}, {"nextToken": "there"}, {"orderBy": "Age"}):
        with pytest.raises(logs.exceptions.InvalidParameterException):
            logs.describe_log_streams(logGroupName=LOG_GROUP, **refused)


def test_lines_come_once_and_the_token_stays_while_nothing_is_new(fake, logs):
    start(fake, Life.completed(logs={"algo-1": [(90, "a"), (90, "b"), (100, "c"), (110, "d")]}))
    fake.clock.advance(100)
    fake.page_lines = 2
    (stream,) = stream_names(logs)
    pages, token = pages_of(logs, stream)
    assert pages == [["a", "b"], ["c"], []]
    assert pages_of(logs, stream, token) == ([[]], token)
    fake.clock.advance(10)
    assert pages_of(logs, stream, token)[0] == [["d"], []]


def test_pages_may_be_empty_although_more_follows(fake, logs):
    start(fake, Life.completed(logs={"algo-1": [(0, "a"), (0, "b")]}))
    fake.page_lines, fake.empty_log_pages = 1, 2
    assert pages_of(logs, stream_names(logs)[0])[0] == [[], [], ["a"], [], [], ["b"], []]


def test_a_stream_is_read_from_its_end_backwards_too(fake, logs):
    start(fake, Life.completed(logs={"algo-1": [(number, str(number)) for number in range(5)]}))
    fake.clock.advance(10)
    arguments = {"logGroupName": LOG_GROUP, "logStreamName": stream_names(logs)[0], "limit": 3}
    last = logs.get_log_events(**arguments)
    before = logs.get_log_events(**arguments, nextToken=last["nextBackwardToken"])
    assert [[event["message"] for event in page["events"]] for page in (last, before)] == [["2", "3", "4"], ["0", "1"]]
    assert logs.get_log_events(**arguments, nextToken=before["nextBackwardToken"])["events"] == []


def test_events_are_found_by_time(fake, logs):
    start(fake, Life.completed(logs={"algo-1": [(number, str(number)) for number in range(5)]}))
    fake.clock.advance(10)
    epoch = round(fake.clock.start.timestamp() * 1000)
    page = logs.get_log_events(
        logGroupName=LOG_GROUP, logStreamName=stream_names(logs)[0], startTime=epoch + 1000, endTime=epoch + 3000
    )
    assert [event["message"] for event in page["events"]] == ["1", "2"]
    assert page["events"][0]["timestamp"] == epoch + 1000


def test_lines_reach_cloudwatch_late_even_after_the_jobs_end(fake, logs):
    start(fake, Life.failed("AlgorithmError: no", logs={"algo-1": [(90, "one"), (140, "last")]}))
    fake.log_delay = 20
    fake.clock.advance(140)
    (stream,) = stream_names(logs)
    assert pages_of(logs, stream)[0] == [["one"], []]
    fake.clock.advance(20)
    assert pages_of(logs, stream)[0] == [["one", "last"], []]


def test_a_stopped_job_writes_no_more(fake, logs):
    start(fake, Life.completed(logs={"algo-1": [(90, "one"), (125, "saving"), (200, "never")]}))
    fake.clock.advance(100)
    fake.client("sagemaker").stop_training_job(TrainingJobName="job-1")
    fake.clock.advance(1000)
    assert pages_of(logs, stream_names(logs)[0])[0] == [["one", "saving"], []]


def test_two_hundred_streams_come_in_pages_of_fifty(fake, logs):
    start(fake, Life.completed(logs={f"algo-{number}": [(0, "one"), (1, "two")] for number in range(1, 201)}))
    fake.clock.advance(10)
    pages = list(
        logs.get_paginator("describe_log_streams").paginate(logGroupName=LOG_GROUP, logStreamNamePrefix="job-1/")
    )
    assert [len(page["logStreams"]) for page in pages] == [50] * 4
    lines = [pages_of(logs, stream["logStreamName"])[0] for page in pages for stream in page["logStreams"]]
    assert lines == [[["one", "two"], []]] * 200


def query(metric="loss", period=60, stat="Average", job="job-1"):
    dimensions = [{"Name": "TrainingJobName", "Value": job}]
    asked = {"Namespace": LOG_GROUP, "MetricName": metric, "Dimensions": dimensions}
    return {"Id": metric, "MetricStat": {"Metric": asked, "Period": period, "Stat": stat}}


def data(fake, *queries, **extra):
    span = {"StartTime": fake.clock.start, "EndTime": fake.clock.wall_time() + timedelta(seconds=1)}
    answer = fake.client("cloudwatch").get_metric_data(MetricDataQueries=list(queries), **span, **extra)
    return [result["Values"] for result in answer["MetricDataResults"]], answer.get("NextToken")


@pytest.fixture
def measured(fake):
    """An account whose job has measured its loss three times by now."""
    start(fake, Life.completed(metrics={"loss": [(90, 4.0), (100, 2.0), (150, 1.0), (300, 0.5)]}))
    fake.clock.advance(200)
    return fake


def test_metrics_are_grouped_by_period_newest_first(measured):
    assert data(measured, query(period=60)) == ([[1.0, 3.0]], None)
    assert data(measured, query(period=1), ScanBy="TimestampAscending") == ([[4.0, 2.0, 1.0]], None)
    assert data(measured, query(stat="Maximum"), query("accuracy"), query(job="other")) == ([[1.0, 4.0], [], []], None)


def test_metric_data_comes_in_pages(measured):
    queries = (query(period=1), query(period=60, stat="Sum"))
    pages = [data(measured, *queries, MaxDatapoints=2)]
    while pages[-1][1] is not None:
        pages.append(data(measured, *queries, MaxDatapoints=2, NextToken=pages[-1][1]))
    assert [values for values, _ in pages] == [[[1.0, 2.0], []], [[4.0], [1.0]], [[], [6.0]]]


def test_old_metrics_are_kept_by_the_minute(measured):
    measured.clock.advance(4 * 3600)
    assert data(measured, query(period=1))[0] == [[]]
    assert data(measured, query(period=60))[0] == [[0.5, 1.0, 3.0]]


def test_metric_statistics_have_the_requested_statistics(measured):
    asked = query()["MetricStat"]["Metric"]
    span = {"StartTime": measured.clock.start, "EndTime": measured.clock.wall_time()}
    answer = measured.client("cloudwatch").get_metric_statistics(
        **asked, **span, Period=3600, Statistics=["Average", "SampleCount"]
    )
    assert answer["Datapoints"] == [
        {"Timestamp": measured.clock.start, "Unit": "None", "Average": pytest.approx(7 / 3), "SampleCount": 3.0}
    ]


def test_objects_are_put_found_and_listed(fake, s3):
    s3.put_object(Bucket=BUCKET, Key="a/1", Body=b"one", ServerSideEncryption="aws:kms", SSEKMSKeyId="key")
    s3.put_object(Bucket=BUCKET, Key="a/2", Body=io.BytesIO(b"two"))
    fake.objects[f"s3://{BUCKET}/b"] = b"three"
    assert fake.objects[f"s3://{BUCKET}/a/1"] == b"one"
    assert fake.calls[0].arguments["SSEKMSKeyId"] == "key"
    assert s3.head_object(Bucket=BUCKET, Key="b")["ContentLength"] == 5
    with s3.get_object(Bucket=BUCKET, Key="a/2")["Body"] as body:
        assert body.read() == b"two"
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, PaginationConfig={"PageSize": 2})
    assert [[(item["Key"], item["Size"]) for item in page["Contents"]] for page in pages] == [
        [("a/1", 3), ("a/2", 3)],
        [("b", 5)],
    ]
    assert "Contents" not in s3.list_objects_v2(Bucket=BUCKET, Prefix="c")


def test_an_object_may_be_put_only_where_there_is_none(s3):
    s3.put_object(Bucket=BUCKET, Key="a", Body=b"one", IfNoneMatch="*")
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=BUCKET, Key="a", Body=b"two", IfNoneMatch="*")
    assert code_of(error) == "PreconditionFailed"


def test_files_are_uploaded_and_downloaded(fake, s3, tmp_path):
    (tmp_path / "a b").write_bytes(b"one")
    s3.upload_file(str(tmp_path / "a b"), BUCKET, "a", ExtraArgs={"ServerSideEncryption": "AES256"})
    s3.upload_fileobj(io.BytesIO(b"two"), BUCKET, "b")
    assert fake.calls[0].arguments["ServerSideEncryption"] == "AES256"
    s3.download_file(BUCKET, "a", str(tmp_path / "copy"))
    file = io.BytesIO()
    s3.download_fileobj(Bucket=BUCKET, Key="b", Fileobj=file)
    assert ((tmp_path / "copy").read_bytes(), file.getvalue()) == (b"one", b"two")


@pytest.mark.parametrize(
    ("operation", "arguments", "code"),
    [
        ("head_object", {"Bucket": BUCKET, "Key": "none"}, "404"),
        ("get_object", {"Bucket": BUCKET, "Key": "none"}, "NoSuchKey"),
        ("put_object", {"Bucket": "none", "Key": "a", "Body": b""}, "NoSuchBucket"),
        ("list_objects_v2", {"Bucket": "none"}, "NoSuchBucket"),
        ("head_bucket", {"Bucket": "none"}, "404"),
        ("put_object", {"Bucket": "theirs", "Key": "a", "ExpectedBucketOwner": "123456789012"}, "AccessDenied"),
        ("head_bucket", {"Bucket": "theirs", "ExpectedBucketOwner": "123456789012"}, "403"),
        ("create_bucket", {"Bucket": "theirs"}, "BucketAlreadyExists"),
        ("create_bucket", {"Bucket": BUCKET}, "BucketAlreadyOwnedByYou"),
    ],
)
def test_s3_refuses_as_s3_does(fake, s3, operation, arguments, code):
    fake.buckets["theirs"] = "999999999999"
    with pytest.raises(ClientError) as error:
        getattr(s3, operation)(**arguments)
    assert code_of(error) == code


def test_a_bucket_is_there_once_it_is_created_or_has_an_object(fake, s3):
    s3.create_bucket(Bucket="mine", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    fake.objects["s3://data/train"] = b""
    for bucket in ("mine", "data", BUCKET):
        s3.head_bucket(Bucket=bucket, ExpectedBucketOwner="123456789012")


def test_roles_and_the_callers_identity_are_returned(fake):
    fake.roles["training"] = "arn:aws:iam::123456789012:role/service-role/training"
    role = fake.client("iam").get_role(RoleName="training")["Role"]
    assert (role["Arn"], role["Path"]) == (fake.roles["training"], "/service-role/")
    assert fake.client("sts").get_caller_identity()["Account"] == "123456789012"
