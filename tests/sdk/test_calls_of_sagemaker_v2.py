"""Calls as users of the SageMaker SDK v2 write them: the same meaning here, or an error with the next step."""

import warnings

import pytest
from fakes.estimators import estimator

from scriptmode import Estimator, ParameterServer, SpecError
from scriptmode.testing import FakeSageMaker


@pytest.mark.parametrize(
    ("name", "value", "category"),
    [
        ("script_mode", True, DeprecationWarning),
        ("script_mode", False, UserWarning),
        ("training_steps", 1000, UserWarning),
        ("evaluation_steps", 100, UserWarning),
        ("requirements_file", "requirements.txt", UserWarning),
        ("checkpoint_path", "s3://bucket/checkpoints", UserWarning),
        ("run_tensorboard_locally", True, UserWarning),
    ],
)
def test_an_argument_that_v2_ignores_is_warned_of_and_ignored(code, name, value, category):
    with pytest.warns(
        category, match=f"^{name}={value!r} is an argument of SageMaker SDK v1 and has no effect"
    ) as seen:
        made = estimator(code, **{name: value})
    assert [each.filename for each in seen] == [estimator.__code__.co_filename]
    assert made.request(job_name="job-1") == estimator(code).request(job_name="job-1")
    # Neither copied nor warned of again by what sets another argument.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.instance_count = 3


@pytest.mark.parametrize("name", ["training_steps", "evaluation_steps", "compiler_config"])
def test_an_argument_without_effect_may_be_none(code, name):
    assert estimator(code, **{name: None}).request(job_name="job-1") == estimator(code).request(job_name="job-1")


def test_the_training_compiler_is_refused(code):
    with pytest.raises(TypeError, match="no argument 'compiler_config' any more: AWS makes no images"):
        estimator(code, compiler_config=object())


def attached_to(request, **changes):
    """An estimator on a job whose request has fields that the constructor refuses."""
    fake = FakeSageMaker()
    fake.client("sagemaker").create_training_job(**{**request, **changes})
    return Estimator.attach(request["TrainingJobName"], fake)


def test_what_an_attached_job_has_wrong_is_put_right_one_attribute_after_the_other(code):
    request = estimator(code).request("s3://bucket/x", job_name="job-1")
    request["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 60
    request["HyperParameters"] |= {
        "sagemaker_parameter_server_enabled": "true",
        "sagemaker_mpi_enabled": "true",
        "rate": "0.5",
    }
    limits = {"MaxRuntimeInSeconds": 100, "MaxWaitTimeInSeconds": 200}
    made = attached_to(request, EnableManagedSpotTraining=True, StoppingCondition=limits)
    assert made.hyperparameters() == {"rate": 0.5}
    assert made.keep_alive_period_in_seconds == 60
    with pytest.raises(SpecError, match="a job has one, disable the others. The attached job has it so; set it before"):
        made.fit()
    made.distribution = ParameterServer()
    with pytest.raises(SpecError, match="keep_alive_period_in_seconds=60 keeps .* The attached job has it so"):
        made.fit()
    made.keep_alive_period_in_seconds = None
    made.set_hyperparameters(rate=0.25)
    again = made.request("s3://bucket/x", job_name="job-1")
    assert again["HyperParameters"]["rate"] == "0.25"
    assert "sagemaker_mpi_enabled" not in again["HyperParameters"]
    # From now on it is checked like any other.
    with pytest.raises(SpecError, match="instance_count is 0"):
        made.instance_count = 0
    assert made.instance_count == 2


def test_a_job_without_instances_of_its_own_is_attached(code):
    request = estimator(code).request(job_name="job-1")
    del request["ResourceConfig"]["InstanceType"]
    made = attached_to(request)
    with pytest.raises(SpecError, match="instance_type is missing"):
        made.request()
    made.instance_type = "ml.m5.large"
    assert made.request()["ResourceConfig"]["InstanceType"] == "ml.m5.large"


def test_retries_may_have_a_time_to_wait(code):
    made = estimator(code, max_retry_attempts=2, max_run=60, max_wait=120)
    assert made.request()["StoppingCondition"] == {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 120}
    with pytest.raises(SpecError, match="max_wait is 30; give a whole number .* of at least 60"):
        estimator(code, max_retry_attempts=2, max_run=60, max_wait=30)
    with pytest.raises(
        SpecError, match="max_wait is for spot training and for retries; add use_spot_instances=True or"
    ):
        estimator(code, max_wait=10**6)


def test_a_repeated_jobs_retries_may_wait_longer(code):
    fake = FakeSageMaker()
    arguments = {"max_retry_attempts": 2, "max_run": 60, "max_wait": 120, "instance_type": "ml.m5.large"}
    job = estimator(code, **arguments, platform=None, sagemaker_session=fake).fit(wait=False)
    times = job.rerun(max_wait=500).describe()["StoppingCondition"]
    assert times == {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 500}
    assert job.rerun(max_run=100).describe()["StoppingCondition"]["MaxWaitTimeInSeconds"] == 160
