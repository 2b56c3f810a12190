"""A training job that was started: waiting, its status while it runs, how it ended, its metrics and its model."""

import io
import tarfile
from datetime import timedelta

import pytest
import yaml
from fakes.sagemaker_jobs import started

from scriptmode import (
    CapacityError,
    CredentialsError,
    DataError,
    Estimator,
    SpecError,
    TrainingInput,
    TrainingJob,
    TrainingJobFailed,
    TrainingJobStopped,
    TransientError,
    WaitTimeoutError,
)
from scriptmode.display.log_lines import StatusLines, show
from scriptmode.display.snapshot import create_snapshot
from scriptmode.platforms.base import LogEvent
from scriptmode.request.parse import parse_description
from scriptmode.results import artifacts
from scriptmode.testing import Life, Phase, ServiceError
from scriptmode_runtime.files.archive import MODEL_LIMITS

SPOT = {"use_spot_instances": True, "max_run": 1000, "max_wait": 2000}


def test_waiting_ends_within_one_poll_of_the_jobs_end():
    fake, job = started(Life.completed(training=301))
    description = job.wait()
    assert description["TrainingJobStatus"] == "Completed"
    assert 391 <= fake.clock.now() <= 391 + job.platform.poll_seconds


def test_the_status_is_a_plain_text_that_every_serializer_takes():
    _, job = started(Life.completed())
    assert repr(job.status) == "'InProgress'"
    assert yaml.safe_dump({"status": job.status}) == "status: InProgress\n"
    description = parse_description(job.describe())
    assert repr(create_snapshot(description, description.created).status) == "'InProgress'"


def test_waiting_outlives_throttling_and_lost_connections():
    fake, job = started(Life.completed())
    fake.throttle("describe_training_job", times=5, after=2)
    fake.disconnect("describe_training_job", times=5, after=4)
    assert job.wait()["TrainingJobStatus"] == "Completed"


def test_waiting_gives_up_on_a_platform_that_never_answers_again():
    fake, job = started(Life.completed())
    fake.disconnect("describe_training_job", times=10_000, after=2)
    with pytest.raises(TransientError, match="is still running. Follow it again: scriptmode logs -f job-1"):
        job.wait()


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
            {"use_spot_instances": True, "max_run": 100, "max_wait": 200},
            TrainingJobStopped,
            r"longer than max_wait \(200 s\)",
            id="max_wait",
        ),
        pytest.param(
            Life((Phase("Starting", 60), Phase("Training", 10)), "Stopped", secondary_status="Interrupted"),
            SPOT,
            TrainingJobStopped,
            "lost its spot instances.*checkpoint_s3_uri",
            id="interrupted",
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


def test_a_stopped_job_is_an_outcome_of_its_own():
    fake, job = started(Life.completed())
    fake.clock.advance(200)
    job.stop()
    assert job.status == "Stopping"
    with pytest.raises(TrainingJobStopped, match="was stopped"):
        job.wait()
    job.stop()


def test_each_status_is_told_once_with_the_log_between(capsys):
    logs = {"algo-1": [(100, "epoch 1"), (200, "epoch 2")]}
    _, job = started(Life.completed(logs=logs))
    job.follow()
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in said] == [
        "-- Starting", "-- Downloading", "-- Training", "algo-1 | epoch 1", "algo-1 | epoch 2", "-- Uploading",
        "-- Completed", "training job job-1",
    ]  # fmt: skip
    assert said[-1].startswith("training job job-1: Completed, 330 s of training; model: s3://out/jobs/job-1/output/")


def test_a_job_that_ended_long_ago_tells_all_its_statuses(capsys):
    fake, job = started(Life.completed())
    fake.clock.advance(10_000)
    job.follow()
    assert sum(line.startswith("-- ") for line in capsys.readouterr().out.splitlines()) == 5


def test_what_is_paid_for_is_told(capsys):
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


def test_a_status_says_each_of_its_messages_once_and_no_message_where_it_has_none():
    told = io.StringIO()
    show = StatusLines(told)
    starting, waiting = {"Status": "Starting"}, {"Status": "Starting", "StatusMessage": "Waiting for instances"}
    training = {"Status": "Training", "StatusMessage": "In progress"}
    for transitions in ([], [starting], [starting], [waiting], [waiting, training], [waiting, training, starting]):
        show({"TrainingJobStatus": "InProgress", "SecondaryStatusTransitions": transitions})
    assert told.getvalue().splitlines() == [
        "-- Starting", "-- Starting: Waiting for instances", "-- Training: In progress", "-- Starting",
    ]  # fmt: skip


def test_a_status_that_passed_is_not_said_again_without_what_a_scheduler_said_of_it():
    told = io.StringIO()
    show = StatusLines(told)
    queued = {"Status": "Pending", "StatusMessage": "Waiting: number 2"}
    first, passed = {**queued, "StatusMessage": "Waiting: number 1"}, {**queued, "StatusMessage": "Waiting"}
    starting = {"Status": "Starting", "StatusMessage": "Preparing"}
    for transitions in ([queued], [first], [passed, starting]):
        show({"TrainingJobStatus": "InProgress", "SecondaryStatusTransitions": transitions})
    assert told.getvalue().splitlines() == [
        "-- Pending: Waiting: number 2", "-- Pending: Waiting: number 1", "-- Starting: Preparing",
    ]  # fmt: skip


