"""A training job that was started: waiting, its status while it runs, how it ended and its model; lists of jobs."""

import contextlib
import io
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from fakes.archives import packed
from fakes.local_jobs import channel
from fakes.sagemaker_jobs import started

from scriptmode import (
    CapacityError,
    CredentialsError,
    DataError,
    Estimator,
    SpecError,
    TrainingJob,
    TrainingJobFailed,
    TrainingJobStopped,
    TransientError,
    WaitTimeoutError,
)
from scriptmode._core.handle.log_lines import StatusLines, ended, show
from scriptmode._core.request.parse import parse_description, parse_request
from scriptmode._core.spec.service_values import LogEvent
from scriptmode._display.html_card import render_card
from scriptmode._display.job_list import JobList
from scriptmode._display.snapshot import create_snapshot
from scriptmode._results import artifacts
from scriptmode.testing import Life, Phase, ServiceError
from scriptmode_runtime._files.archive import MODEL_LIMITS

HOSTS = ("algo-1", "algo-2")
SPOT = {"use_spot_instances": True, "max_run": 1000, "max_wait": 2000}


def test_waiting_outlives_throttling_and_lost_connections():
    fake, job = started(Life.completed())
    fake.throttle("describe_training_job", times=5, after=2)
    fake.disconnect("describe_training_job", times=5, after=4)
    assert job.wait()["TrainingJobStatus"] == "Completed"


def test_a_wait_asks_more_rarely_the_longer_it_takes(monkeypatch):
    fake, job = started(Life.completed())
    monkeypatch.setattr(type(job.platform), "poll_seconds", 0.05)
    job.wait()
    assert fake.clock.now() > 100
    assert len(fake.clock.slept) < 3 * fake.clock.now()
    assert max(fake.clock.slept) == 0.5


def test_wait_times_out_at_its_second():
    fake, job = started(Life.completed())
    with pytest.raises(WaitTimeoutError, match=r"InProgress \(Starting\) after 12 s"):
        job.wait(timeout=12)
    assert fake.clock.now() == pytest.approx(12)


@pytest.mark.parametrize("timeout", [0, 30, 200])
def test_wait_times_out_at_its_second_without_a_connection_too(timeout):
    fake, job = started(Life.completed())
    fake.disconnect("describe_training_job", times=10_000)
    with pytest.raises(WaitTimeoutError, match=f"could not be asked within {timeout} s.*it is still running") as caught:
        job.wait(timeout=timeout)
    assert isinstance(caught.value.__context__, TransientError)
    assert fake.clock.now() == pytest.approx(timeout)


def test_following_with_credentials_that_expire_says_how_to_come_back(capsys):
    fake, job = started(Life.completed())
    fake.fault("describe_training_job", ServiceError("ExpiredTokenException", "The security token is expired"), after=9)
    with pytest.raises(CredentialsError, match="expired"):
        job.follow()
    assert "Training job job-1 is still running. Follow it again: scriptmode logs -f job-1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("life", "arguments", "error", "message"),
    [
        pytest.param(Life.failed("AlgorithmError: boom"), {}, TrainingJobFailed, "job-1 failed: boom", id="failed"),
        pytest.param(
            Life.out_of_capacity(), {}, CapacityError, "Unable to provision.*try another instance type", id="no capacity"
        ),
        pytest.param(
            Life.completed(training=500), {"max_run": 100}, TrainingJobStopped, r"longer than max_run \(100 s\)", id="max_run"
        ),
        pytest.param(
            Life((Phase("Starting", 9000), Phase("Training", 10))),
            {"use_spot_instances": True, "max_run": 100, "max_wait": 200}, TrainingJobStopped,
            r"longer than max_wait \(200 s\)", id="max_wait",
        ),
        pytest.param(
            Life((Phase("Starting", 60), Phase("Training", 10)), "Stopped", secondary_status="Interrupted"), SPOT,
            TrainingJobStopped, "lost its spot instances.*checkpoint_s3_uri", id="interrupted",
        ),
    ],
)  # fmt: skip
def test_how_a_job_ended_is_an_error_of_its_own(life, arguments, error, message):
    _, job = started(life, **arguments)
    with pytest.raises(error, match=message) as caught:
        job.wait()
    assert type(caught.value) is error
    assert caught.value.job_name == "job-1"
    assert caught.value.secondary_status == caught.value.description["SecondaryStatus"]


