"""CloudWatch's metrics of jobs of `scriptmode serve`, in each protocol of its clients."""

import io
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone

import cbor2
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import given, strategies as st
from serve.conftest import TENSORFLOW

from scriptmode_serve._http import cloudwatch
from scriptmode_serve._http.cloudwatch import CloudWatch
from scriptmode_serve._http.s3_requests import FORM
from scriptmode_serve._operations.aws_json import ApiError
from scriptmode_serve._operations.metric_operations import Metrics, MetricValue

TYPES = {"smithy-rpc-v2-cbor": "application/cbor", "json": "application/x-amz-json-1.0", "query": "text/xml"}
NAMESPACE = "/aws/sagemaker/TrainingJobs"


@pytest.fixture(scope="module")
def name(api):
    """A job with three values of a metric, the last without an end of its line."""
    definitions = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    algorithm = {"TrainingInputMode": "File", "TrainingImage": TENSORFLOW, "MetricDefinitions": definitions}
    script = "print('loss=0.5'); print('loss=0.25'); print('loss=0.75', end='')"
    name = api.start(script, AlgorithmSpecification=algorithm)
    assert api.wait(name)["TrainingJobStatus"] == "Completed"
    return name


def query(job, metric="loss", stat="Average", namespace=NAMESPACE):
    dimensions = [{"Name": "TrainingJobName", "Value": job}]
    found = {"Namespace": namespace, "MetricName": metric, "Dimensions": dimensions}
    return {"Id": f"{stat.lower()}_1", "MetricStat": {"Metric": found, "Period": 3600, "Stat": stat}}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", TYPES)
def test_metrics_of_a_job_are_read_in_each_protocol(api, name, protocol, monkeypatch):
    cloudwatch = client_of(api, protocol, monkeypatch)
    stats = ("Average", "Maximum", "Minimum", "Sum", "SampleCount")
    span = span_of_hours()
    queries = [*(query(name, stat=stat) for stat in stats), query(name, metric="other", stat="Average")]
    queries[-1]["Id"] = "other"
    answer = cloudwatch.get_metric_data(MetricDataQueries=queries, **span)
    assert answer["ResponseMetadata"]["HTTPHeaders"]["content-type"] == TYPES[protocol]
    found = {result["Id"]: result for result in answer["MetricDataResults"]}
    values = [found[f"{stat.lower()}_1"]["Values"] for stat in stats]
    assert sum(values[-1]) == 3
    if len(values[0]) == 1:  # not where an hour began between the lines
        assert values == [[0.5], [0.75], [0.25], [1.5], [3.0]]
    assert found["other"]["Values"] == []
    assert {result["StatusCode"] for result in found.values()} == {"Complete"}
    assert abs(found["average_1"]["Timestamps"][0].timestamp() - time.time()) < 7200
    with pytest.raises(ClientError, match="ValidationError.*p99"):
        cloudwatch.get_metric_data(MetricDataQueries=[query(name, stat="p99")], **span)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", TYPES)
def test_statistics_are_read_in_each_protocol(api, name, protocol, monkeypatch):
    cloudwatch = client_of(api, protocol, monkeypatch)
    dimensions = [{"Name": "TrainingJobName", "Value": name}]
    metric = {"Namespace": NAMESPACE, "MetricName": "loss", "Dimensions": dimensions}
    answer = cloudwatch.get_metric_statistics(**metric, **span_of_hours(), Period=86400, Statistics=["Sum", "Maximum"])
    assert answer["ResponseMetadata"]["HTTPHeaders"]["content-type"] == TYPES[protocol]
    assert answer["Label"] == "loss"
    (point,) = answer["Datapoints"]
    assert (point["Sum"], point["Maximum"], point["Unit"], point["Timestamp"].second) == (1.5, 0.75, "None", 0)
    assert "Average" not in point
    for other in ({"MetricName": "other"}, {"Dimensions": [{"Name": "TrainingJobName", "Value": "none"}]}):
        found = cloudwatch.get_metric_statistics(
            **{**metric, **other}, **span_of_hours(), Period=60, Statistics=["Sum"]
        )
        assert found["Datapoints"] == []


def span_of_hours():
    now = datetime.now(timezone.utc)
    return {"StartTime": now - timedelta(hours=2), "EndTime": now + timedelta(hours=1)}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", TYPES)
