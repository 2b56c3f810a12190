"""The logs of a job on Amazon SageMaker, whatever the network does, and its metrics: CloudWatch's values by the minute."""

from datetime import datetime, timedelta, timezone

import pytest
from fakes.sagemaker_jobs import started

from scriptmode import CredentialsError, TransientError
from scriptmode._core.aws.session import Connection
from scriptmode._core.platforms.sagemaker.cloudwatch_logs import LogTail
from scriptmode._core.platforms.sagemaker.cloudwatch_metrics import read_metrics
from scriptmode.testing import FakeSageMaker, Life, ServiceError


def lines_of(host, count, *, first=100.0, step=1.0):
    return [(first + number * step, f"{host} line {number}") for number in range(count)]


def by_host(events):
    found = {}
    for event in events:
        found.setdefault(event.host, []).append(event.message)
    return found


def expected(logs):
    return {host: [text for _, text in lines] for host, lines in logs.items()}


@pytest.mark.parametrize("operation", ["get_log_events", "describe_log_streams", "describe_training_job"])
@pytest.mark.parametrize("fault", ["throttle", "disconnect"])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_no_line_is_lost_or_doubled_by_throttling_and_lost_connections(operation, fault, after):
    logs = {"algo-1": lines_of("algo-1", 40), "algo-2": lines_of("algo-2", 40)}
    fake, job = started(Life.completed(logs=logs), instance_count=2)
    fake.page_lines = 3
    getattr(fake, fault)(operation, times=6, after=after)
    assert by_host(job.logs(follow=True)) == expected(logs)


def test_a_refused_client_asks_less_and_less_often():
    fake, job = started(Life.completed(logs={"algo-1": lines_of("algo-1", 3)}))
    fake.throttle("get_log_events", times=7)
    list(job.logs(follow=True))
    slept = [round(seconds, 6) for seconds in fake.clock.slept]
    begin = next(index for index, seconds in enumerate(slept) if seconds not in (3.0, 2.0))
    pauses = slept[begin : begin + 7]
    assert all(0.25 * 2**turn <= seconds <= 15 for turn, seconds in enumerate(pauses[:5]))
    assert all(7.5 <= seconds <= 15 for seconds in pauses[5:])
    assert set(slept[begin + 7 :]) <= {3.0, 2.0}


