"""CloudWatch's GetMetricData of jobs of `scriptmode serve`, in each protocol of its clients."""

import io
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import cbor2
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from serve.conftest import TENSORFLOW

from scriptmode.serve import cloudwatch
from scriptmode.serve.aws_json import ApiError
from scriptmode.serve.cloudwatch import CloudWatch
from scriptmode.serve.job_metrics import JobMetrics
from scriptmode.serve.s3_requests import FORM

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
@pytest.mark.parametrize("protocol", ["smithy-rpc-v2-cbor", "json", "query"])
def test_metrics_of_a_job_are_read_in_each_protocol(api, name, protocol, monkeypatch):
    cloudwatch = client_of(api, protocol, monkeypatch)
    now = datetime.now(timezone.utc)
    stats = ("Average", "Maximum", "Minimum", "Sum", "SampleCount")
    span = {"StartTime": now - timedelta(hours=2), "EndTime": now + timedelta(hours=1)}
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
        body = b"Action=GetMetricData&StartTime=2026-01-01T09:00:00&EndTime=2026-01-01T09:00:01Z"
        found = []
        metrics = SimpleNamespace(get_metric_data=lambda arguments: found.append(arguments) or {})
        environ = {"CONTENT_TYPE": FORM, "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
        CloudWatch(metrics, others=None)(environ, lambda *_: None)
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
    statuses = []
    CloudWatch(JobMetrics(None, None), others=None)(environ, lambda status, _: statuses.append(status))
    assert statuses == ["400 Bad Request"]
