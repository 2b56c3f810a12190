"""A training job that was started: waiting, its status as it goes on, how it ended, its metrics and its model."""

import io
import tarfile
from datetime import timedelta

import pytest
from fakes.sagemaker_jobs import started

from scriptmode import (
    CapacityError,
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
from scriptmode.testing import Life, Phase

SPOT = {"use_spot_instances": True, "max_run": 1000, "max_wait": 2000}


def test_waiting_ends_within_one_poll_of_the_jobs_end():
    fake, job = started(Life.completed(training=301))
    description = job.wait()
    assert description["TrainingJobStatus"] == "Completed"
    assert 391 <= fake.clock.now() <= 391 + job.platform.poll_seconds


def test_waiting_outlives_throttling_and_lost_connections():
    fake, job = started(Life.completed())
    fake.throttle("describe_training_job", times=5, after=2)
    fake.disconnect("describe_training_job", times=5, after=4)
    assert job.wait()["TrainingJobStatus"] == "Completed"


def test_waiting_gives_up_on_a_platform_that_never_answers_again():
    fake, job = started(Life.completed())
    fake.disconnect("describe_training_job", times=10_000, after=2)
    with pytest.raises(TransientError, match="goes on. Follow it again: scriptmode logs -f job-1"):
        job.wait()


def test_patience_of_the_callers_ends_at_its_second():
    fake, job = started(Life.completed())
    with pytest.raises(WaitTimeoutError, match=r"InProgress \(Starting\) after 12 s"):
        job.wait(timeout=12)
    assert fake.clock.now() == pytest.approx(12)


@pytest.mark.parametrize(
    ("life", "arguments", "error", "message"),
    [
        pytest.param(Life.failed("AlgorithmError: boom"), {}, TrainingJobFailed, "job-1 failed: AlgorithmError: boom", id="failed"),
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


def test_metrics_are_a_table():
    metrics = {"loss": [(100, 0.9), (110, 0.7), (170, 0.5)], "accuracy": [(170, 0.8)]}
    definitions = [{"Name": "loss", "Regex": "loss=(.*)"}, {"Name": "accuracy", "Regex": "accuracy=(.*)"}]
    _, job = started(Life.completed(metrics=metrics), metric_definitions=definitions)
    job.wait()
    rows = job.metrics()
    assert [(row["metric_name"], round(row["value"], 6)) for row in rows] == [
        ("loss", 0.8), ("loss", 0.5), ("accuracy", 0.8),
    ]  # fmt: skip
    assert rows[0]["timestamp"] < rows[1]["timestamp"]
    assert all(set(row) == {"metric_name", "value", "timestamp"} for row in rows)


def test_a_job_without_metrics_asks_nobody():
    fake, job = started(Life.completed())
    job.wait()
    fake.calls.clear()
    assert job.metrics() == []
    assert [call.operation for call in fake.calls] == ["describe_training_job"]


def test_metrics_that_cloudwatch_has_no_more_leave_their_last_value():
    definitions = [{"Name": "loss", "Regex": "loss=(.*)"}]
    fake, job = started(Life.completed(metrics={"loss": [(100, 0.9), (170, 0.5)]}), metric_definitions=definitions)
    job.wait()
    fake.clock.advance(timedelta(days=500).total_seconds())
    assert [(row["metric_name"], row["value"]) for row in job.metrics()] == [("loss", 0.5)]


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


@pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped-model", "a/../../escaped"])
def test_a_model_that_would_leave_its_folder_is_refused_and_leaves_nothing(tmp_path, name):
    _, job = started(Life.completed(model=archive(**{"fine": b"x", name: b"y"})))
    job.wait()
    with pytest.raises(DataError, match="leads out of its folder"):
        job.download_model(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_goes_into_no_folder_with_something_in_it(tmp_path):
    _, job = started(Life.completed(model={"a": b"b"}))
    job.wait()
    (tmp_path / "mine").touch()
    with pytest.raises(DataError, match="is not an empty folder"):
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
        ({"platform": "cloud"}, "platform is 'cloud'; say 'local' or 'sagemaker'"),
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
