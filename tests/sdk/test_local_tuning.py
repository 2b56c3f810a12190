"""Tuning jobs of this machine: real training jobs, a real agent."""

import json
import os
import shutil
import signal
import time

import pytest
from fakes.output_shapes import against, operation
from fakes.processes import processes_naming, until

from scriptmode import (
    CategoricalParameter,
    ContinuousParameter,
    DataError,
    Estimator,
    IntegerParameter,
    JobExistsError,
    JobNotFoundError,
    Session,
    TrainingJob,
    Tuner,
    TuningJobFailed,
)
from scriptmode_local._store.state import starting_state
from scriptmode_local._tuning.tuning_response import render_describe_response
from scriptmode_local._tuning.tuning_service import LocalTuning
from scriptmode_local._tuning.tuning_store import TuningRecord

pytestmark = pytest.mark.slow

#: The accuracy depends on the hyperparameters; a job with ``wait`` waits for the file of that name.
SCRIPT = """
import argparse, os, pathlib, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--layers", type=int, default=3)
parser.add_argument("--optimizer", default="adam")
parser.add_argument("--wait", default="")
given = parser.parse_args()
if given.optimizer == "bad":
    print("accuracy=0.99")
    raise SystemExit("unknown optimizer")
deadline = time.monotonic() + 600
while given.wait and not pathlib.Path(given.wait).exists() and time.monotonic() < deadline:
    time.sleep(0.05)
best = 1 - abs(given.lr - 0.1) - abs(given.layers - 3) / 10
for step in range(1, 4):
    print(f"accuracy={best - 0.1 / step:.6f}", flush=True)
pathlib.Path(os.environ["SM_MODEL_DIR"], "given").write_text(f"{given.lr} {given.layers}")
"""
RANGES = {"lr": ContinuousParameter(1e-3, 1.0), "layers": IntegerParameter(1, 5)}


@pytest.fixture
def make(jobs, monkeypatch):
    """Make tuners of a script on a platform with a data directory of its own; end what runs afterwards."""
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(jobs.data_dir))

    def create(script=SCRIPT, ranges=RANGES, *, hyperparameters=None, **arguments):
        folder = jobs.folder / "code"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(script)
        estimator = Estimator(
            entry_point="train.py",
            source_dir=str(folder),
            instance_type="local_process",
            hyperparameters=hyperparameters,
            metric_definitions=[{"Name": "accuracy", "Regex": "accuracy=([0-9.-]+)"}],
            platform=jobs.platform,
        )
        return Tuner(estimator, "accuracy", ranges, **arguments)

    yield create
    service = LocalTuning(jobs.platform)
    for summary in service.list():
        service.stop(summary["HyperParameterTuningJobName"])
    until(lambda: not processes_naming(f"{jobs.data_dir}/tuning/"))


def state(jobs, name):
    return json.loads((jobs.data_dir / "tuning" / name / "state.json").read_text())


def until_training(jobs, count):
    """Wait until ``count`` training jobs train."""
    until(lambda: [each["SecondaryStatus"] for each in jobs.platform.list()] == ["Training"] * count)


def agents(jobs):
    return processes_naming(f"{jobs.data_dir}/tuning/")


def test_a_tuning_job_finds_the_best_of_its_training_jobs(make, jobs, capsys):
    tuner = make(max_jobs=4, max_parallel_jobs=2, random_seed=1)
    tuner.fit(job_name="search")
    description = tuner.describe()
    assert description["HyperParameterTuningJobStatus"] == "Completed"
    assert description["TrainingJobStatusCounters"]["Completed"] == 4
    assert description["ObjectiveStatusCounters"] == {"Succeeded": 4, "Pending": 0, "Failed": 0}
    results = tuner.analytics()
    best = max(results, key=lambda row: row["FinalObjectiveValue"])
    assert tuner.best_training_job() == best["TrainingJobName"]
    assert best["FinalObjectiveValue"] == pytest.approx(
        1 - abs(best["lr"] - 0.1) - abs(best["layers"] - 3) / 10 - 0.1 / 3, abs=1e-6
    )
    estimator = tuner.best_estimator()
    assert estimator.hyperparameters() == {"lr": best["lr"], "layers": best["layers"]}
    assert (estimator.latest_training_job.model / "given").read_text() == f"{best['lr']} {best['layers']}"
    out = capsys.readouterr().out
    assert "tuning job search started: 4 training jobs, 2 at once, strategy Bayesian, to maximize accuracy" in out
    assert f"{best['TrainingJobName']} Completed: accuracy={best['FinalObjectiveValue']:.6g} (lr=" in out
    assert "tuning job search: Completed, 4 training jobs, " in out
    assert len({row["lr"] for row in results}) == 4
    assert best["TrainingJobName"] in results.table()
    check_shapes(LocalTuning(jobs.platform))