def test_each_status_is_shown_once_with_the_log_between(capsys):
    logs = {"algo-1": [(100, "epoch 1"), (200, "epoch 2")]}
    _, job = started(Life.completed(logs=logs))
    job.follow()
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "-- Starting", "-- Downloading", "-- Training", "algo-1 | epoch 1", "algo-1 | epoch 2", "-- Uploading",
        "-- Completed", "training job job-1",
    ]  # fmt: skip
    assert lines[-1].startswith("training job job-1: Completed, 330 s of training; model: s3://out/jobs/job-1/output/")


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (packed({}), "model: empty"),
        *((content, "model: {uri}") for content in (packed({"a": "1"}), None, b"damaged", bytes(20_000))),
    ],
    ids=["empty", "a file", "missing", "damaged", "large"],
)
def test_every_view_shows_that_a_model_has_no_files(content, shown, tmp_path, capsys):
    archive = tmp_path / "model.tar.gz"
    if content is not None:
        archive.write_bytes(content)
    _, job = started(Life.completed())
    job.wait()
    shown = shown.format(uri=f"file://{archive}")
    description = replace(job.platform.describe(job.name), artifact_uri=f"file://{archive}")
    ended(description)
    assert capsys.readouterr().out == f"training job job-1: Completed, 330 s of training; {shown}\n"
    card = render_card(create_snapshot(description, datetime.now(timezone.utc)))
    assert (shown.replace(":", ":</span>", 1) in card, "job.model<" in card) == (True, "://" in shown)


def test_the_billable_time_is_shown(capsys):
    _, job = started(Life.interrupted(), instance_count=3, **SPOT)
    job.follow()
    assert job.training_seconds == 470
    assert job.billable_seconds == 3 * 141
    assert job.spot_savings == pytest.approx(0.7)
    assert "470 s of training, 423 s billable: spot instances saved 70%" in capsys.readouterr().out


def test_a_job_of_plain_instances_saves_nothing(capsys):
    _, job = started(Life.completed(), instance_count=2)
    assert (job.training_seconds, job.billable_seconds) == (None, None)
    job.follow()
    assert job.spot_savings is None
    assert "330 s of training, 660 s billable on all hosts" in capsys.readouterr().out


STARTING, TRAINING = {"Status": "Starting"}, {"Status": "Training", "StatusMessage": "In progress"}
WAITING = {**STARTING, "StatusMessage": "Waiting for instances"}
QUEUED = {"Status": "Pending", "StatusMessage": "Waiting: number 2"}
FIRST, PASSED = {**QUEUED, "StatusMessage": "Waiting: number 1"}, {**QUEUED, "StatusMessage": "Waiting"}


@pytest.mark.parametrize(
    ("histories", "lines"),
    [
        (
            [[], [STARTING], [STARTING], [WAITING], [WAITING, TRAINING], [WAITING, TRAINING, STARTING]],
            ["-- Starting", "-- Starting: Waiting for instances", "-- Training: In progress", "-- Starting"],
        ),
        # A scheduler's message is not in the status that passed.
        (
            [[QUEUED], [FIRST], [PASSED, WAITING]],
            ["-- Pending: Waiting: number 2", "-- Pending: Waiting: number 1", "-- Starting: Waiting for instances"],
        ),
    ],
    ids=["messages that change", "a status that passed"],
)
def test_each_message_of_a_status_is_shown_once(histories, lines, capsys):
    show = StatusLines()
    for transitions in histories:
        show(parse_description({"TrainingJobStatus": "InProgress", "SecondaryStatusTransitions": transitions}))
    assert capsys.readouterr().out.splitlines() == lines


def test_what_the_terminal_cannot_show_does_not_end_the_following():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="\n")
    training = {"Status": "Training", "StatusMessage": "\u2026"}
    with contextlib.redirect_stdout(stream):
        show([LogEvent("algo-1", "50% \u2588\u2588"), LogEvent("algo-1", "done")])
        StatusLines()(parse_description({"TrainingJobStatus": "InProgress", "SecondaryStatusTransitions": [training]}))
    assert stream.buffer.getvalue() == b"algo-1 | 50% \\u2588\\u2588\nalgo-1 | done\n-- Training: \\u2026\n"


