"""CloudWatch Logs of jobs of `scriptmode serve`, read by boto3. Every answer is checked against botocore's model."""

import fcntl
import gc
import itertools
import os
import time
from datetime import datetime, timezone
from functools import partial
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError
from fakes.processes import until
from hypothesis import given, strategies as st

from scriptmode._core.request.parse import parse_description
from scriptmode_local._store.log_times import LogTimes
from scriptmode_serve._operations.aws_json import ApiError
from scriptmode_serve._operations.log_operations import Logs, streams_of_job
from scriptmode_serve._operations.log_pages import LogFile
from scriptmode_serve._operations.log_times import KnownTimes

GROUP = "/aws/sagemaker/TrainingJobs"
PRINTS = """
import pathlib, time
for number in range(30):
    print("line", number, flush=True)
print("waits", flush=True)
while not pathlib.Path({go!r}).exists():
    time.sleep(0.05)
print("the end", end="", flush=True)
"""


def stream_of(api, name):
    found = api.logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=f"{name}/")["logStreams"]
    return found[0]["logStreamName"] if found else None


def read_all(api, stream, **arguments):
    """Follow the forward tokens as clients do: until a page has the token that was sent."""
    events, token = [], None
    while True:
        more = {"nextToken": token} if token else {}
        page = api.logs.get_log_events(
            logGroupName=GROUP, logStreamName=stream, startFromHead=True, **arguments, **more
        )
        events += page["events"]
        if page["nextForwardToken"] == token:
            return events
        token = page["nextForwardToken"]


@pytest.fixture(scope="module")
def job(api):
    """A job that has ended, its stream, and the events that were read while it ran."""
    go = api.folder / "go"
    name = api.start(PRINTS.format(go=str(go)))
    until(lambda: stream_of(api, name))
    stream = stream_of(api, name)
    until(lambda: read_all(api, stream)[-1:] and read_all(api, stream)[-1]["message"] == "waits")
    before = read_all(api, stream)
    go.touch()
    assert api.wait(name)["TrainingJobStatus"] == "Completed"
    return name, stream, before


@pytest.mark.slow
def test_lines_keep_their_times_and_are_read_once(api, job):
    name, stream, before = job
    assert stream.startswith(f"{name}/algo-1-")
    events = read_all(api, stream)
    assert events[: len(before)] == before
    lines = [event["message"] for event in events if event["message"].startswith("line ")]
    assert lines == [f"line {number}" for number in range(30)]
    assert "the end" in [event["message"] for event in events]
    times = [event["timestamp"] for event in events]
    assert times == sorted(times)
    assert abs(times[-1] / 1000 - time.time()) < 100
    assert read_all(api, stream, limit=7) == events


@pytest.mark.slow
def test_pages_go_backwards_from_the_end(api, job):
    _, stream, _ = job
    events, found = read_all(api, stream), []
    asked = {"logGroupName": GROUP, "logStreamName": stream, "limit": 7}
    page = api.logs.get_log_events(**asked)
    while page["events"]:
        found = page["events"] + found
        page = api.logs.get_log_events(**asked, nextToken=page["nextBackwardToken"])
    assert found == events


@pytest.mark.slow
def test_a_span_of_time_is_read(api, job):
    _, stream, before = job
    events = read_all(api, stream)
    last = events[-1]["timestamp"]
    assert last > before[-1]["timestamp"]
    assert read_all(api, stream, startTime=last) == [each for each in events if each["timestamp"] == last]
    older = [each for each in events if each["timestamp"] < last]
    assert read_all(api, stream, endTime=last) == older
    page = api.logs.get_log_events(logGroupName=GROUP, logStreamName=stream, endTime=last, limit=7)
    assert page["events"] == older[-7:]


