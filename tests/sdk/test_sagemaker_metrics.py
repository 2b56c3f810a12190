"""A job's metrics on Amazon SageMaker: CloudWatch's values by the minute, as a table."""

from datetime import datetime, timedelta, timezone

import pytest
from fakes.sagemaker_jobs import started

from scriptmode import TransientError
from scriptmode.aws.session import Connection
from scriptmode.platforms.sagemaker.cloudwatch_metrics import read_metrics
from scriptmode.testing import FakeSageMaker, Life

BEGIN = datetime(2026, 1, 5, 9, 0, tzinfo=timezone.utc)


def defined(*names):
    return [{"Name": name, "Regex": f"{name}=(.*)"} for name in names]


def rows_of(job):
    return [(row["metric_name"], round(row["value"], 6)) for row in job.metrics()]


def test_metrics_are_a_table_as_they_were_defined_and_in_order_of_time():
    metrics = {"loss": [(100, 0.9), (110, 0.7), (170, 0.5)], "accuracy": [(170, 0.8)]}
    _, job = started(Life.completed(metrics=metrics), metric_definitions=defined("loss", "accuracy"))
    job.wait()
    assert rows_of(job) == [("loss", 0.8), ("loss", 0.5), ("accuracy", 0.8)]
    rows = job.metrics()
    assert [row["timestamp"] for row in rows] == [BEGIN + timedelta(minutes=minute) for minute in (1, 2, 2)]
    assert all(list(row) == ["metric_name", "value", "timestamp", "host"] for row in rows)
    assert {row["host"] for row in rows} == {None}


def test_a_job_that_goes_on_tells_what_it_has():
    metrics = {"loss": [(100, 0.9), (170, 0.5)]}
    fake, job = started(Life.completed(metrics=metrics), metric_definitions=defined("loss"))
    assert job.metrics() == []
    fake.clock.advance(130)
    assert rows_of(job) == [("loss", 0.9)]


def test_a_job_without_metrics_sends_no_request():
    fake, job = started(Life.completed())
    job.wait()
    fake.calls.clear()
    assert job.metrics() == []
    assert [call.operation for call in fake.calls] == ["describe_training_job"]


def test_a_metric_that_cloudwatch_keeps_no_more_leaves_its_last_value():
    fake, job = started(Life.completed(metrics={"loss": [(100, 0.9), (170, 0.5)]}), metric_definitions=defined("loss"))
    job.wait()
    fake.clock.advance(timedelta(days=500).total_seconds())
    assert rows_of(job) == [("loss", 0.5)]
    assert job.metrics()[0]["timestamp"] == BEGIN + timedelta(seconds=170)


@pytest.mark.parametrize(("days", "values"), [(1, [0.8, 0.5]), (20, [0.7]), (100, [0.7]), (500, [0.5])])
def test_an_older_jobs_metrics_are_coarser_and_at_last_the_final_value(days, values):
    fake, job = started(
        Life.completed(metrics={"loss": [(100, 0.9), (110, 0.7), (170, 0.5)]}), metric_definitions=defined("loss")
    )
    job.wait()
    fake.clock.advance(timedelta(days=days).total_seconds())
    assert [value for _, value in rows_of(job)] == pytest.approx(values)


def test_a_metric_that_only_the_service_defined_is_there_too():
    description = {
        "TrainingJobName": "job-1",
        "CreationTime": BEGIN,
        "LastModifiedTime": BEGIN,
        "AlgorithmSpecification": {"MetricDefinitions": defined("loss")},
        "FinalMetricDataList": [{"MetricName": "train:error", "Value": 0.0, "Timestamp": BEGIN}],
    }
    found = read_metrics(description, Connection(FakeSageMaker()))
    assert [(metric.name, metric.value, metric.timestamp) for metric in found] == [("train:error", 0.0, BEGIN)]


@pytest.mark.slow
def test_more_values_than_an_answer_holds_are_read_to_their_ends():
    names = [f"metric-{number}" for number in range(21)]
    minutes = 5000  # 105,000 values; an answer holds 100,800
    metrics = {name: [(120 + 60 * minute, minute) for minute in range(minutes)] for name in names}
    life = Life.completed(training=60 * minutes + 120, metrics=metrics)
    fake, job = started(life, metric_definitions=defined(*names), max_run=400_000)
    fake.clock.advance(life.seconds)
    assert rows_of(job) == [(name, minute) for name in names for minute in range(minutes)]
    assert sum(call.operation == "get_metric_data" for call in fake.calls) == 2


def test_more_metrics_than_one_call_allows_need_several_calls():
    names = [f"metric-{number}" for number in range(1201)]
    fake = FakeSageMaker()
    description = {
        "TrainingJobName": "job-1",
        "CreationTime": BEGIN,
        "LastModifiedTime": BEGIN,
        "AlgorithmSpecification": {"MetricDefinitions": defined(*names)},
    }
    assert read_metrics(description, Connection(fake)) == []
    asked = [call.arguments["MetricDataQueries"] for call in fake.calls]
    assert [len(queries) for queries in asked] == [500, 500, 201]
    assert [query["MetricStat"]["Metric"]["MetricName"] for queries in asked for query in queries] == names


def test_a_refused_call_names_the_job():
    fake, job = started(Life.completed(metrics={"loss": [(100, 0.9)]}), metric_definitions=defined("loss"))
    job.wait()
    fake.throttle("get_metric_data")
    with pytest.raises(TransientError, match="the metrics of job-1: Rate exceeded"):
        job.metrics()
