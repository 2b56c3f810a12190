"""The logs of a job on Amazon SageMaker: every line once and in order, whatever the network does."""

import pytest
from fakes.log_streams import LogStreams
from fakes.sagemaker_jobs import started

from scriptmode import CredentialsError, TransientError
from scriptmode.aws.session import Connection
from scriptmode.platforms.sagemaker.cloudwatch_logs import LogTail
from scriptmode.testing import FakeSageMaker, Life, Phase, ServiceError


def lines_of(host, count, *, first=100.0, step=1.0):
    return [(first + number * step, f"{host} line {number}") for number in range(count)]


def by_host(events):
    found = {}
    for event in events:
        found.setdefault(event.host, []).append(event.message)
    return found


def expected(logs):
    return {host: [text for _, text in lines] for host, lines in logs.items()}


@pytest.mark.slow
def test_two_hundred_streams_are_read_whole_and_in_order():
    logs = {f"algo-{number}": lines_of(f"algo-{number}", 30, step=5) for number in range(1, 201)}
    fake, job = started(Life.completed(logs=logs), instance_count=200)
    fake.page_lines = 7
    assert by_host(job.logs(follow=True)) == expected(logs)


def test_streams_are_looked_for_only_until_every_host_has_one():
    logs = {"algo-1": lines_of("algo-1", 50), "algo-2": lines_of("algo-2", 50, first=120)}
    fake, job = started(Life.completed(logs=logs), instance_count=2)
    list(job.logs(follow=True))
    listings = [call for call in fake.calls if call.operation == "describe_log_streams"]
    descriptions = [call for call in fake.calls if call.operation == "describe_training_job"]
    # Once a look until the second host's first line at second 120, and once more at the end.
    assert len(listings) < len(descriptions) / 2


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


def test_an_answer_without_lines_is_not_the_end():
    logs = {"algo-1": lines_of("algo-1", 20)}
    fake, job = started(Life.completed(logs=logs))
    fake.page_lines, fake.empty_log_pages = 4, 2
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


def test_lines_that_cloudwatch_has_only_after_the_end_are_waited_for():
    logs = {"algo-1": [(389.5, "last words")]}
    fake, job = started(Life.completed(logs=logs))
    fake.log_delay = 1.5
    assert by_host(job.logs(follow=True)) == expected(logs)


def test_the_traceback_of_a_failed_job_is_read_although_cloudwatch_is_late():
    logs = {"algo-1": [(100, "epoch 1"), (138, "ValueError: the cause")], "algo-2": [(100, "epoch 1")]}
    fake, job = started(Life.failed("AlgorithmError", logs=logs), instance_count=2)
    fake.log_delay = 6
    assert by_host(job.logs(follow=True))["algo-2"] == ["epoch 1"]
    fake, job = started(Life.failed("AlgorithmError", logs=logs), instance_count=2)
    fake.log_delay = 4
    assert by_host(job.logs(follow=True)) == expected(logs)


def test_a_host_that_starts_again_after_an_interruption_goes_on_in_its_log():
    logs = {"algo-1": [(100, "first try"), (390, "second try"), (400, "done")]}
    _, job = started(Life.interrupted(logs=logs), use_spot_instances=True, max_run=1000, max_wait=2000)
    assert by_host(job.logs(follow=True)) == {"algo-1": ["first try", "second try", "done"]}


def test_a_host_whose_job_started_again_goes_on_in_a_stream_of_its_own():
    first, second = 1_700_000_000_000, 1_700_000_600_000
    restarts = [{"Status": status} for status in ("Starting", "Training", "Interrupted", "Starting", "Training")]
    logs = LogStreams(hosts=2)
    logs.write(0, f"algo-1-{first}", "one", "two")
    logs.write(0, f"algo-2-{first}", "one", "two")
    logs.write(20, f"algo-1-{first}", "interrupted")
    logs.write(20.5, f"algo-1-{second}", "again")
    logs.write(40, f"algo-2-{second}", "again", "done")
    logs.transitions = [(0, restarts[:2]), (20, restarts)]
    logs.ends_at = 60
    found = by_host(LogTail("job-1", Connection(logs), 5.0).follow(logs.describe, None))
    assert found == {"algo-1": ["one", "two", "interrupted", "again"], "algo-2": ["one", "two", "again", "done"]}