@pytest.mark.slow
def test_lines_are_filtered_over_streams(api, job):
    name, stream, _ = job
    pages = api.logs.get_paginator("filter_log_events").paginate(
        logGroupName=GROUP, logStreamNamePrefix=name, filterPattern='line "1"', PaginationConfig={"PageSize": 4}
    )
    found = [event for page in pages for event in page["events"]]
    messages = [event["message"] for event in found]
    assert messages == ["line 1", *(f"line {number}" for number in range(10, 20)), "line 21"]
    assert {event["logStreamName"] for event in found} == {stream}
    assert len({event["eventId"] for event in found}) == len(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "is_found"),
    [({}, True), ({"logGroupNamePrefix": "/aws/sage"}, True), ({"logGroupNamePattern": "trainingjobs"}, True),
     ({"logGroupNamePrefix": "/aws/lambda"}, False), ({"logGroupNamePattern": "Endpoints"}, False)],
)  # fmt: skip
def test_the_group_of_the_logs_is_listed(api, asked, is_found):
    groups = api.logs.describe_log_groups(**asked)["logGroups"]
    assert [group["logGroupName"] for group in groups] == [GROUP] * is_found
    assert all(group["arn"].endswith(f":log-group:{GROUP}:*") for group in groups)


def test_groups_are_asked_for_by_prefix_or_by_pattern():
    asked = {"logGroupNamePrefix": "/", "logGroupNamePattern": "a"}
    with pytest.raises(ApiError, match="mutually exclusive"):
        Logs(tuple, None, "arn").operations["DescribeLogGroups"](asked)


def test_names_of_streams_that_are_not_a_list_of_texts_are_refused():
    logs = Logs(tuple, None, "arn").operations
    with pytest.raises(ApiError, match="InvalidParameterException: logStreamNames is not a list of texts"):
        logs["FilterLogEvents"]({"logGroupName": GROUP, "logStreamNames": 5})
    assert logs["DescribeLogStreams"]({"logGroupName": GROUP, "logStreamNamePrefix": 5})["logStreams"] == []


@pytest.mark.slow
def test_errors_have_the_codes_of_aws(api, job):
    with pytest.raises(ClientError, match="ResourceNotFoundException.*stream"):
        api.logs.get_log_events(logGroupName=GROUP, logStreamName="none/algo-1-1")
    with pytest.raises(ClientError, match="ResourceNotFoundException.*group"):
        api.logs.get_log_events(logGroupName="/another", logStreamName="none")
    for arguments in ({"nextToken": "x"}, {"limit": 20_000}):
        with pytest.raises(ClientError, match="InvalidParameterException"):
            api.logs.get_log_events(logGroupName=GROUP, logStreamName=job[1], **arguments)
    with pytest.raises(
        ClientError, match="UnknownOperationException.* DescribeMetricFilters of CloudWatch Logs; it has D"
    ):
        api.client("logs").describe_metric_filters()


@pytest.mark.parametrize("pattern", ["{ $.a = 1 }", "[a, b]", '"open', "%a+%", "?warn ?error", "loss -nan", "x" * 1025])
def test_a_pattern_that_is_not_of_terms_or_too_long_is_refused(pattern):
    logs = Logs(tuple, None, "arn").operations
    with pytest.raises(ApiError, match="InvalidParameterException: Invalid filter pattern: .* Served are terms and"):
        logs["FilterLogEvents"]({"logGroupName": GROUP, "filterPattern": pattern})


@given(st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=20)), st.integers(1, 9))
def test_pages_of_any_size_have_every_line_once(tmp_path_factory, texts, size):
    folder = tmp_path_factory.mktemp("log")
    path = folder / "log"
    path.write_text("".join(f"{text}\n" for text in texts), newline="")
    times = LogTimes(path)
    log = LogFile(times, times.update(), is_complete=False)
    assert [line.text for line in log.forwards(0)] == texts
    pages, end = [], log.end()
    while end:
        start = log.start_of_page(end, size)
        page = [line.text for line in log.forwards(start) if line.end <= end]
        assert 0 < len(page) <= size
        pages, end = page + pages, start
    assert pages == texts


