"""``scriptmode scale`` and ``Estimator.scale`` on real jobs."""

import json
import os
import signal
import subprocess
import time

import pytest
from fakes.command_line import PROGRAM, program
from fakes.processes import until

from scriptmode import MPI, Estimator, InstanceGroup, SpecError, TrainingJob

pytestmark = pytest.mark.slow
#: With --sleep, no step is faster; with --fail, a job of that number of hosts fails at its seventh step.
TRAIN = """
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
for name, default in (("--sleep", 0.02), ("--last", 10000), ("--fail", 0)):
    parser.add_argument(name, type=float, default=default)
given = parser.parse_args()
hosts = len(json.loads(os.environ["SM_HOSTS"]))
print("batch_size=32", flush=True)
time.sleep(0.5)
for step in range(1, int(given.last) + 1):
    time.sleep(given.sleep)
    print(f"step {step}: loss={1 / step}", flush=True)
    if step == 7 and hosts == given.fail:
        sys.exit("no luck with this size")
"""


@pytest.fixture(scope="module")
def folder(user_folder):
    (user_folder / "train.py").write_text(TRAIN)
    (user_folder / "silent.py").write_text("print('hello')")
    return user_folder


def measured(*words):
    done = program("scale", "train.py", "--json", *words)
    return json.loads(done.stdout), done


def test_each_size_has_a_rate_and_each_job_is_stopped_at_the_last_step(folder):
    found, done = measured("--hosts", "1,2", "--layouts", "single,mpi", "--steps", "100")
    assert done.returncode == 0
    assert f"share its {len(os.sched_getaffinity(0))} core" in found["limitation"]
    assert [(row["layout"], row["hosts"]) for row in found["rows"]] == [("single", 1), ("single", 2), ("mpi", 1), ("mpi", 2)]  # fmt: skip
    for row in found["rows"]:
        # 50 steps a second, without the half second of the warm-up; a busy machine is slower, and shows steps in groups.
        assert 1 < row["steps_per_second"] < 52
        assert 40 < row["steps"] <= 88
        trainers = row["hosts"] if row["layout"] == "mpi" else 1
        assert row["batches_per_second"] == pytest.approx(trainers * row["steps_per_second"])
        assert row["images_per_second"] == pytest.approx(32 * row["batches_per_second"])
        job = TrainingJob.attach(row["job"])
        assert job.status == "Stopped"
        assert max(int(line.message.split("step ")[1].split(":")[0]) for line in job.logs() if "step " in line.message) < 200  # fmt: skip
    for one, two in (found["rows"][:2], found["rows"][2:]):
        assert one["efficiency"] == 1
        assert two["efficiency"] == pytest.approx(two["batches_per_second"] / 2 / one["batches_per_second"])


def test_a_script_that_ends_before_the_last_step_is_measured_as_far_as_it_went(folder):
    (row,) = measured("--hosts", "1", "--steps", "100", "--", "--last", "20")[0]["rows"]
    assert (row["problem"], TrainingJob.attach(row["job"]).status) == ("", "Completed")
    assert 2 <= row["steps"] <= 20


def test_a_size_that_fails_says_why_and_the_others_are_measured(folder):
    found, done = measured("--hosts", "1,2,3", "--steps", "20", "--", "--fail", "2")
    assert done.returncode == 1
    assert [bool(row["steps_per_second"]) for row in found["rows"]] == [True, False, True]
    problem = found["rows"][1]["problem"]
    assert f"training job {found['rows'][1]['job']} failed: algo-" in problem
    assert "exit code 1: no luck with this size; read its log: scriptmode logs " in problem
    assert problem in done.stderr


def test_a_script_without_steps_is_an_error_with_the_next_step(folder):
    done = program("scale", "silent.py")
    assert (done.returncode, done.stdout) == (1, "")
    assert "names no step in its log; print(f'step {step}', flush=True)" in done.stderr
    assert done.stderr.count(" started\n") == 1


