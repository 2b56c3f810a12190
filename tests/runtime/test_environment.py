"""What the platform's files tell, and what is wrong with them."""

import json

import pytest
from fakes.host_folders import write_host

from scriptmode_runtime import environment
from scriptmode_runtime.errors import ConfigurationError
from scriptmode_runtime.variables import script_variables

HETEROGENEOUS = {
    "current_host": "algo-3",
    "current_group_name": "trainers",
    "hosts": ["algo-1", "algo-2", "algo-3"],
    "instance_groups": [
        {"instance_group_name": "data", "instance_type": "ml.c5.xlarge", "hosts": ["algo-1"]},
        {"instance_group_name": "trainers", "instance_type": "ml.p3.2xlarge", "hosts": ["algo-2", "algo-3"]},
    ],
}


def read(base, **environ):
    return environment.read(str(base), environ)


@pytest.mark.parametrize(
    ("switch", "strategy"),
    [
        ({}, "single"),
        ({"sagemaker_parameter_server_enabled": True}, "parameter_server"),
        ({"sagemaker_parameter_server_enabled": False}, "single"),
        ({"sagemaker_multi_worker_mirrored_strategy_enabled": True}, "multi_worker_mirrored"),
        ({"sagemaker_mpi_enabled": True}, "mpi"),
        ({"sagemaker_mpi_enabled": "true"}, "mpi"),
        ({"sagemaker_enable_cloudwatch_metrics": True}, "single"),
    ],
    ids=str,
)
def test_the_switches_choose_the_strategy(tmp_path, switch, strategy):
    assert read(write_host(tmp_path, **switch)).strategy == strategy


@pytest.mark.parametrize(
    ("switches", "said"),
    [
        ({"sagemaker_mpi_enabled": True, "sagemaker_parameter_server_enabled": True}, "two distributions at once"),
        ({"sagemaker_torch_distributed_enabled": True}, "sagemaker_torch_distributed_enabled asks for a distribution"),
    ],
    ids=["conflict", "unknown"],
)
def test_impossible_switches_are_named(tmp_path, switches, said):
    with pytest.raises(ConfigurationError, match=said):
        read(write_host(tmp_path, **switches))


def test_only_the_groups_of_the_distribution_train_together(tmp_path):
    base = write_host(tmp_path, sagemaker_mpi_enabled=True, sagemaker_distribution_instance_groups=["trainers"])
    (base / "input/config/resourceconfig.json").write_text(json.dumps(HETEROGENEOUS))
    here = read(base)
    assert [host.name for host in here.cluster.hosts] == ["algo-2", "algo-3"]
    assert not here.cluster.leads


def test_a_host_outside_the_distribution_trains_alone(tmp_path):
    base = write_host(tmp_path, sagemaker_mpi_enabled=True, sagemaker_distribution_instance_groups=["data"])
    (base / "input/config/resourceconfig.json").write_text(json.dumps(HETEROGENEOUS))
    here = read(base)
    assert here.strategy == "single"
    assert [host.name for host in here.cluster.hosts] == ["algo-3"]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("hyperparameters.json", "{", "hyperparameters.json cannot be read as JSON"),
        ("hyperparameters.json", "[]", "holds a list"),
        ("resourceconfig.json", "{}", "resourceconfig.json has no proper 'hosts'"),
        ("resourceconfig.json", '{"hosts": ["a"], "current_host": "b"}', "current_host 'b' is not one of hosts"),
        ("scriptmode.json", '{"hosts": {"algo-1": {"ports": {"ps": "x"}}}}', "scriptmode.json is malformed"),
    ],
)
def test_a_broken_file_is_named(tmp_path, file, text, said):
    base = write_host(tmp_path)
    (base / "input" / "config" / file).write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        read(base)


def test_no_platform_at_all_says_which_variable_moves_the_root(tmp_path):
    with pytest.raises(ConfigurationError, match="SAGEMAKER_BASE_DIR"):
        read(tmp_path)