@pytest.mark.parametrize("arguments", [{}, {"disable_output_compression": True}], ids=["packed", "not packed"])
def test_a_model_is_fetched_as_files(tmp_path, arguments):
    _, job = started(Life.completed(model={"saved_model.pb": b"graph", "variables/v.index": b"v"}), **arguments)
    job.wait()
    folder = job.download_model(tmp_path / "new" / "model")
    assert (folder / "saved_model.pb").read_bytes() == b"graph"
    assert (folder / "variables" / "v.index").read_bytes() == b"v"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


OUTSIDE = r"^the model s3://out/\S+ holds '\S+', which leads out of its directory\b"
TOO_MANY = r"holds more than 3 files, directories and links; download .* \(--no-extract\)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(packed({"fine": "x", "../escaped": "y"}), OUTSIDE, id="above"),
        pytest.param(packed(dict.fromkeys("abcd", "")), TOO_MANY, id="too many files"),
        pytest.param(
            packed({"a": "b" * 5000})[:-20], r"^the model s3://out/\S+ is not a complete tar archive", id="half"
        ),
    ],
)
def test_a_model_that_cannot_be_unpacked_is_refused_and_leaves_nothing(tmp_path, monkeypatch, content, message):
    monkeypatch.setattr(artifacts, "MODEL_LIMITS", MODEL_LIMITS._replace(members=3))
    _, job = started(Life.completed(model=content))
    job.wait()
    with pytest.raises(DataError, match=message):
        job.download_model(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_cannot_be_fetched_leaves_nothing(tmp_path):
    fake, job = started(Life.completed(model={"a": b"b"}))
    job.wait()
    fake.disconnect("get_object", times=1)
    with pytest.raises(DataError, match="cannot be reached"):
        job.download_model(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_goes_into_no_folder_with_something_in_it(tmp_path):
    _, job = started(Life.completed(model={"a": b"b"}))
    job.wait()
    (tmp_path / "mine").touch()
    with pytest.raises(DataError, match="is not an empty directory"):
        job.download_model(tmp_path)


def test_jobs_are_listed_by_what_is_asked(capsys):
    fake, job = started(Life.completed())
    began = fake.clock.wall_time()
    for number in range(2, 30):
        fake.clock.advance(60)
        fake.expect(Life.failed("AlgorithmError") if number % 2 else Life.completed())
        Estimator(
            "img", "arn:aws:iam::123456789012:role/r", 1, "ml.m5.large", output_path="s3://out", sagemaker_session=fake
        ).fit(wait=False, job_name=f"job-{number}")
    fake.clock.advance(1000)

    def names(**which):
        jobs = TrainingJob.list(job.platform, **which)
        assert isinstance(jobs, JobList)
        return [each["TrainingJobName"] for each in jobs]

    assert names() == [f"job-{number}" for number in range(29, 0, -1)]
    assert names(limit=3) == ["job-29", "job-28", "job-27"]
    assert names(name_contains="job-1", limit=2) == ["job-19", "job-18"]
    assert names(status="Failed", limit=2) == ["job-29", "job-27"]
    assert names(created_before=began + timedelta(seconds=30)) == ["job-1"]
    assert names(created_after=began + timedelta(seconds=27.5 * 60)) == ["job-29"]


def test_a_listing_that_cannot_be_meant_is_refused():
    with pytest.raises(SpecError, match="status is 'x'; use one of Completed, Failed, InProgress"):
        TrainingJob.list(status="x")
    with pytest.raises(SpecError, match="platform is 'cloud'; give 'local', 'sagemaker' or a platform object"):
        TrainingJob.list(platform="cloud")


@pytest.mark.parametrize(
    ("directory", "uri"),
    [
        ('"s3://b/s.tar.gz"', "s3://b/s.tar.gz"),
        ("s3://b/s.tar.gz", "s3://b/s.tar.gz"),
        ('"/opt/ml/input/data/code/s.tar.gz"', "s3://b/code"),
    ],
    ids=["a channel of the same name", "not encoded", "under isolation"],
)
def test_the_source_is_where_the_hosts_get_it(directory, uri):
    parameters = {"sagemaker_submit_directory": directory}
    job = {
        "TrainingJobName": "job-1",
        "HyperParameters": parameters,
        "InputDataConfig": [channel("code", "s3://b/code")],
    }
    assert parse_request(job).source_uri == uri
    in_the_image = {**job, "HyperParameters": {"sagemaker_submit_directory": '"/opt/ml/code"'}, "InputDataConfig": []}
    assert parse_request(in_the_image).source_uri is None


@pytest.mark.parametrize("times", [{"TrainingTimeInSeconds": 0}, {}], ids=["no seconds", "not described"])
def test_a_spot_job_that_did_not_train_saved_nothing(times):
    described = {"TrainingJobName": "job-1", "TrainingJobStatus": "Failed", "EnableManagedSpotTraining": True, **times}
    assert parse_description({**described, "BillableTimeInSeconds": 20}).spot_savings is None


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"hosts": ["algo-3"]}, "has no host 'algo-3'; it has algo-1 to algo-2"),
        ({"hosts": 3}, r"hosts is 3; give names of hosts, such as \['algo-1'\]"),
        ({"tail": -1}, "tail is -1; give a whole number of lines"),
    ],
    ids=["host", "no names", "negative"],
)
def test_a_wrong_choice_of_lines_is_refused_at_once(choice, message):
    _, job = started(Life.completed(), instance_count=2)
    with pytest.raises(SpecError, match=message):
        job.logs(**choice)


