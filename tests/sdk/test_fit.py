"""What `fit` does and says, and how a job is taken up again."""

import json
import sys

import pytest
from fakes.estimators import ROLE, estimator
from fakes.platforms import RecordingPlatform

from scriptmode import (
    MPI,
    Estimator,
    InstanceGroup,
    ParameterServer,
    TensorFlow,
    TrainingJobFailed,
    TrainingJobStopped,
    WaitTimeoutError,
)
from scriptmode.display import log_lines
from scriptmode.source import archive


def test_a_second_fit_is_a_fresh_job_with_its_own_model_dir(code):
    platform = RecordingPlatform()
    made = TensorFlow(
        entry_point="train.py", source_dir=code, role=ROLE, instance_type="ml.m5.large", platform=platform
    )
    first, second = made.fit(wait=False), made.fit(wait=False)
    assert first.name != second.name
    directories = [json.loads(request["HyperParameters"]["model_dir"]) for request in platform.created]
    assert directories == [f"s3://out/{first.name}/model", f"s3://out/{second.name}/model"]


def test_fit_stores_the_archive_where_the_request_says(code):
    platform = RecordingPlatform()
    estimator(code, platform=platform, code_location="s3://mine/code/").fit(wait=False)
    uri = json.loads(platform.created[0]["HyperParameters"]["sagemaker_submit_directory"])
    assert uri.startswith("s3://mine/code/")
    assert list(platform.stored) == [uri]


def test_a_large_source_is_stored_where_the_request_says(code, monkeypatch, capsys):
    monkeypatch.setattr(archive, "_PACKED_AT_ONCE", 0)
    monkeypatch.setattr(log_lines, "_FIRST_SECONDS", 0.0)
    platform = RecordingPlatform()
    made = estimator(code, platform=platform)
    uri = json.loads(made.request()["HyperParameters"]["sagemaker_submit_directory"])
    made.fit(wait=False)
    assert list(platform.stored) == [uri]
    # Without a terminal the progress is one line, and not on the output, which may be JSON.
    assert capsys.readouterr() == ("", "packing 8 bytes of source code ...\n")


@pytest.mark.parametrize(("life", "error"), [("Failed", TrainingJobFailed), ("Stopped", TrainingJobStopped)])
def test_fit_raises_how_the_job_ended(code, life, error):
    platform = RecordingPlatform(["InProgress", life], FailureReason="AlgorithmError: algo-2: exit code 3")
    made = estimator(code, platform=platform)
    with pytest.raises(error) as caught:
        made.fit(logs=False)
    assert caught.value.job_name == made.latest_training_job.name
    assert caught.value.status == life


def test_a_failure_carries_the_reason_whole(code):
    platform = RecordingPlatform(["Failed"], FailureReason="AlgorithmError: algo-2: exit code 3")
    with pytest.raises(TrainingJobFailed, match="algo-2: exit code 3") as caught:
        estimator(code, platform=platform).fit(logs=False)
    assert caught.value.reason == "AlgorithmError: algo-2: exit code 3"


def test_running_over_max_run_is_an_outcome_one_can_test(code):
    platform = RecordingPlatform(["Stopped"], SecondaryStatus="MaxRuntimeExceeded")
    with pytest.raises(TrainingJobStopped, match=r"longer than max_run \(60 s\)") as caught:
        estimator(code, platform=platform, max_run=60).fit(logs=False)
    assert caught.value.secondary_status == "MaxRuntimeExceeded"
    assert f"scriptmode rerun {caught.value.job_name} --max-run 120 (starts from the beginning" in str(caught.value)


def test_a_timeout_leaves_the_job_running(code):
    platform = RecordingPlatform(["InProgress"])
    job = estimator(code, platform=platform).fit(wait=False)
    with pytest.raises(WaitTimeoutError, match="is still running"):
        job.wait(timeout=0.01)
    assert platform.stopped == []