def test_a_grace_period_that_is_not_a_number_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="SCRIPTMODE_STOP_GRACE_SECONDS='soon'"):
        read(write_host(tmp_path), SCRIPTMODE_STOP_GRACE_SECONDS="soon")


def test_a_hyperparameter_that_is_not_json_stands_for_itself(tmp_path):
    base = write_host(tmp_path)
    (base / "input/config/hyperparameters.json").write_text('{"a": "plain text", "b": "1"}')
    assert read(base).hyperparameters == {"a": "plain text", "b": 1}


@pytest.mark.parametrize(
    ("hyperparameters", "program"),
    [({}, "image.py"), ({"sagemaker_program": "request.py"}, "image.py")],
    ids=["alone", "beside the request's"],
)
def test_the_images_program_wins(tmp_path, hyperparameters, program):
    assert read(write_host(tmp_path, **hyperparameters), SAGEMAKER_PROGRAM="image.py").program == program


def test_the_images_source_is_for_a_request_without_one(tmp_path):
    environ = {"SAGEMAKER_SUBMIT_DIRECTORY": "/image"}
    of_image, of_request = write_host(tmp_path / "1"), write_host(tmp_path / "2", sagemaker_submit_directory="/request")
    assert read(of_image, **environ).framework_parameters["sagemaker_submit_directory"] == "/image"
    assert read(of_request, **environ).framework_parameters["sagemaker_submit_directory"] == "/request"


@pytest.mark.parametrize(
    ("hyperparameters", "environ", "region"),
    [
        ({}, {}, ""),
        ({}, {"AWS_REGION": "a"}, "a"),
        ({}, {"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, "b"),
        ({"sagemaker_region": "c"}, {"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, "c"),
    ],
    ids=["none", "the platform's", "the default", "the request's"],
)
def test_the_most_specific_region_takes_precedence(tmp_path, hyperparameters, environ, region):
    assert read(write_host(tmp_path, **hyperparameters), **environ).region == region


def test_the_toolkits_own_values_are_not_hyperparameters_of_the_users(tmp_path):
    base = write_host(tmp_path, sagemaker_x=1, _tuning_objective_metric="loss", default_user_module_name="m", epochs=2)
    assert read(base).hyperparameters == {"epochs": 2}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"model_dir": "s3://b/m"}, {"model_dir": "s3://b/m/job-1/model"}),
        ({"model_dir": "/opt/ml/model"}, {"model_dir": "/opt/ml/model"}),
        ({"model_dir": False}, {"model_dir": False}),
        ({}, {}),
    ],
    ids=["shared", "of the host", "none", "not said"],
)
def test_jobs_of_one_tuning_job_share_no_model_dir(tmp_path, given, told):
    # A tuner sends one name with all its jobs.
    base = write_host(tmp_path, _tuning_objective_metric="loss", sagemaker_job_name="tuner", **given)
    assert read(base, TRAINING_JOB_NAME="job-1").hyperparameters == told


@pytest.mark.parametrize(
    ("hyperparameters", "environ", "name"),
    [
        ({}, {}, ""),
        ({"sagemaker_job_name": "sent"}, {}, "sent"),
        ({}, {"TRAINING_JOB_NAME": "job-1"}, "job-1"),
        ({"sagemaker_job_name": "sent"}, {"TRAINING_JOB_NAME": "job-1"}, "job-1"),
    ],
    ids=["none", "the request's", "the platform's", "both"],
)
def test_the_platforms_name_of_the_job_comes_before_the_requests(tmp_path, hyperparameters, environ, name):
    here = read(write_host(tmp_path, **hyperparameters), **environ)
    told = script_variables(here)
    assert here.job_name == told["SAGEMAKER_JOB_NAME"] == name
    assert json.loads(told["SM_TRAINING_ENV"])["job_name"] == (name or None)