def test_a_line_that_was_written_in_two_pieces_has_the_later_time_and_is_whole(tmp_path):
    path = tmp_path / "log"
    times = LogTimes(path)
    for second, text in ((1, "one\ntw"), (2, "one\ntwo\nthree\n")):
        path.write_text(text)
        os.utime(path, (second, second))
        log = LogFile(times, times.update(), is_complete=False)
    read = {moment: [line.text for line in log.forwards(log.start_at(moment))] for moment in (0, 1001, 2001)}
    assert read == {0: ["one", "two", "three"], 1001: ["two", "three"], 2001: ["three"]}
    assert [line.time for line in log.forwards(0)] == [1000, 2000, 2000]


def test_times_survive_a_pair_that_was_cut(tmp_path):
    log, file = tmp_path / "log", tmp_path / "log.times"
    log.write_text("a\n")
    first = LogTimes(log)
    first.update()
    time_of_a = first.time_of(2)
    with file.open("ab") as times:
        times.write(b"12345678" * 3)
    log.write_text("a\nb\n")
    second = LogTimes(log)
    assert second.update() == 4
    assert second.time_of(2) == time_of_a
    assert LogTimes(log).update() == 4
    assert file.stat().st_size == 32


def test_the_log_of_a_new_job_of_the_same_name_has_times_of_its_own(tmp_path):
    log = tmp_path / "log"
    known = KnownTimes(SimpleNamespace(log_locations=lambda _: {"algo-1": str(log)}))
    for second, text in ((1000, "a line of the first job\n"), (2000, "short\n")):
        log.with_suffix(".times").unlink(missing_ok=True)
        log.write_text(text)
        os.utime(log, (second, second))
        ((_, read),) = known.logs(SimpleNamespace(name="job", created=second, has_ended=True))
        assert (read.length, read.span) == (len(text), (1000 * second, 1000 * second))


def test_the_times_of_the_logs_of_many_jobs_are_not_all_kept(tmp_path):
    known = KnownTimes(SimpleNamespace(log_locations=lambda name: {"algo-1": f"{tmp_path}/{name}"}))
    for number in range(3000):
        assert list(known.logs(SimpleNamespace(name=str(number), created=number, has_ended=False)))
    assert sum(isinstance(item, LogTimes) for item in gc.get_objects()) < 2500


def test_times_that_another_server_records_are_read(tmp_path):
    log = tmp_path / "log"
    log.write_text("one\n")
    LogTimes(log).update()
    log.write_text("one\ntwo\n")
    known = KnownTimes(SimpleNamespace(log_locations=lambda _: {"algo-1": str(log)}))
    with log.with_suffix(".times").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ((_, read),) = known.logs(SimpleNamespace(name="job", created=1, has_ended=True))
    assert read.length == 4


def test_a_long_search_goes_on_in_the_next_page(tmp_path):
    (tmp_path / "log").write_text("".join(f"line {number}\n" for number in range(20)))
    job = parse_description({"CreationTime": datetime.now(timezone.utc), "TrainingJobStatus": "Completed"})
    platform = SimpleNamespace(describe=lambda _: job, log_locations=lambda _: {"algo-1": str(tmp_path / "log")})
    seconds = itertools.count()
    streams = partial(streams_of_job, platform, KnownTimes(platform))
    search = Logs(tuple, streams, "arn", lambda: float(next(seconds))).operations["FilterLogEvents"]
    arguments = {"logGroupName": GROUP, "logStreamNamePrefix": "job/", "filterPattern": "9"}
    pages = [search(arguments)]
    while "nextToken" in pages[-1]:
        pages.append(search({**arguments, "nextToken": pages[-1]["nextToken"]}))
    assert [event["message"] for each in pages for event in each["events"]] == ["line 9", "line 19"]
    assert not pages[0]["searchedLogStreams"][0]["searchedCompletely"]
    assert len(pages) > 2