def test_the_log_is_shown_with_hosts_between_the_jobs_name_and_its_end(code, capsys):
    estimator(code).fit(job_name="job-1")
    archive, *said = capsys.readouterr().out.splitlines()
    assert archive.startswith("source archive: 1 file, 107 bytes, at s3://out/source/")
    assert said == [
        "training job job-1 started",
        "algo-1 | one",
        "algo-2 | two",
        "training job job-1: Completed",
    ]


def test_without_logs_nothing_is_printed(code, capsys):
    estimator(code).fit(logs=False)
    assert capsys.readouterr().out == ""


def test_an_interrupt_while_the_job_is_created_still_tells_its_name(code):
    class Interrupted(RecordingPlatform):
        def create(self, request):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="may have been started: scriptmode describe job-1") as caught:
        estimator(code, platform=Interrupted()).fit(job_name="job-1")
    assert caught.value.job_name == "job-1"


@pytest.mark.parametrize("is_interactive", [False, True])
def test_an_interrupted_wait_says_how_to_come_back(code, capsys, monkeypatch, is_interactive):
    if is_interactive:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)

    class Interrupted(RecordingPlatform):
        def log_events(self, name, *, follow, on_description=None):
            raise KeyboardInterrupt
            yield

    platform = Interrupted()
    made = estimator(code, platform=platform)
    with pytest.raises(KeyboardInterrupt):
        made.fit()
    said = capsys.readouterr().err
    name = made.latest_training_job.name
    assert f"scriptmode logs -f {name}" in said
    assert f"scriptmode stop {name}" in said
    assert (f"TrainingJob.attach({name!r}).follow()" in said) == is_interactive
    assert platform.stopped == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"distribution": MPI(4, "-x A=b"), "hyperparameters": {"epochs": 3, "name": "x y"}},
        {"distribution": ParameterServer(coordinator=True), "max_run": 77, "environment": {"A": "b"}},
        {"use_spot_instances": True, "max_run": 5, "max_wait": 6, "checkpoint_s3_uri": "s3://c/k"},
        {"subnets": ["subnet-1"], "security_group_ids": ["sg-1"], "enable_network_isolation": True},
        {
            "instance_count": None,
            "instance_type": None,
            "instance_groups": [InstanceGroup("a", "ml.m5.large", 1), InstanceGroup("b", "ml.c5.large", 2)],
            "distribution": MPI(instance_groups=("b",)),
        },
        {"entry_point": None, "source_dir": None, "hyperparameters": {"k": "10"}},
        {"training_repository_access_mode": "Vpc", "training_repository_credentials_provider_arn": "arn:l"},
        {"enable_infra_check": True, "enable_remote_debug": False, "enable_session_tag_chaining": True},
        {"keep_alive_period_in_seconds": 9, "volume_kms_key": "v", "training_plan": "arn:p", "output_kms_key": "k"},
        {"metric_definitions": [{"Name": "a", "Regex": "b"}], "container_entry_point": ["e"]},
        {"disable_output_compression": True, "instance_placement_config": {"EnableMultipleJobs": True}},
    ],
    ids=[
        "mpi",
        "coordinator",
        "spot",
        "vpc",
        "groups",
        "no script",
        "registry",
        "switches",
        "keys",
        "metrics",
        "output",
    ],
)
def test_attach_sets_up_what_would_start_the_same_job_again(code, arguments):
    platform = RecordingPlatform(["Completed"])
    job = estimator(code, platform=platform, **arguments).fit(wait=False, job_name="job-1")
    attached = Estimator.attach(job.name, platform=platform)
    assert attached.latest_training_job.name == "job-1"
    assert attached.request(job_name="job-1") == platform.created[0]


def test_a_job_attached_to_and_fitted_again_has_a_model_dir_of_its_own(code):
    platform = RecordingPlatform(["Completed"])
    arguments = {"entry_point": "train.py", "source_dir": code, "role": ROLE, "instance_type": "ml.m5.large"}
    TensorFlow(**arguments, platform=platform).fit(wait=False, job_name="job-1")
    Estimator.attach("job-1", platform=platform).fit(wait=False, job_name="job-2")
    directories = [request["HyperParameters"]["model_dir"] for request in platform.created]
    assert directories == ['"s3://out/job-1/model"', '"s3://out/job-2/model"']
