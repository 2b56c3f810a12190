"""A user's program does the same whether its jobs are of this process's platform or of a `scriptmode serve`."""

import contextlib
import io
import subprocess
import sys

import pytest
from fakes.processes import until

from scriptmode import (
    CategoricalParameter,
    Estimator,
    JobExistsError,
    JobNotFoundError,
    SpecError,
    TrainingJob,
    TrainingJobFailed,
    TrainingJobStopped,
    Tuner,
    WaitTimeoutError,
)

pytestmark = pytest.mark.slow

TRAINS = """
import os, pathlib, sys
host = os.environ["SM_CURRENT_HOST"]
for step in range(2):
    print(f"step {step} - loss={1 - step / 2} of {host}", flush=True)
data = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"], "part").read_text()
pathlib.Path(os.environ["SM_MODEL_DIR"], host).write_text(f"{data} {sys.argv[1:]}")
"""
LOSS = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
HOSTS = ("algo-1", "algo-2")
#: Of a row of a list.
COLUMNS = {
    "TrainingJobName", "TrainingJobArn", "CreationTime", "TrainingEndTime", "LastModifiedTime", "TrainingJobStatus",
    "SecondaryStatus", "InstanceCount", "LastMetric",
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted(way, tmp_path_factory):
    """A job of two hosts that completed, and what `fit` printed."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "part").write_text("input")
    made = way.estimator(
        TRAINS, instance_count=2, hyperparameters={"rate": 0.5}, metric_definitions=LOSS, tags={"team": "vision"}
    )
    with contextlib.redirect_stdout(io.StringIO()) as out:
        job = made.fit({"train": way.upload(folder)}, job_name="trains")
    return job, out.getvalue()


def test_fit_shows_the_log_between_the_start_and_the_end(fitted):
    _, out = fitted
    stored, begun, *lines = out.splitlines()
    assert stored.startswith("source archive: 1 file, ")
    assert begun == "training job trains started"
    assert lines[-1].startswith("training job trains: Completed")
    for host in HOSTS:
        assert [line for line in lines if line.startswith(f"{host} | step")] == [
            f"{host} | step 0 - loss=1.0 of {host}", f"{host} | step 1 - loss=0.5 of {host}",
        ]  # fmt: skip


def test_an_attached_job_is_described_as_it_was_asked_for(way, fitted):
    job = TrainingJob.attach("trains", platform=way.platform)
    described, asked = job.describe(), {"InstanceType": way.arguments["instance_type"], "InstanceCount": 2}
    assert described["ResourceConfig"].items() >= asked.items()
    assert described["HyperParameters"]["rate"] == "0.5"
    assert (job.status, job.secondary_status, job.ended, job.hosts) == ("Completed", "Completed", True, list(HOSTS))
    assert (job.failure, job.failure_reason, job.events, job.activity()) == (None, None, (), {})
    assert job.training_seconds > 0
    attached = Estimator.attach("trains", platform=job.platform)
    assert (attached.tags, attached.instance_count) == ({"team": "vision"}, 2)
    assert attached.hyperparameters() == {"rate": 0.5}
    with pytest.raises(JobNotFoundError):
        TrainingJob.attach("none", platform=way.platform)


def test_the_log_of_an_ended_job_is_followed_filtered_and_read_from_its_end(fitted):
    job, _ = fitted
    lines = [(line.host, line.message) for line in job.logs()]
    assert sorted(lines) == sorted((line.host, line.message) for line in job.logs(follow=True))
    second = [message for host, message in lines if host == "algo-2"]
    assert [line.message for line in job.logs(hosts=["algo-2"])] == second
    assert [line.message for line in job.logs(hosts=["algo-2"], tail=2)] == second[-2:]
    with pytest.raises(SpecError, match="training job trains has no host 'algo-3'; it has algo-1 to algo-2"):
        list(job.logs(hosts=["algo-3"]))


SPEAKS = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[2])
for number, word in enumerate(("first", "second", "third")):
    if os.environ["SM_CURRENT_HOST"] == f"algo-{number % 2 + 1}":
        while number and not (folder / f"{number - 1}").exists():
            time.sleep(0.05)
        print(word, flush=True)
        time.sleep(0.8)
        (folder / f"{number}").touch()
"""


def test_the_log_of_an_ended_job_is_in_the_order_of_its_times(way, tmp_path, capsys):
    job = way.estimator(SPEAKS, instance_count=2, hyperparameters={"folder": str(tmp_path)}).fit(logs=False)
    lines = [line for line in job.logs() if line.message in ("first", "second", "third")]
    assert [line.message for line in lines] == ["first", "second", "third"]
    assert lines[0].time < lines[1].time < lines[2].time
    job.print_logs(timestamps=True)
    shown = f"{lines[1].time.astimezone().isoformat(timespec='milliseconds')} algo-2 | second\n"
    assert shown in capsys.readouterr().out


def test_a_metric_has_each_value_with_its_host_and_step_and_the_time_of_a_served_line(way, fitted):
    job, _ = fitted
    rows = sorted(job.metrics(), key=lambda row: (row["host"], row["step"]))
    assert len(job.metrics().lines()) == len(rows)
    assert [(row["metric_name"], row["value"], row["host"], row["step"]) for row in rows] == [
        ("loss", value, host, step) for host in HOSTS for step, value in enumerate((1.0, 0.5))
    ]
    described = job.describe()
    for row in rows:
        if way.is_served:
            assert described["TrainingStartTime"] <= row["timestamp"] <= described["TrainingEndTime"]
        else:
            assert row["timestamp"] is None


def test_the_model_is_downloaded(fitted):
    model = fitted[0].model
    assert {path.name: path.read_text() for path in model.iterdir()} == dict.fromkeys(HOSTS, "input ['--rate', '0.5']")


def test_a_job_once_more_has_its_inputs_and_tags_and_a_changed_hyperparameter(fitted):
    job, _ = fitted
    again = job.rerun(job_name="once-more", hyperparameters={"rate": 2}, instance_count=1)
    again.wait()
    assert (again.model / "algo-1").read_text() == "input ['--rate', '2']"
    assert again.inputs() == job.inputs()
    assert Estimator.attach(again.name, platform=job.platform).tags == {"team": "vision"}


def test_jobs_are_listed_by_name_status_and_number(way, fitted):
    def listed(**asked):
        return TrainingJob.list(way.platform, **asked)

    (row,) = listed(name_contains="trains", status="Completed")
    # Jobs of a server may have waited for others.
    assert row.keys() - {"QueueEndTime"} == COLUMNS
    assert (row["TrainingJobName"], row["InstanceCount"], row["LastMetric"]["Value"]) == ("trains", 2, 0.5)
    assert row["CreationTime"] == fitted[0].describe()["CreationTime"]
    assert listed(name_contains="trains", status="Failed") == listed(name_contains="nothing") == []
    assert len(listed(limit=1)) == 1


def test_a_name_that_is_taken_is_refused(way, fitted):
    with pytest.raises(JobExistsError, match="trains"):
        way.estimator("pass").fit(job_name="trains", wait=False)


def test_a_failure_has_its_host_exit_code_and_exception(way):
    # No word of it is hidden.
    error = "KeyError('no ~/.local/share/scriptmode/jobs')"
    exits = way.estimator("raise SystemExit(7)").fit(wait=False)
    failing = way.estimator(f"import os\nif os.environ['SM_CURRENT_HOST'] == 'algo-2': raise {error}", instance_count=2)
    with pytest.raises(TrainingJobFailed, match="^training job fails failed: algo-2, script: exit code 1\n") as raised:
        failing.fit(job_name="fails", logs=False)
    job, failure = failing.latest_training_job, raised.value.failure
    assert failure == job.failure
    assert (failure.host, failure.process, failure.exit_code, failure.exception) == ("algo-2", "script", 1, "KeyError")
    assert failure.traceback.splitlines()[-1] == "KeyError: 'no ~/.local/share/scriptmode/jobs'"
    assert job.failure_reason.endswith("KeyError: 'no ~/.local/share/scriptmode/jobs', exit code: 1")
    assert (job.status, job.model_data, job.events, job.activity()) == ("Failed", None, (), {})
    with pytest.raises(TrainingJobFailed, match="exit code 7") as raised:
        exits.wait()
    assert raised.value.failure.exit_code == 7


SAVES = """
import os, pathlib, signal, sys
def save(*_):
    pathlib.Path(os.environ["SM_MODEL_DIR"], "saved").write_text("in time")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
print("50%", end="", flush=True)
while True: sum(range(10**5))
"""


def test_a_running_job_is_followed_and_watched_and_stops_with_its_model(way, tmp_path, capsys):
    (tmp_path / "part").write_bytes(bytes(3000))
    uri = way.upload(tmp_path)
    job = way.estimator(SAVES, checkpoint_s3_uri=uri).fit({"train": uri}, wait=False)
    assert next(line for line in job.logs(follow=True) if line.message == "up").host == "algo-1"
    # The line may come after the first sample of the CPU.
    activity = until(lambda: (told := job.activity().get("algo-1")) and told.cpu_percent and told.line and told)
    assert (activity.line, activity.memory_bytes > 0) == ("50%", True)
    (read,) = until(lambda: job.platform.progress(job.name))
    assert (read.channel, read.mode, read.done, read.total) == ("train", "File", 3000, 3000)
    assert (job.status, job.platform.queue_position(job.name)) == ("InProgress", 0)
    with pytest.raises(WaitTimeoutError):
        job.wait(0.1)
    assert "warning" not in capsys.readouterr().err
    way.estimator("", checkpoint_s3_uri=f"{uri}/").fit(wait=False)
    assert f"warning: training job {job.name}, which had not ended at the start, writes to" in capsys.readouterr().err
    job.stop()
    with pytest.raises(TrainingJobStopped):
        job.wait()
    assert (job.status, job.secondary_status, job.failure) == ("Stopped", "Stopped", None)
    assert (job.model / "saved").read_text() == "in time"
    # It has ended.
    job.stop()


#: Its second host is lost at the third step, as a machine may be; the first one waits until it is run again.
LOSES_A_HOST = """
import os, pathlib, signal, time
saved = pathlib.Path("/opt/ml/checkpoints/step")
first = int(saved.read_text()) if saved.exists() else 0
print("from", first, flush=True)
if os.environ["SM_CURRENT_HOST"] == "algo-2" and not first:
    saved.write_text("3")
    os.kill(os.getppid(), signal.SIGKILL)
while not first:
    time.sleep(0.1)
"""


def test_a_job_that_lost_a_host_goes_on_from_its_checkpoints_when_it_is_run_again(way, tmp_path):
    (tmp_path / "before").touch()
    made = way.estimator(LOSES_A_HOST, instance_count=2, checkpoint_s3_uri=way.upload(tmp_path))
    with pytest.raises(TrainingJobFailed, match="algo-2: the host's launcher was killed by SIGKILL"):
        made.fit(job_name="loses", logs=False)
    again = TrainingJob.attach("loses", platform=way.platform).rerun()
    again.wait()
    assert [line.message for line in again.logs() if line.message.startswith("from")] == ["from 3"] * 2


TUNED = """
import argparse, time
parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float)
parser.add_argument("--seconds", type=float, default=0)
given = parser.parse_known_args()[0]
print("loss=%f" % abs(given.rate - 0.5))
time.sleep(given.seconds)
"""


def tuner(way, seconds):
    limits = {"objective_type": "Minimize", "max_jobs": 2, "max_parallel_jobs": 2}
    made = way.estimator(TUNED, hyperparameters={"seconds": seconds})
    return Tuner(made, "loss", {"rate": CategoricalParameter([0.25, 0.5])}, LOSS, strategy="Grid", **limits)


def test_a_tuning_job_is_followed_attached_to_and_has_the_best(way, capsys):
    searched = tuner(way, 0)
    searched.fit(job_name="search")
    out = capsys.readouterr().out
    assert "tuning job search started" in out
    assert out.count("Completed: loss=0.25 (rate=0.25)") == 1
    assert "tuning job search: Completed, 2 training jobs" in out
    attached = Tuner.attach("search", platform=way.platform)
    assert attached.request(job_name="search") == searched.request(job_name="search")
    rows = sorted(attached.analytics(), key=lambda row: row["rate"])
    assert [(row["rate"], row["FinalObjectiveValue"]) for row in rows] == [(0.25, 0.25), (0.5, 0.0)]
    assert {row["TrainingJobStatus"] for row in rows} == {"Completed"}
    assert attached.best_training_job() == rows[1]["TrainingJobName"]
    assert attached.best_estimator().hyperparameters()["rate"] == "0.5"
    # It has ended.
    attached.stop_tuning_job()
    with pytest.raises(JobExistsError, match="search"):
        searched.fit(job_name="search", wait=False)
    with pytest.raises(JobNotFoundError):
        Tuner.attach("none", platform=way.platform)


def test_a_tuning_job_stops_with_its_training_jobs(way):
    stopped = tuner(way, 600)
    stopped.fit(job_name="stopped", wait=False)
    stopped.stop_tuning_job()
    found = Tuner.attach("stopped", platform=way.platform).wait(logs=False)
    assert found["HyperParameterTuningJobStatus"] == "Stopped"


#: A program of a user who has the thin package alone.
ALONE = """
import sys
for package in ("local", "serve", "cli", "slurm", "kubernetes"):
    sys.modules[f"scriptmode_{package}"] = None
from scriptmode import Estimator, MissingPackageError, TrainingJob
estimator = Estimator(entry_point=sys.argv[1], metric_definitions=METRICS, **ARGUMENTS)
assert estimator.request(job_name="alone")["AlgorithmSpecification"]["TrainingImage"] == estimator.image_uri
here = Estimator(entry_point=sys.argv[1], instance_type="local_process")
for call in (estimator.plan, here.fit, lambda: Estimator.attach("x"), TrainingJob.list):
    try:
        call()
    except MissingPackageError as error:
        print(error)
job = estimator.fit(job_name="alone")
print([(row["value"], row["host"]) for row in job.metrics()], (job.model / "weights").read_text())
"""


@pytest.mark.parametrize("way", ["sagemaker"], indirect=True)
def test_the_package_without_those_above_it_trains_on_a_server(way, tmp_path):
    script = "import os\nprint('loss=0.5')\nopen(os.environ['SM_MODEL_DIR'] + '/weights', 'w').write('learnt')"
    (tmp_path / "train.py").write_text(script)
    program = f"METRICS, ARGUMENTS = {LOSS}, {way.arguments}{ALONE}"
    command = (sys.executable, "-c", program, tmp_path / "train.py")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "algo-1 | loss=0.5\n" in done.stdout
    needs = " needs scriptmode_local, which is not installed; pip install --force-reinstall --no-deps "
    refused = [line.partition(needs)[0] for line in done.stdout.splitlines() if needs in line]
    assert refused == ["plan()", *["a job on this machine"] * 3]
    assert done.stdout.splitlines()[-1] == "[(0.5, 'algo-1')] learnt"