def test_what_the_terminal_cannot_show_does_not_end_the_following():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="\n")
    show([LogEvent("algo-1", "50% \u2588\u2588"), LogEvent("algo-1", "done")], stream)
    training = {"Status": "Training", "StatusMessage": "\u2026"}
    StatusLines(stream)({"TrainingJobStatus": "InProgress", "SecondaryStatusTransitions": [training]})
    assert stream.buffer.getvalue() == b"algo-1 | 50% \\u2588\\u2588\nalgo-1 | done\n-- Training: \\u2026\n"


def archive(**members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def test_a_model_is_fetched_and_unpacked(tmp_path):
    _, job = started(Life.completed(model={"saved_model.pb": b"graph", "variables/v.index": b"v"}))
    job.wait()
    folder = job.download_model(tmp_path / "new" / "model")
    assert (folder / "saved_model.pb").read_bytes() == b"graph"
    assert (folder / "variables" / "v.index").read_bytes() == b"v"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    kept = job.download_model(tmp_path / "kept", extract=False)
    assert [path.name for path in kept.iterdir()] == ["model.tar.gz"]


def test_a_model_that_was_not_packed_is_fetched_file_by_file(tmp_path):
    _, job = started(
        Life.completed(model={"saved_model.pb": b"graph", "variables/v.index": b"v"}), disable_output_compression=True
    )
    job.wait()
    folder = job.download_model(tmp_path / "model")
    assert (folder / "saved_model.pb").read_bytes() == b"graph"
    assert (folder / "variables" / "v.index").read_bytes() == b"v"


def archive_with(link, kind, target):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo(link)
        member.type, member.linkname = kind, target
        tar.addfile(member)
    return packed.getvalue()


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(archive(**{"fine": b"x", "../escaped": b"y"}), id="above"),
        pytest.param(archive(**{"fine": b"x", "/tmp/escaped-model": b"y"}), id="absolute"),
        pytest.param(archive(**{"fine": b"x", "a/../../escaped": b"y"}), id="above in the middle"),
        pytest.param(archive_with("link", tarfile.SYMTYPE, "/etc"), id="absolute link"),
        pytest.param(archive_with("link", tarfile.SYMTYPE, "../.."), id="link to above"),
        pytest.param(archive_with("link", tarfile.LNKTYPE, "../secret"), id="hard link"),
    ],
)
def test_a_model_that_would_leave_its_folder_is_refused_and_leaves_nothing(tmp_path, packed):
    _, job = started(Life.completed(model=packed))
    job.wait()
    with pytest.raises(DataError, match=r"^the model s3://out/\S+ holds '\S+', which leads out of its directory\b"):
        job.download_model(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_with_more_files_than_any_model_has_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(artifacts, "MODEL_LIMITS", MODEL_LIMITS._replace(members=2))
    _, job = started(Life.completed(model=archive(a=b"a", b=b"b", c=b"c")))
    job.wait()
    with pytest.raises(
        DataError, match=r"holds more than 2 files, directories and links; download .* \(--no-extract\)"
    ):
        job.download_model(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_an_archive_is_refused_and_leaves_nothing(tmp_path):
    _, job = started(Life.completed(model=archive(a=b"b" * 5000)[:-20]))
    job.wait()
    with pytest.raises(DataError, match=r"^the model s3://out/\S+ is not a complete tar archive"):
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


def test_a_job_without_a_model_says_so(tmp_path):
    _, job = started(Life.failed("AlgorithmError"))
    with pytest.raises(DataError, match="job-1 is InProgress and has no model"):
        job.download_model(tmp_path / "model")


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
        return [summary["TrainingJobName"] for summary in TrainingJob.list(job.platform, **which)]

    assert names() == [f"job-{number}" for number in range(29, 0, -1)]
    assert names(limit=3) == ["job-29", "job-28", "job-27"]
    assert names(name_contains="job-1", limit=2) == ["job-19", "job-18"]
    assert names(status="Failed", limit=2) == ["job-29", "job-27"]
    assert names(created_before=began + timedelta(seconds=30)) == ["job-1"]
    assert names(created_after=began + timedelta(seconds=27.5 * 60)) == ["job-29"]


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ({"status": "Done"}, "status is 'Done'; give one of InProgress"),
        ({"limit": 0}, "limit is 0"),
        ({"platform": "cloud"}, "platform is 'cloud'; give 'local', 'sagemaker' or a platform object"),
    ],
)
def test_a_listing_that_cannot_be_meant_is_refused(which, message):
    with pytest.raises(SpecError, match=message):
        TrainingJob.list(**which)


def test_a_jobs_inputs_are_what_fit_takes():
    fake, _ = started(Life.completed())
    given = {"train": TrainingInput("s3://b/train", distribution="ShardedByS3Key"), "eval": TrainingInput("s3://b/e")}
    made = Estimator(
        "img", "arn:aws:iam::123456789012:role/r", 1, "ml.m5.large", output_path="s3://out", sagemaker_session=fake,
        model_uri="s3://m/model.tar.gz",
    )  # fmt: skip
    job = made.fit(given, wait=False)
    assert job.inputs() == given
    created = [call.arguments for call in fake.calls if call.operation == "create_training_job"][-1]
    again = Estimator.attach(job.name, fake)
    assert again.request(job.inputs(), job_name=job.name) == created


@pytest.mark.parametrize(
    ("name", "value", "coloured"),
    [("NO_COLOR", "1", False), ("NO_COLOR", "", True), ("TERM", "dumb", False)],
)
def test_a_terminal_shows_no_colours_where_none_are_wanted(monkeypatch, name, value, coloured):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)
    stream = Terminal()
    show([LogEvent("algo-1", "done")], stream)
    assert ("\x1b" in stream.getvalue()) == coloured