def test_steps_of_another_form_are_values_of_a_metric(folder):
    (folder / "batches.py").write_text(
        "import time\nfor n in range(1000):\n time.sleep(0.02)\n print('seen', n, flush=True)"
    )
    done = program("scale", "batches.py", "--hosts", "1", "--steps", "30", "--metric", "step=seen ([0-9]+)", "--json")
    found = json.loads(done.stdout)
    assert 2 <= found["rows"][0]["steps"] <= 30
    # Without a batch size there are no images.
    assert found["rows"][0]["images_per_second"] is None


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_to_the_client_stops_the_job_that_runs(folder, number, code):
    before = {each["TrainingJobName"] for each in TrainingJob.list()}
    with subprocess.Popen([PROGRAM, "scale", "train.py", "--hosts", "1", "--steps", "9999"], stderr=subprocess.DEVNULL) as process:  # fmt: skip
        (name,) = until(lambda: {each["TrainingJobName"] for each in TrainingJob.list()} - before)
        job = TrainingJob.attach(name)
        until(lambda: any("step 3" in line.message for line in job.logs()))
        process.send_signal(number)
        assert process.wait(timeout=600) == code
    until(lambda: job.ended)
    assert job.status == "Stopped"


def test_a_script_that_ignores_sigterm_is_killed_after_seconds(folder):
    (folder / "stays.py").write_text(f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{TRAIN}")
    began = time.monotonic()
    assert program("scale", "stays.py", "--hosts", "1", "--steps", "20").returncode == 0
    # Jobs that are started by fit have 120 s.
    assert time.monotonic() - began < 100


def test_an_estimator_keeps_its_own_settings_and_writes_no_results(folder):
    place = folder / "results"
    estimator = Estimator(
        entry_point="train.py", instance_type="local_process", instance_count=3, distribution=MPI(processes_per_host=2),
        output_path=place.as_uri(), checkpoint_s3_uri=(folder / "checkpoints").as_uri(),
        max_retry_attempts=2, use_spot_instances=True, max_run=3600, max_wait=7200,
    )  # fmt: skip
    found = estimator.scale(hosts=[1], steps=20)
    (row,) = found.rows
    assert row.layout == "mpi"
    assert row.batches_per_second == pytest.approx(2 * row.steps_per_second)
    assert (estimator.instance_count, estimator.output_path, place.exists()) == (3, place.as_uri(), False)
    described = TrainingJob.attach(row.job).describe()
    assert not {"CheckpointConfig", "RetryStrategy"} & described.keys()
    assert described["EnableManagedSpotTraining"] is False
    first, head, line = str(found).splitlines()
    assert first == found.limitation
    assert first.startswith("The hosts are processes of this machine and share its ")
    assert head.split() == ["LAYOUT", "HOSTS", "STEPS/S", "IMAGES/S", "EFFICIENCY"]
    assert line.split()[:2] == ["mpi", "1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hosts": [0]}, "hosts is 0; give a whole number (int) of at least 1"),
        ({"hosts": []}, "hosts is empty"),
        ({"layouts": ["mpj"]}, "layouts has 'mpj'; did you mean 'mpi'?"),
        ({"steps": 1}, "steps is 1; give a whole number (int) of at least 2"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"hosts": 0}, "hosts is 0; give a whole number"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_a_job_starts(folder, arguments, message):
    before = len(TrainingJob.list())
    with pytest.raises(SpecError) as error:
        Estimator(entry_point="train.py", instance_type="local_process").scale(**arguments)
    assert message in str(error.value)
    assert len(TrainingJob.list()) == before


def test_groups_of_hosts_have_no_other_sizes(folder):
    groups = [InstanceGroup("one", "local_process", 1), InstanceGroup("two", "local_process", 1)]
    with pytest.raises(SpecError, match="instance_groups have a number of hosts each; measure an estimator with an"):
        Estimator(entry_point="train.py", instance_groups=groups).scale()


def test_jobs_that_are_billed_are_not_started(folder):
    estimator = Estimator(entry_point="train.py", instance_type="ml.m5.xlarge", role="arn:aws:iam::123456789012:role/r")
    with pytest.raises(SpecError, match="instance_type is 'ml.m5.xlarge'; measure on this machine"):
        estimator.scale()