TROUBLES = {
    "answers without lines": lambda fake: vars(fake).update(page_lines=4, empty_log_pages=2),
    "lines that come after the end": lambda fake: vars(fake).update(log_delay=1.5),
    "a deleted stream": lambda fake: fake.fault(
        "get_log_events", ServiceError("ResourceNotFoundException", "The log stream does not exist."), 3
    ),
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_every_line_is_read_in_spite_of(trouble):
    logs = {"algo-1": lines_of("algo-1", 20), "algo-2": [*lines_of("algo-2", 5), (389.5, "last words")]}
    fake, job = started(Life.completed(logs=logs), instance_count=2)
    trouble(fake)
    assert by_host(job.logs(follow=True)) == expected(logs)


@pytest.mark.slow
@pytest.mark.parametrize("follow", [False, True])
def test_answers_without_lines_and_without_an_end_are_left_alone(follow):
    # As CloudWatch Logs answers for a stream whose lines are past their retention.
    fake, job = started(Life.completed(logs={"algo-1": lines_of("algo-1", 20)}))
    fake.empty_log_pages = 10**9
    fake.clock.advance(0 if follow else 1000)
    assert list(job.logs(follow=follow)) == []
    assert len(fake.calls) < 20_000


def test_the_traceback_of_a_failed_job_is_read_although_cloudwatch_is_late():
    logs = {"algo-1": [(100, "epoch 1"), (138, "ValueError: the cause")], "algo-2": [(100, "epoch 1")]}
    fake, job = started(Life.failed("AlgorithmError", logs=logs), instance_count=2)
    fake.log_delay = 6
    assert by_host(job.logs(follow=True))["algo-2"] == ["epoch 1"]
    fake, job = started(Life.failed("AlgorithmError", logs=logs), instance_count=2)
    fake.log_delay = 4
    assert by_host(job.logs(follow=True)) == expected(logs)


def test_a_host_whose_job_started_again_goes_on_in_a_stream_of_its_own():
    logs = {
        "algo-1": [(100, "one"), (100, "two"), (199, "interrupted"), (341, "again")],
        "algo-2": [(100, "one"), (100, "two"), (360, "again"), (360, "done")],
    }
    fake, job = started(Life.interrupted(logs=logs), instance_count=2)
    assert by_host(job.logs(follow=True)) == expected(logs)
    names = fake.client("logs").describe_log_streams(logGroupName="/aws/sagemaker/TrainingJobs")["logStreams"]
    assert len(names) == 4


def test_lines_precede_the_status_that_ended_them_where_a_service_has_them_at_once():
    logs = {"algo-1": [(100, "one"), (199.9, "interrupted"), (341, "again")]}
    _, job = started(Life.interrupted(logs=logs))
    seen = {}
    tail = LogTail(job.name, job.platform.connection, 0.5)
    for event in tail.follow(lambda: job.platform.describe(job.name), lambda told: seen.setdefault(told.secondary)):
        seen.setdefault(event.message)
    assert [*seen][:-2] == ["Starting", "Downloading", "Training", "one", "interrupted", "Interrupted", "again"]


def test_a_place_that_cloudwatch_has_forgotten_is_found_again_by_time():
    logs = {"algo-1": [(100, "a"), (100, "b"), (100, "b"), (100, "c"), (130, "d"), (130, "d"), (160, "e")]}
    fake, job = started(Life.completed(logs=logs))
    fake.page_lines = 2
    for after in (1, 3, 20):
        fake.fault("get_log_events", ServiceError("InvalidParameterException", "The token is invalid."), after=after)
    assert by_host(job.logs(follow=True)) == expected(logs)
    found_again = [call for call in fake.calls if "startTime" in call.arguments and "nextToken" not in call.arguments]
    assert len(found_again) == 3


class Slow(FakeSageMaker):
    """Each call takes 50 ms."""

    def settle(self):
        self.clock.advance(0.05)
        super().settle()


@pytest.mark.slow
def test_a_hundred_streams_far_away_do_not_hide_the_jobs_end():
    logs = {f"algo-{number}": lines_of(f"algo-{number}", 10, step=30) for number in range(1, 101)}
    fake, job = started(Life.completed(logs=logs), instance_count=100, fake=Slow("eu-west-1"))
    seen = []
    found = job.platform.log_events("job-1", follow=True, on_description=lambda _: seen.append(fake.clock.now()))
    assert by_host(found) == expected(logs)
    pauses = [after - before for before, after in zip(seen, seen[1:])]
    # A look takes its time too, and so does the list of 100 streams.
    # The last one is told after the last reading.
    assert max(pauses[:-1]) <= 3.5
    last_reading = 0.05 * 200 + 2.5
    assert fake.clock.now() - 390 <= 3.5 + last_reading


def test_following_ends_within_one_poll_of_the_jobs_end():
    for training in (300, 301.3, 302.7, 304.9):
        fake, job = started(Life.completed(training=training))
        began = fake.clock.now()
        list(job.logs(follow=True))
        job.wait()
        end = 60 + 20 + training + 10
        assert end <= fake.clock.now() - began <= end + job.platform.poll_seconds


@pytest.mark.parametrize(
    ("follow", "message", "seconds"),
    [
        (True, "given up after 900 s. Training job job-1 is still running.*scriptmode logs -f job-1", 1000),
        (False, "given up after 30 s", 60),
    ],
    ids=["following", "reading what is there"],
)
def test_retries_end_with_the_advice_to_follow_again(follow, message, seconds):
    fake, job = started(Life.completed(logs={"algo-1": lines_of("algo-1", 3)}))
    fake.clock.advance(200)
    began = fake.clock.now()
    fake.disconnect("get_log_events", times=10_000)
    with pytest.raises(TransientError, match=message):
        list(job.logs(follow=follow))
    assert fake.clock.now() - began < seconds


@pytest.mark.parametrize("operation", ["get_log_events", "describe_log_streams"])
def test_what_is_refused_for_good_is_not_tried_again(operation):
    fake, job = started(Life.completed(logs={"algo-1": lines_of("algo-1", 3)}))
    fake.fault(operation, ServiceError("AccessDeniedException", f"not authorized to perform: {operation}"))
    with pytest.raises(CredentialsError, match=f"{operation}.*their permissions"):
        list(job.logs(follow=True))
    assert sum(call.operation == operation for call in fake.calls) == 1


BEGIN = datetime(2026, 1, 5, 9, 0, tzinfo=timezone.utc)


def defined(*names):
    return [{"Name": name, "Regex": f"{name}=(.*)"} for name in names]


def described(*names, **fields):
    algorithm = {"MetricDefinitions": defined(*names)}
    times = {"CreationTime": BEGIN, "LastModifiedTime": BEGIN}
    return {"TrainingJobName": "job-1", **times, "AlgorithmSpecification": algorithm, **fields}


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


@pytest.mark.parametrize(("days", "values"), [(1, [0.8, 0.5]), (20, [0.7]), (100, [0.7]), (500, [0.5])])
def test_an_older_jobs_metrics_are_coarser_and_at_last_the_final_value(days, values):
    fake, job = started(
        Life.completed(metrics={"loss": [(100, 0.9), (110, 0.7), (170, 0.5)]}), metric_definitions=defined("loss")
    )
    job.wait()
    fake.clock.advance(timedelta(days=days).total_seconds())
    assert [value for _, value in rows_of(job)] == pytest.approx(values)


def test_a_metric_that_only_the_service_defined_is_there_too():
    last = [{"MetricName": "train:error", "Value": 0.0, "Timestamp": BEGIN}]
    found = read_metrics(described("loss", FinalMetricDataList=last), Connection(FakeSageMaker()))
    assert [(metric.name, metric.value, metric.timestamp) for metric in found] == [("train:error", 0.0, BEGIN)]


@pytest.mark.long
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
    assert read_metrics(described(*names), Connection(fake)) == []
    asked = [call.arguments["MetricDataQueries"] for call in fake.calls]
    assert [len(queries) for queries in asked] == [500, 500, 201]
    assert [query["MetricStat"]["Metric"]["MetricName"] for queries in asked for query in queries] == names


def test_a_refused_call_names_the_job():
    fake, job = started(Life.completed(metrics={"loss": [(100, 0.9)]}), metric_definitions=defined("loss"))
    job.wait()
    fake.throttle("get_metric_data")
    with pytest.raises(TransientError, match="the metrics of job-1: Rate exceeded"):
        job.metrics()