def check_shapes(service):
    """Compare what the service answers about the tuning job with the model of Amazon SageMaker."""
    answers = {
        "DescribeHyperParameterTuningJob": service.describe("search"),
        "ListTrainingJobsForHyperParameterTuningJob": {"TrainingJobSummaries": service.training_jobs("search")},
        "ListHyperParameterTuningJobs": {"HyperParameterTuningJobSummaries": service.list()},
    }
    for name, answer in answers.items():
        shape = operation(name).output_shape
        assert set(answer) <= set(shape.members)
        assert against(shape, answer) == ""


def test_attach_continues_a_tuning_job_whose_agent_was_killed(make, jobs):
    gate = jobs.folder / "gate"
    tuner = make(max_jobs=4, max_parallel_jobs=2, hyperparameters={"wait": str(gate)}, random_seed=2)
    tuner.fit(job_name="search", wait=False)
    until_training(jobs, 2)
    before = [each["TunedHyperParameters"] for each in state(jobs, "search")["TrainingJobs"]]
    kill_agent(jobs)
    gate.touch()
    attached = Tuner.attach("search")
    attached.wait(logs=False)
    found = state(jobs, "search")["TrainingJobs"]
    assert [each["TrainingJobStatus"] for each in found] == ["Completed"] * 4
    assert [each["TunedHyperParameters"] for each in found[:2]] == before
    assert len({json.dumps(each["TunedHyperParameters"]) for each in found}) == 4
    assert len(jobs.platform.list()) == 4
    # The same seed makes the same search, killed or not.
    again = make(max_jobs=4, max_parallel_jobs=2, strategy="Random", random_seed=2)
    again.fit(logs=False)
    assert again.analytics()[0]["lr"] == attached.analytics()[0]["lr"]


@pytest.mark.parametrize("left", [False, True], ids=["recorded", "created"])
def test_a_training_job_that_an_agent_did_not_start_is_started(make, jobs, left):
    gate = jobs.folder / "gate"
    tuner = make(max_jobs=1, hyperparameters={"wait": str(gate)})
    tuner.fit(job_name="search", wait=False)
    until_training(jobs, 1)
    kill_agent(jobs)
    (job,) = jobs.platform.list()
    folder = jobs.job_folder(job["TrainingJobName"]).path
    kept = jobs.folder / "kept"
    if left:
        # As the service wrote it, without an agent.
        kept.mkdir()
        shutil.copy(folder / "job.json", kept)
    jobs.platform.delete(job["TrainingJobName"])
    record = jobs.data_dir / "tuning" / "search" / "state.json"
    content = state(jobs, "search")
    del content["TrainingJobs"][0]["CreationTime"]
    record.write_text(json.dumps(content))
    if left:
        created = starting_state(folder.name, job["TrainingJobArn"], time.time())
        (kept / "state.json").write_text(json.dumps(created.to_json()))
        (kept / "agent.lock").touch()
        kept.rename(folder)
    gate.touch()
    assert Tuner.attach("search").wait(logs=False)["TrainingJobStatusCounters"]["Completed"] == 1
    assert [each["TrainingJobName"] for each in jobs.platform.list()] == [folder.name]


SCORES = """
import sys
print("score=" + sys.argv[-1])
if sys.argv[-1] == "0.9":
    raise SystemExit("too good")
"""


