"""The job store, whole or not at all; and the state of a job as a value and as the service describes it."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.local_jobs import JOB, channel, request_for
from fakes.output_shapes import against, operation

from scriptmode._core.handle.log_lines import StatusLines
from scriptmode._core.machine.data_dir import default_data_dir
from scriptmode._core.request.parse import parse_request
from scriptmode._core.spec.service_values import ENDED
from scriptmode._core.spec.training_job import Resources, Script, TrainingJobSpec
from scriptmode.errors import JobNotFoundError, RequestError
from scriptmode_local import LocalPlatform
from scriptmode_local._store.host_logs import last_lines
from scriptmode_local._store.job_response import describe
from scriptmode_local._store.log_times import LogTimes
from scriptmode_local._store.state import STATUS_OF, failure_from_json, starting_state
from scriptmode_local._store.summary_response import render_summary


@pytest.mark.parametrize("ahead", [-9, 0, 9], ids="the clock of the hosts is {} s ahead".format)
def test_the_last_lines_of_the_hosts_come_before_the_status_that_follows_them(store, ahead):
    seen = []
    with store.create(JOB, starting_state("job", "arn/job", time.time() - 99)) as (folder, _):
        folder.log("algo-1").write_text("last words\n")
        folder.write_state(folder.read_state().with_status("Uploading", time.time() - ahead))
        events = LocalPlatform(data_dir=store.data_dir).log_events(
            "job", follow=True, on_description=lambda description: seen.append(description.secondary)
        )
        seen.append(next(events).message)
        folder.write_state(folder.read_state().with_status("Completed", time.time()))
        seen += [event.message for event in events]
    assert seen == ["Starting", "last words", "Uploading", "Completed"]


def test_the_lines_of_an_ended_job_stand_between_its_statuses_in_the_order_of_their_times(store, capsys):
    with store.create(JOB, starting_state("job", "arn/job", 10.0)) as (folder, _):
        state, times = folder.read_state(), LogTimes(folder.log("algo-1"))
        for moment, status in enumerate(("Training", "Interrupted", "Starting", "Training", "Uploading"), 11):
            state = state.with_status(status, moment + 0.0004)
            if status == "Training":
                with times.log.open("a") as log:
                    log.write(f"line of second {moment}\n")
                os.utime(times.log, (moment, moment))
                times.update()
        folder.write_state(state.with_status("Completed", 20))
    for event in LocalPlatform(data_dir=store.data_dir).log_events("job", follow=True, on_description=StatusLines()):
        print(event.message)
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "-- Starting", "-- Training", "line of second 11", "-- Interrupted", "-- Starting", "-- Training",
        "line of second 14", "-- Uploading", "-- Completed",
    ]  # fmt: skip


def made(store, name="job", created=0.0):
    with store.create(JOB, starting_state(name, f"arn/{name}", created)) as (folder, _):
        return folder


def test_a_job_has_an_owner_from_its_first_moment(store):
    with store.create(JOB, starting_state("job", "arn", 0.0)) as (folder, _), folder.try_lock() as (is_locked, _):
        assert not is_locked
    with folder.try_lock() as (is_locked, _):
        assert is_locked


class Interrupted(dict):
    """Content of a request at which Ctrl-C is pressed."""

    def items(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("content", "raised"),
    [(Interrupted(x=1), KeyboardInterrupt), ({"x": object()}, RequestError), ({"x": "\ud800"}, RequestError)],
)
def test_a_creation_that_is_interrupted_leaves_no_draft(store, content, raised):
    job = replace(JOB, engine=content)
    with pytest.raises(raised), store.create(job, starting_state("job", "arn", 0.0)):
        pass
    assert list(store.jobs.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "a/b", ""], ids=["long", "NUL", "slash", "empty"])
def test_a_name_that_no_job_can_have_is_not_found(store, name):
    with pytest.raises(JobNotFoundError):
        store.find(name)
    assert LocalPlatform(data_dir=store.data_dir).list() == []
    assert not store.data_dir.exists()
    made(store)
    with pytest.raises(JobNotFoundError):
        store.find(name)


def test_the_data_directory_follows_the_platforms_convention(monkeypatch, tmp_path):
    monkeypatch.delenv("SCRIPTMODE_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_data_dir() == tmp_path / "scriptmode"
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", "~/elsewhere")
    assert default_data_dir() == Path.home() / "elsewhere"


def test_the_end_of_a_log_is_read_without_the_rest(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"x\n" * 1_000_000 + b"one\n\xfftwo\n")
    assert last_lines(log, 2, 100) == "one\n\ufffdtwo"
    assert last_lines(log, 2, 3) == "two"
    assert last_lines(log, 2, 6) == "\ufffdtwo", "no line is cut"
    assert last_lines(tmp_path / "missing", 2, 5) == ""


def spec(**arguments):
    return TrainingJobSpec("job", Resources(1, "local_process"), script=Script("train.py"), **arguments)


def test_a_source_is_stored_once(tmp_path):
    platform = LocalPlatform(data_dir=tmp_path / "data dir")
    uri = f"{platform.complete(spec()).output.code_location}/abc/sourcedir.tar.gz"
    platform.put_source(b"archive", uri)
    path = tmp_path / "data dir/sources/abc/sourcedir.tar.gz"
    before = path.stat().st_mtime_ns
    platform.put_source(b"archive", uri)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (b"archive", before)


def test_a_role_is_always_an_arn(tmp_path):
    platform = LocalPlatform(data_dir=tmp_path)
    roles = [
        platform.complete(spec(role=role)).role for role in (None, "trainer", "arn:aws:iam::123456789012:role/own")
    ]
    account = "arn:aws:iam::000000000000:role"
    assert roles == [f"{account}/scriptmode-local", f"{account}/trainer", "arn:aws:iam::123456789012:role/own"]


DESCRIBED = operation("DescribeTrainingJob").output_shape
SUMMARY = operation("ListTrainingJobs").output_shape.members["TrainingJobSummaries"].member
ARN = "arn:aws:sagemaker:us-east-1:000000000000:training-job/job"


def lived(*statuses):
    state = starting_state("job", ARN, 1000.0)
    for number, status in enumerate(statuses, 1):
        state = state.with_status(status, 1000.0 + number, reason="AlgorithmError: x" if status == "Failed" else "")
    return state


LIVES = {
    "starting": (), "downloading": ("Downloading",), "training": ("Downloading", "Training"),
    "uploading": ("Downloading", "Training", "Uploading"),
    "completed": ("Downloading", "Training", "Uploading", "Completed"), "failed": ("Downloading", "Failed"),
    "failed at once": ("Failed",), "stopping": ("Downloading", "Training", "Stopping"),
    "stopped": ("Downloading", "Training", "Stopping", "Stopped"),
    "too long": ("Downloading", "Training", "Stopping", "MaxRuntimeExceeded"),
    "waited too long": ("Downloading", "Training", "Stopping", "MaxWaitTimeExceeded"),
    "interrupted": ("Downloading", "Training", "Interrupted"),
    "resumed": ("Downloading", "Training", "Interrupted", "Starting", "Downloading", "Training", "Completed"),
}  # fmt: skip


@pytest.mark.parametrize("statuses", LIVES.values(), ids=LIVES.keys())
def test_a_description_has_exactly_the_services_shape(statuses):
    request = request_for("job", channels=[channel("train", "file:///data")])
    request["Tags"] = [{"Key": "a", "Value": "b"}]
    state = lived(*statuses)
    description = describe(parse_request(request), state).response
    assert against(DESCRIBED, description) == ""
    assert against(SUMMARY, render_summary(state.summary)) == ""
    assert description["SecondaryStatus"] in DESCRIBED.members["SecondaryStatus"].enum
    assert description["TrainingJobStatus"] in DESCRIBED.members["TrainingJobStatus"].enum
    assert all(moment.tzinfo for key, moment in description.items() if key.endswith("Time"))
    for field in ("HyperParameters", "InputDataConfig", "OutputDataConfig", "ResourceConfig", "RoleArn"):
        assert description[field] == request[field]


def test_every_status_is_one_of_the_services():
    assert set(STATUS_OF) <= set(DESCRIBED.members["SecondaryStatus"].enum)
    assert ENDED <= set(STATUS_OF.values()) <= set(DESCRIBED.members["TrainingJobStatus"].enum)


def test_every_stay_begins_where_the_one_before_ended_and_training_time_counts_from_the_download_to_the_end():
    request = parse_request(request_for("job"))
    description = describe(request, lived(*LIVES["completed"])).response
    stays = description["SecondaryStatusTransitions"]
    assert [stay["Status"] for stay in stays] == ["Starting", *LIVES["completed"]]
    assert all(before["EndTime"] == after["StartTime"] for before, after in zip(stays, stays[1:]))
    assert stays[-1]["EndTime"] == stays[-1]["StartTime"] == description["TrainingEndTime"]
    assert description["TrainingTimeInSeconds"] == description["BillableTimeInSeconds"] == 3
    assert "TrainingTimeInSeconds" not in describe(request, lived(*LIVES["training"])).response


def test_training_time_leaves_out_interruptions():
    state = lived(*LIVES["resumed"])
    description = describe(parse_request(request_for("job")), state).response
    assert description["TrainingTimeInSeconds"] == 4
    assert state.seconds_in("Training") == 2


def test_a_status_entered_twice_is_entered_once():
    state = lived("Downloading", "Training", "Stopping")
    assert state.with_status("Stopping", 2000.0) is state


def test_a_long_reason_keeps_its_first_line_and_its_last_lines():
    text = "AlgorithmError: algo-2, worker: exit code 1\n" + "frame\n" * 1000 + "ValueError: the end, exit code: 1"
    state = starting_state("job", ARN, 1.0).with_status("Failed", 2.0, reason=text)
    short = describe(parse_request({}), state).failure_reason
    assert 1018 < len(short) <= 1024
    assert short.startswith("AlgorithmError: algo-2, worker: exit code 1\n[...]\nframe\n")
    assert short.endswith("frame\nValueError: the end, exit code: 1")


def test_no_text_of_a_description_has_control_characters():
    text = "AlgorithmError: \x1b[31mno\x1b[0m data\0 in \x9b1mpart\u202e-3"
    state = starting_state("job", ARN, 1.0).with_status("Failed", 2.0, reason=text, message=text)
    description = describe(parse_request({}), state).response
    clean = "AlgorithmError: no data in part-3"
    assert description["FailureReason"] == description["SecondaryStatusTransitions"][-1]["StatusMessage"] == clean
    texts = dict.fromkeys(("cause", "process", "signal", "exception", "hint", "traceback"), text)
    failure = failure_from_json({**texts, "host": "algo-1", "exit_code": 1})
    assert {getattr(failure, name) for name in texts} == {clean}