def test_what_is_not_served_is_refused_and_not_empty(api, name, protocol, monkeypatch):
    cloudwatch = client_of(api, protocol, monkeypatch)
    code = "InvalidAction" if protocol == "query" else "UnknownOperationException"
    with pytest.raises(ClientError, match=f"{code}.*DescribeAlarms of CloudWatch; it has GetMetricData, GetMetricSta"):
        cloudwatch.describe_alarms()
    own = {"MetricName": "loss", "Value": 1.0}
    with pytest.raises(ClientError, match="are the values that jobs print"):
        cloudwatch.put_metric_data(Namespace=NAMESPACE, MetricData=[own])
    both = [query(name), {**query(name, namespace="mine"), "Id": "mine"}]
    with pytest.raises(ClientError, match="of other namespaces; use one for each"):
        cloudwatch.get_metric_data(MetricDataQueries=both, **span_of_hours())


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["json", "query"])  # moto answers a call in CBOR in JSON
def test_metrics_that_a_program_puts_are_kept(api, protocol, monkeypatch):
    cloudwatch = client_of(api, protocol, monkeypatch)
    names = [f"{protocol}-{number}-{'a' * 60}" for number in range(200)]  # a request that botocore compresses
    cloudwatch.put_metric_data(Namespace="mine", MetricData=[{"MetricName": each, "Value": 2.0} for each in names])
    asked = {"Namespace": "mine", "MetricName": names[-1]}
    found = cloudwatch.get_metric_statistics(**asked, **span_of_hours(), Period=86400, Statistics=["Sum"])
    assert [point["Sum"] for point in found["Datapoints"]] == [2.0]


def reading(values):
    """Return what reads a metric of these values for each job."""
    return lambda _: {"loss-0": [MetricValue(*each) for each in values]}


NOON = 1_700_049_600
DAY = 86400


def statistics(values, now=NOON, **changes):
    dimensions = [{"Name": "TrainingJobName", "Value": "job-0"}]
    metric = {"Namespace": NAMESPACE, "MetricName": "loss-0", "Dimensions": dimensions}
    span = {"StartTime": NOON - 3600, "EndTime": NOON, "Period": 60, "Statistics": ["Sum"]}
    operation = Metrics(reading(values), lambda: now).operations["GetMetricStatistics"]
    found = operation({**metric, **span, **changes})["Datapoints"]
    return sorted((point["Timestamp"].timestamp() - NOON, point["Sum"]) for point in found)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [(-120, 3.0), (-60, 4.0)]),
        ({"StartTime": NOON - 61}, [(-120, 3.0), (-60, 4.0)]),
        ({"StartTime": NOON - 60}, [(-60, 4.0)]),
        ({"EndTime": NOON - 60}, [(-120, 3.0)]),
        ({"EndTime": NOON + 1}, [(-120, 3.0), (-60, 4.0), (0, 8.0)]),
        ({"Period": 300}, [(-300, 7.0)]),
        ({"Period": 300, "StartTime": NOON - 421}, [(-180, 7.0)]),
        ({"Period": 10, "StartTime": NOON - 105}, [(-110, 2.0), (-60, 4.0)]),
        ({"Period": 300, "StartTime": NOON - 200, "now": NOON + 16 * DAY}, [(-300, 7.0)]),
        ({"Unit": "Seconds"}, []),
    ],
    ids=[
        "all", "start within a minute", "start included", "end excluded", "end after", "period",
        "periods from the start", "seconds", "old", "unit",
    ],
)  # fmt: skip
def test_the_bounds_of_time_are_those_of_cloudwatch(changes, expected):
    values = [(NOON - 120, 1.0), (NOON - 101, 2.0), (NOON - 60, 4.0), (NOON - 59, float("nan")), (NOON, 8.0)]
    assert statistics(values, **changes) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"EndTime": NOON - 3600}, "InvalidParameterValue: The parameter StartTime must be less"),
        ({"Period": 61}, "InvalidParameterValue: Period is 61"),
        ({"StartTime": NOON - 2 * DAY}, "InvalidParameterCombination: .*up to 2880 datapoints, which exceeds .* 1440"),
        ({"Statistics": []}, "MissingParameter: At least one of Statistics"),
        ({"Statistics": ["p99"]}, "'p99' is not served; those that are: Average"),
        ({"ExtendedStatistics": ["p99"]}, "ExtendedStatistics are not served"),
        ({"Dimensions": [{"Name": "Host", "Value": "job-0/algo-1"}]}, "dimension Host, are not served"),
    ],
)
def test_statistics_that_cloudwatch_or_the_server_refuses_are_refused(changes, message):
    with pytest.raises(ApiError, match=message):
        statistics([], **changes)