def test_neither_a_failed_training_job_nor_one_whose_objective_is_not_a_number_is_the_best(make, capsys):
    ranges = {"score": CategoricalParameter(["nan", "inf", "0.9", "0.5"])}
    metrics = [{"Name": "score", "Regex": r"score=(\S+)"}]
    tuner = Tuner(make(SCORES).estimator, "score", ranges, metrics, "Grid", max_parallel_jobs=2)
    tuner.fit()
    assert " Failed: too good (score=0.9)" in capsys.readouterr().out
    rows = {row["score"]: row for row in tuner.analytics()}
    assert {name: (row["TrainingJobStatus"], row["FinalObjectiveValue"]) for name, row in rows.items()} == {
        "nan": ("Completed", None), "inf": ("Completed", None), 0.9: ("Failed", 0.9), 0.5: ("Completed", 0.5),
    }  # fmt: skip
    assert tuner.best_training_job() == rows[0.5]["TrainingJobName"]
    assert tuner.describe()["ObjectiveStatusCounters"] == {"Succeeded": 1, "Pending": 0, "Failed": 3}


def test_a_tuning_job_whose_training_jobs_all_fail_has_failed(make):
    tuner = make(script="raise ValueError('no data')", max_jobs=9, max_parallel_jobs=3)
    with pytest.raises(TuningJobFailed, match="ValueError: no data") as raised:
        tuner.fit(logs=False)
    assert raised.value.description["TrainingJobStatusCounters"]["NonRetryableError"] in (5, 6, 7)
    with pytest.raises(DataError, match="is Failed and has no best training job; no training job that ended has"):
        tuner.best_training_job()


def test_a_training_job_that_an_internal_error_ended_can_be_retried(make):
    failures = ("InternalServerError: the agent was killed", "AlgorithmError: exit code 1")
    ended = {"TrainingJobStatus": "Failed", "ObjectiveStatus": "Failed", "CreationTime": 1.0}
    state = {"CreationTime": 1.0, "LastModifiedTime": 1.0}
    record = TuningRecord(make(max_jobs=2).request(), {}, "arn")
    found = render_describe_response(
        record, {**state, "TrainingJobs": [{**ended, "FailureReason": each} for each in failures]}
    )
    counters = {"Completed": 0, "InProgress": 0, "RetryableError": 1, "NonRetryableError": 1, "Stopped": 0}
    assert found["TrainingJobStatusCounters"] == counters


def test_a_tuning_job_without_values_names_the_expression(make):
    tuner = make(script="print('acc=1')", max_jobs=1)
    with pytest.raises(TuningJobFailed, match="after running 1 training job: the Regex 'accuracy=") as raised:
        tuner.fit(logs=False)
    assert raised.value.description["TrainingJobStatusCounters"]["Completed"] == 1


def test_a_stop_is_obeyed_between_two_starts_and_the_counters_are_true_meanwhile(make, jobs):
    tuner = make("print('accuracy=0.9')", max_jobs=60, max_parallel_jobs=60)
    tuner.fit(wait=False)
    counters = until(lambda: (found := tuner.describe()["TrainingJobStatusCounters"])["Completed"] and found)
    tuner.stop_tuning_job()
    started = len(jobs.platform.list())
    assert sum(counters.values()) < 60, counters
    assert tuner.wait(logs=False)["HyperParameterTuningJobStatus"] == "Stopped"
    assert len(jobs.platform.list()) <= started + 2


def kill_agent(jobs):
    for pid in agents(jobs):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not agents(jobs))


def start_and_kill(make, jobs, **arguments):
    """Start a tuning job, and kill its agent once a training job is there."""
    tuner = make(hyperparameters={"wait": str(jobs.folder / "never")}, **arguments)
    tuner.fit(job_name="search", wait=False)
    until_training(jobs, 1)
    kill_agent(jobs)
    return tuner


def test_the_time_limit_counts_from_the_creation(make, jobs):
    tuner = start_and_kill(make, jobs, max_jobs=3, max_runtime_in_seconds=120)
    record = jobs.data_dir / "tuning" / "search" / "state.json"
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "CreationTime": content["CreationTime"] - 121}))
    assert tuner.wait(logs=False)["HyperParameterTuningJobStatus"] == "Stopped"
    assert [each["TrainingJobStatus"] for each in jobs.platform.list()] == ["Stopped"]