def test_a_place_that_cloudwatch_has_forgotten_is_found_again_by_time():
    logs = LogStreams(hosts=1, page=2)
    logs.write(0, "algo-1-1700000000000", "a", "b", "b", "c")
    logs.write(30, "algo-1-1700000000000", "d", "d")
    logs.write(60, "algo-1-1700000000000", "e")
    logs.tokens_end_at = [10, 31, 50]
    logs.ends_at = 70
    found = by_host(LogTail("job-1", Connection(logs), 5.0).follow(logs.describe, None))
    assert found == {"algo-1": ["a", "b", "b", "c", "d", "d", "e"]}
    assert logs.refused == 3


def test_a_deleted_stream_does_not_end_the_following():
    logs = {"algo-1": lines_of("algo-1", 5), "algo-2": lines_of("algo-2", 5)}
    fake, job = started(Life.completed(logs=logs), instance_count=2)
    fake.fault("get_log_events", ServiceError("ResourceNotFoundException", "The log stream does not exist."), 3)
    assert by_host(job.logs(follow=True)) == expected(logs)


class Slow(FakeSageMaker):
    """Each call takes 50 ms."""

    def settle(self):
        self.clock.advance(0.05)
        super().settle()


@pytest.mark.slow
def test_two_hundred_streams_far_away_do_not_hide_the_jobs_end():
    logs = {f"algo-{number}": lines_of(f"algo-{number}", 10, step=30) for number in range(1, 201)}
    fake, job = started(Life.completed(logs=logs), instance_count=200, fake=Slow("eu-west-1"))
    seen = []
    found = job.platform.log_events("job-1", follow=True, on_description=lambda _: seen.append(fake.clock.now()))
    assert by_host(found) == expected(logs)
    pauses = [after - before for before, after in zip(seen, seen[1:])]
    # A look takes its time too, and so does the list of 200 streams.
    # The last one is told after the last reading.
    assert max(pauses[:-1]) <= 3.5
    last_reading = 0.05 * 400 + 2.5
    assert fake.clock.now() - 390 <= 3.5 + last_reading


def test_following_ends_within_one_poll_of_the_jobs_end():
    for training in (300, 301.3, 302.7, 304.9):
        fake, job = started(Life.completed(training=training))
        began = fake.clock.now()
        list(job.logs(follow=True))
        job.wait()
        end = 60 + 20 + training + 10
        assert end <= fake.clock.now() - began <= end + job.platform.poll_seconds


def test_retries_end_with_the_advice_to_follow_again():
    fake, job = started(Life.completed(logs={"algo-1": lines_of("algo-1", 3)}))
    fake.disconnect("get_log_events", times=10_000)
    with pytest.raises(
        TransientError, match="given up after 900 s. Training job job-1 is still running.*scriptmode logs -f job-1"
    ):
        list(job.logs(follow=True))


def test_reading_the_available_lines_retries_for_a_shorter_time():
    fake, job = started(Life.completed(logs={"algo-1": lines_of("algo-1", 3)}))
    fake.clock.advance(200)
    began = fake.clock.now()
    fake.disconnect("get_log_events", times=10_000)
    with pytest.raises(TransientError, match="given up after 30 s"):
        list(job.logs())
    assert fake.clock.now() - began < 60


def test_what_is_refused_for_good_is_not_tried_again():
    fake, job = started(Life.completed(logs={"algo-1": lines_of("algo-1", 3)}))
    fake.fault("get_log_events", ServiceError("AccessDeniedException", "not authorized to perform: logs:GetLogEvents"))
    with pytest.raises(CredentialsError, match="logs:GetLogEvents"):
        list(job.logs(follow=True))
    assert sum(call.operation == "get_log_events" for call in fake.calls) == 1


def test_a_job_without_logs_yet_has_no_lines():
    fake, job = started(Life.completed(logs={"algo-1": lines_of("algo-1", 3)}))
    assert list(job.logs()) == []
    fake.clock.advance(101)
    assert by_host(job.logs()) == {"algo-1": ["algo-1 line 0", "algo-1 line 1"]}


def test_a_reader_that_stops_in_between_has_lost_nothing_for_the_next():
    logs = {"algo-1": lines_of("algo-1", 10)}
    _, job = started(Life.completed(logs=logs))
    first = next(job.logs(follow=True))
    assert first.message == "algo-1 line 0"
    assert by_host(job.logs(follow=True)) == expected(logs)


def test_a_long_start_costs_few_calls():
    fake, job = started(Life((Phase("Starting", 600), Phase("Training", 10)), logs={"algo-1": [(605, "hello")]}))
    list(job.logs(follow=True))
    assert len(fake.calls) <= 3 * 610 / 3 + 20