def test_an_answer_of_no_values_is_refused():
    span = {"StartTime": NOON - 3600, "EndTime": NOON, "MaxDatapoints": 0}
    with pytest.raises(ApiError, match="ValidationError: MaxDatapoints is 0; it must be at least 1"):
        Metrics(reading([(NOON - 60, 1.0)]), lambda: NOON).operations["GetMetricData"](
            {"MetricDataQueries": [query("job-0", "loss-0")], **span}
        )


@pytest.mark.slow
def test_the_last_values_are_in_the_description(api, name):
    found = api.sagemaker.describe_training_job(TrainingJobName=name)["FinalMetricDataList"]
    assert [(each["MetricName"], each["Value"]) for each in found] == [("loss", 0.75)]


def client_of(api, protocol, monkeypatch):
    """A client of CloudWatch whose model has one protocol alone."""
    import boto3

    session = boto3.Session("test", "test", region_name="us-east-1")
    loader = session._session.get_component("data_loader")
    load = loader.load_service_model

    def changed(service, kind, *rest, **fields):
        found = load(service, kind, *rest, **fields)
        if (service, kind) == ("cloudwatch", "service-2"):
            metadata = {**found["metadata"], "protocol": protocol, "protocols": [protocol]}
            found = {**found, "metadata": metadata}
        return found

    monkeypatch.setattr(loader, "load_service_model", changed)
    return session.client("cloudwatch", endpoint_url=api.server.url, config=Config(retries={"total_max_attempts": 1}))


def test_a_value_that_the_model_does_not_have_is_refused():
    # The decimal 1E+1000000000, in 12 bytes.
    content = b"\xa1fPeriod\xc4\x82\x1a\x3b\x9a\xca\x00\x01"
    assert cbor2.loads(content)["Period"] > 0
    with pytest.raises(ApiError, match="not a map of texts, numbers, times and lists"):
        cloudwatch._parse("application/cbor", content)


@given(st.binary(max_size=40))
def test_other_bytes_than_a_map_are_refused(content):
    with suppress(ApiError):
        assert isinstance(cloudwatch._parse("application/cbor", content), dict)


def test_a_time_without_a_zone_is_of_utc(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        body = b"Action=GetMetricData&Version=2010-08-01&MetricDataQueries.member.1.Id=m&StartTime=2026-01-01T09:00:00&EndTime=2026-01-01T09:00:01Z"
        found = []
        operations = {"GetMetricData": lambda arguments: found.append(arguments) or {}}
        environ = {"CONTENT_TYPE": FORM, "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
        CloudWatch(operations, others=None)(environ, lambda *_: None)
        assert found[0]["EndTime"] - found[0]["StartTime"] == 1
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("period", [b"\xfb\x7f\xf0" + bytes(6), b"\x61x"])
def test_a_request_that_is_not_as_the_model_has_it_is_refused(period):
    """Among them an infinite number, which JSON and CBOR have."""
    statistic = cbor2.dumps({"Stat": "Average", "Metric": {"Namespace": NAMESPACE}})
    query = b"\xa2" + cbor2.dumps("Id") + cbor2.dumps("a") + cbor2.dumps("MetricStat")
    query += bytes([statistic[0] + 1]) + statistic[1:] + cbor2.dumps("Period") + period
    body = b"\xa3" + b"".join(map(cbor2.dumps, ["StartTime", 0, "EndTime", 1, "MetricDataQueries"])) + b"\x81" + query
    environ = {"CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
    environ["PATH_INFO"] = "/service/GraniteServiceVersion20100801/operation/GetMetricData"
    with pytest.raises(ApiError, match="ValidationError: The request is not as the service's model has it"):
        CloudWatch(Metrics(None, time.time).operations, others=None)(environ, None)