def test_a_tuning_job_whose_agent_cannot_work_has_failed(make, jobs):
    tuner = start_and_kill(make, jobs, max_jobs=3)
    record = jobs.data_dir / "tuning" / "search" / "request.json"
    content = json.loads(record.read_text())
    content["request"]["HyperParameterTuningJobConfig"]["ParameterRanges"]["IntegerParameterRanges"][0]["MinValue"] = (
        "x"
    )
    record.write_text(json.dumps(content))
    with pytest.raises(TuningJobFailed, match=r"InternalServerError: ValueError: .*see .*agent.log"):
        tuner.wait(logs=False)
    until(lambda: [each["TrainingJobStatus"] for each in jobs.platform.list()] == ["Stopped"])


def test_removing_the_record_of_a_tuning_job_stops_it(make, jobs):
    tuner = make(max_jobs=3, hyperparameters={"wait": str(jobs.folder / "never")})
    tuner.fit(job_name="search", wait=False)
    until(jobs.platform.list)
    shutil.rmtree(jobs.data_dir / "tuning" / "search")
    until(lambda: [each["TrainingJobStatus"] for each in jobs.platform.list()] == ["Stopped"])
    until(lambda: not agents(jobs))
    with pytest.raises(JobNotFoundError, match="no tuning job named 'search'"):
        tuner.describe()


def test_prune_keeps_the_source_of_an_interrupted_tuning_job(make, jobs):
    start_and_kill(make, jobs, max_jobs=2)
    for summary in jobs.platform.list():
        jobs.platform.delete(summary["TrainingJobName"])
    (source,) = (jobs.data_dir / "sources").iterdir()
    os.utime(source, (0, 0))
    assert jobs.platform.prune(0).removed == []
    tuner = Tuner.attach("search")
    tuner.stop_tuning_job()
    tuner.wait(logs=False)
    until(lambda: not agents(jobs))
    os.utime(source, (0, 0))
    os.utime(jobs.data_dir / "tuning" / "search", (0, 0))
    until(lambda: not processes_naming(f"{jobs.data_dir}/jobs/"))
    assert {"tuning job", "source"} <= {each.kind for each in jobs.platform.prune(0).removed}
    assert not source.exists()


EARLY = """
import argparse, time
parser = argparse.ArgumentParser()
parser.add_argument("--quality", type=float)
given = parser.parse_args()
for step in range(1, 1000 if given.quality < 0.5 else 5):
    print(f"accuracy={given.quality}", flush=True)
    time.sleep(0.05 if given.quality < 0.5 else 0)
"""


def test_early_stopping_stops_a_training_job_that_is_worse_than_the_median(make):
    ranges = {"quality": CategoricalParameter([0.8, 0.9, 0.1])}
    tuner = make(script=EARLY, ranges=ranges, strategy="Grid", early_stopping_type="Auto")
    tuner.fit(logs=False)
    rows = {row["quality"]: row for row in tuner.analytics()}
    assert [rows[each]["TrainingJobStatus"] for each in (0.8, 0.9, 0.1)] == ["Completed", "Completed", "Stopped"]
    assert tuner.best_training_job() == rows[0.9]["TrainingJobName"]


def test_names_are_unique_and_attach_finds_them(make, jobs):
    tuner = make(max_jobs=1)
    tuner.fit(job_name="search", logs=False)
    with pytest.raises(JobExistsError, match=r"there is a tuning job named 'search' already; use another name, or"):
        tuner.fit(job_name="search", logs=False)
    attached = Tuner.attach("search", platform="local")
    assert attached.best_training_job() == tuner.best_training_job()
    assert Tuner.attach("search", Session(local_mode=True)).describe() == tuner.describe()
    with pytest.raises(JobNotFoundError, match="no tuning job named 'serch' in .*; did you mean 'search'"):
        Tuner.attach("serch", platform="local")
    with pytest.raises(JobNotFoundError, match=r"no training job named 'search' in .*; it is a tuning job: in Python"):
        TrainingJob.attach("search", platform="local")
    damaged = {**state(jobs, "search"), "CreationTime": "x"}
    (jobs.data_dir / "tuning" / "search" / "state.json").write_text(json.dumps(damaged))
    with pytest.raises(DataError, match="'search' cannot be read: .*CreationTime is 'x', not time; remove its"):
        Tuner.attach("search", platform="local").describe()