def test_a_log_is_filtered_by_hosts_and_their_last_lines(capsys):
    _, job = started(Life.completed(logs={host: [(100, "one"), (101, "two")] for host in HOSTS}), instance_count=2)
    everything = list(job.logs(follow=True))
    second = [event for event in everything if event.host == "algo-2"]
    assert (job.hosts, len(second)) == (list(HOSTS), 2)
    assert list(job.logs(hosts="algo-2")) == list(job.logs(follow=True, hosts=["algo-2"])) == second
    assert set(job.logs(hosts=["algo-1", "algo-2"])) == set(everything)
    assert [sorted(each.message for each in job.logs(tail=tail)) for tail in (0, 1, 9)] == [
        [], ["two", "two"], ["one", "one", "two", "two"],
    ]  # fmt: skip
    job.print_logs(hosts=["algo-1"], tail=1)
    assert capsys.readouterr().out == "algo-1 | two\n"


def summary(name, status="Completed", **fields):
    created = datetime.now(timezone.utc) - timedelta(hours=3, seconds=30)
    return {"TrainingJobName": name, "TrainingJobStatus": status, "CreationTime": created, **fields}


JOBS = JobList(
    [
        summary("fashion-2", "InProgress", Distribution="mpi", InstanceCount=2),
        summary("fashion-1", LastMetric={"MetricName": "<b>loss\x1b", "Value": 0.25}),
    ]
)


def test_at_the_prompt_jobs_are_a_table_without_the_columns_that_no_job_has():
    heads, running, completed = [line.split() for line in str(JOBS).splitlines()]
    assert heads == ["CREATED", "AGE", "STATUS", "KIND", "HOSTS", "METRIC", "NAME"]
    assert running[2:] == ["3h", "InProgress", "mpi", "2", "-", "fashion-2"]
    assert completed[2:] == ["3h", "Completed", "-", "-", "<b>loss\\u001b=0.25", "fashion-1"]
    assert repr(JOBS) == str(JOBS)


def test_a_row_has_the_word_of_a_limit_the_time_outside_of_a_queue_and_one_of_several_regions():
    ended, arn = datetime.now(timezone.utc), "arn:aws:sagemaker:{}:000000000000:training-job/x".format
    limited = summary("a", "Stopped", SecondaryStatus="MaxRuntimeExceeded", TrainingJobArn=arn("eu-west-1"))
    waited = summary("b", QueueEndTime=ended - timedelta(seconds=5), TrainingEndTime=ended, TrainingJobArn=arn("x-1"))
    damaged = summary("c", "Unreadable", SecondaryStatus="Unreadable", TrainingJobArn="")
    rows = [dict(zip(JobList.COLUMNS, row)) for row in JobList([limited, waited, damaged]).rows()]
    assert [row["STATUS"] for row in rows] == ["MaxRuntimeExceeded", "Completed", "Unreadable"]
    assert [row["TIME"] for row in rows] == ["-", "5.0 s", "-"]
    assert [row["REGION"] for row in rows] == ["eu-west-1", "x-1", "-"]
    assert [row[-3] for row in JobList([limited, limited, damaged]).rows()] == ["-", "-", "-"]


def test_a_list_without_jobs_says_so():
    assert repr(JobList()) == "no training jobs"
