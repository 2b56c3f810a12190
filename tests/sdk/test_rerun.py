"""A job once more: the request that comes of a description."""

import pytest
from fakes.sagemaker_jobs import started

from scriptmode import Estimator, JobExistsError, RequestError, SpecError, TrainingJob
from scriptmode._core.request.render import render_request
from scriptmode._core.request.rerun import RerunChanges, rerun_request
from scriptmode.testing import Life, Phase
from scriptmode_runtime.contract import SECRET_VARIABLE

RING = {"multi_worker_mirrored_strategy": {"enabled": True}}
#: What a new job has of its own.
OWN = ("TrainingJobName", "HyperParameters", "Environment")


def requests(fake):
    return [call.arguments for call in fake.calls if call.operation == "create_training_job"]


def test_the_request_is_the_same_but_for_the_name_and_what_bears_it(code):
    fake, job = started(
        Life.completed(training=20), instance_count=2, entry_point="train.py", source_dir=code, distribution=RING, model_dir=True,
        hyperparameters={"epochs": 5}, environment={"K": "V"}, tags={"team": "vision"}, checkpoint_s3_uri="s3://out/c",
        max_run=60, use_spot_instances=True, max_wait=120, subnets=["subnet-1"], security_group_ids=["sg-1"],
        metric_definitions=[{"Name": "loss", "Regex": "a"}], encrypt_inter_container_traffic=True,
        keep_alive_period_in_seconds=None, enable_remote_debug=True,
    )  # fmt: skip
    job.wait()
    again = job.rerun(job_name="job-2", hyperparameters={"rate": 0.1})
    first, second = requests(fake)
    assert (type(again), again.name, again.platform) == (TrainingJob, "job-2", job.platform)
    assert {**second, **dict.fromkeys(OWN)} == {**first, **dict.fromkeys(OWN)}
    changed = {"sagemaker_job_name": '"job-2"', "model_dir": '"s3://out/jobs/job-2/model"', "rate": "0.1"}
    assert second["HyperParameters"] == {**first["HyperParameters"], **changed}
    assert second["Environment"]["K"] == "V"
    assert second["Environment"][SECRET_VARIABLE] != first["Environment"][SECRET_VARIABLE]


@pytest.mark.parametrize("life", [Life.completed(), Life([Phase("Interrupted", 60)])], ids=["starts", "interrupted"])
def test_a_job_that_may_still_write_its_checkpoints_is_not_started_twice(life):
    fake, job = started(life, checkpoint_s3_uri="s3://out/c")
    message = rf"job-1 is InProgress \({job.secondary_status}\) and writes checkpoints to s3://out/c; stop it first: "
    with pytest.raises(SpecError, match=f"{message}scriptmode stop job-1 --wait, or set another checkpoint_s3_uri"):
        job.rerun(job_name="job-2")
    assert len(requests(fake)) == 1
    other = Estimator.attach(job.name, platform=job.platform)
    other.checkpoint_s3_uri = None
    other.fit(wait=False, job_name="job-2")
    assert requests(fake)[1]["TrainingJobName"] == "job-2"


def test_a_running_job_without_checkpoints_is_started_again():
    fake, job = started(Life.completed())
    assert not job.ended
    job.rerun(job_name="job-2")
    assert len(requests(fake)) == 2


def test_what_only_a_description_has_is_left_out_and_a_new_name_has_the_old_ones_base():
    _, job = started(Life.completed())
    name = "mnist-2026-01-31-12-00-00-000"
    description = {**job.describe(), "TrainingJobName": name, "WarmPoolStatus": {"Status": "Reused"}, "VpcConfig": {}}
    body = render_request(rerun_request(description, {"aws:x": "1"}, RerunChanges()))
    of_descriptions = {"TrainingJobArn", "TrainingJobStatus", "ModelArtifacts", "WarmPoolStatus", "VpcConfig", "Tags"}
    assert not of_descriptions & set(body)
    assert body["TrainingJobName"].startswith("mnist-20")
    assert body["TrainingJobName"] != name


def test_a_hyperparameter_that_is_similar_to_one_of_the_job_is_a_warning(code):
    _, job = started(Life.completed(), entry_point="train.py", source_dir=code, hyperparameters={"epochs": 5})
    with pytest.warns(UserWarning, match="job-1 has no hyperparameter 'epoch'; did you mean 'epochs'?"):
        job.rerun(job_name="job-2", hyperparameters={"epoch": 2})


def test_the_number_of_hosts_is_changed_but_not_that_of_groups():
    fake, job = started(Life.completed())
    job.rerun(job_name="job-2", instance_count=3)
    assert requests(fake)[1]["ResourceConfig"]["InstanceCount"] == 3
    description = job.describe()
    description["ResourceConfig"] = {
        "InstanceGroups": [{"InstanceGroupName": "g", "InstanceType": "ml.m5.large", "InstanceCount": 1}]
    }
    with pytest.raises(SpecError, match="job-1 has instance groups; set the instance_groups of Estimator.attach"):
        rerun_request(description, {}, RerunChanges(instance_count=2))


#: A TF_CONFIG.
OF_ONE_HOST = '{"cluster": {"worker": ["localhost:1"]}, "task": {"type": "worker", "index": 0}}'


@pytest.mark.parametrize(
    ("distribution", "tf_config", "is_refused"),
    [
        (RING, OF_ONE_HOST, True), (RING, " ", False), ({"mpi": {"enabled": True}}, OF_ONE_HOST, False),
        (None, OF_ONE_HOST, False),
    ],
)  # fmt: skip
def test_a_tf_config_of_one_host_is_not_that_of_several(code, distribution, tf_config, is_refused):
    fake, job = started(
        Life.completed(),
        entry_point="train.py",
        source_dir=code,
        distribution=distribution,
        environment={"TF_CONFIG": tf_config},
    )
    job.rerun(job_name="job-2", instance_count=1)
    if is_refused:
        with pytest.raises(SpecError, match=r"instance_count is 2, but environment\['TF_CONFIG'\] of training job"):
            job.rerun(job_name="job-3", instance_count=2)
    else:
        job.rerun(job_name="job-3", instance_count=2)
    assert len(requests(fake)) == 3 - is_refused


RETRIES = {"RetryStrategy": {"MaximumRetryAttempts": 2}, "EnableManagedSpotTraining": False}


def limits(*, max_run=100, max_wait=None, **fields):
    given = {"MaxRuntimeInSeconds": max_run, **({"MaxWaitTimeInSeconds": max_wait} if max_wait else {})}
    _, job = started(Life.completed())
    return {**job.describe(), "StoppingCondition": given, "EnableManagedSpotTraining": max_wait is not None, **fields}


@pytest.mark.parametrize(
    ("given", "change", "wanted"),
    [
        ({}, {"max_run": 700}, {"MaxRuntimeInSeconds": 700}),
        ({"max_wait": 150}, {"max_run": 700}, {"MaxRuntimeInSeconds": 700, "MaxWaitTimeInSeconds": 750}),
        ({"max_wait": 150}, {"max_run": 10}, {"MaxRuntimeInSeconds": 10, "MaxWaitTimeInSeconds": 150}),
        ({"max_wait": 150}, {"max_wait": 300}, {"MaxRuntimeInSeconds": 100, "MaxWaitTimeInSeconds": 300}),
        ({"max_wait": 150, **RETRIES}, {"max_run": 140}, {"MaxRuntimeInSeconds": 140, "MaxWaitTimeInSeconds": 190}),
        ({"max_wait": 150, **RETRIES}, {"max_wait": 300}, {"MaxRuntimeInSeconds": 100, "MaxWaitTimeInSeconds": 300}),
        (
            {"StoppingCondition": {"MaxPendingTimeInSeconds": 7200}},
            {"max_run": 700},
            {"MaxRuntimeInSeconds": 700, "MaxPendingTimeInSeconds": 7200},
        ),
    ],
    ids=["time", "spot time", "less time", "spot wait", "time of retries", "wait of retries", "beside another limit"],
)
def test_a_job_that_had_too_little_time_gets_more(given, change, wanted):
    assert render_request(rerun_request(limits(**given), {}, RerunChanges(**change)))["StoppingCondition"] == wanted


def test_a_wait_that_is_shorter_than_the_time_is_refused():
    with pytest.raises(SpecError, match=r"max_wait is 50; give a whole number \(int\) of at least 100"):
        rerun_request(limits(max_wait=150), {}, RerunChanges(max_wait=50))


WRONG = {
    "a wait": ({"max_wait": 300}, SpecError, "max_wait is 300, but training job job-1 has neither spot instances nor"),
    "a name": ({"job_name": "a_b"}, SpecError, "job_name 'a_b' is not 1 to 63 letters"),
    "a name that is taken": ({"job_name": "job-1"}, JobExistsError, "job-1"),
    "a hyperparameter": ({"hyperparameters": {"x": float("nan")}}, SpecError, "hyperparameter 'x' is nan"),
    "too long": (
        {"hyperparameters": {"x": "y" * 3000}},
        RequestError,
        "HyperParameters.x has 3,000 characters; the most is 2,500",
    ),
}


@pytest.mark.parametrize(("change", "error", "message"), WRONG.values(), ids=list(WRONG))
def test_a_wrong_change_starts_nothing(change, error, message):
    fake, job = started(Life.completed())
    with pytest.raises(error, match=message):
        job.rerun(**change)
    assert {call["TrainingJobName"] for call in requests(fake)} == {"job-1"}
