"""What the platform's files tell, what is wrong with them, and what the script gets of it: arguments and ``SM_*`` values."""

import json

import pytest
from fakes.host_folders import HOSTILE_NAMES, write_host

from scriptmode_runtime import _environment as environment
from scriptmode_runtime._launch.variables import script_arguments, script_variables
from scriptmode_runtime._values.errors import ConfigurationError


def read(base, **environ):
    return environment.read(str(base), environ)


@pytest.mark.parametrize(
    ("switch", "strategy"),
    [
        ({"sagemaker_enable_cloudwatch_metrics": True}, "single"),
        ({"sagemaker_parameter_server_enabled": True}, "parameter_server"),
        ({"sagemaker_parameter_server_enabled": False}, "single"),
        ({"sagemaker_multi_worker_mirrored_strategy_enabled": True}, "multi_worker_mirrored"),
        ({"sagemaker_mpi_enabled": "true"}, "mpi"),
    ],
    ids=str,
)
def test_the_switches_choose_the_strategy(tmp_path, switch, strategy):
    assert read(write_host(tmp_path, **switch)).strategy == strategy


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"sagemaker_mpi_enabled": True, "sagemaker_parameter_server_enabled": True}, "two distributions at once"),
        ({"sagemaker_torch_distributed_enabled": True}, "sagemaker_torch_distributed_enabled asks for a distribution"),
    ],
    ids=["conflict", "unknown"],
)
def test_impossible_switches_are_named(tmp_path, switches, message):
    with pytest.raises(ConfigurationError, match=message):
        read(write_host(tmp_path, **switches))


def test_a_host_outside_the_distribution_trains_alone(tmp_path):
    base = write_host(tmp_path, sagemaker_mpi_enabled=True, sagemaker_distribution_instance_groups=["data"])
    resources = {**GROUPS, "current_host": "algo-3", "current_group_name": "trainers"}
    (base / "input/config/resourceconfig.json").write_text(json.dumps(resources))
    here = read(base)
    assert here.strategy == "single"
    assert [host.name for host in here.cluster.hosts] == ["algo-3"]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("hyperparameters.json", "{", "hyperparameters.json cannot be read as JSON"),
        ("hyperparameters.json", "[]", "holds a list"),
        ("resourceconfig.json", "{}", "resourceconfig.json has no proper 'hosts'"),
        ("resourceconfig.json", '{"hosts": ["a"], "current_host": "b"}', "current_host 'b' is not one of hosts"),
        ("scriptmode.json", '{"hosts": {"algo-1": {"ports": {"ps": "x"}}}}', "scriptmode.json is malformed"),
    ],
)
def test_a_broken_file_is_named(tmp_path, file, text, message):
    base = write_host(tmp_path)
    (base / "input" / "config" / file).write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        read(base)


def test_a_missing_platform_and_an_invalid_grace_period_name_their_variables(tmp_path):
    with pytest.raises(ConfigurationError, match="SAGEMAKER_BASE_DIR"):
        read(tmp_path)
    with pytest.raises(ConfigurationError, match="SCRIPTMODE_STOP_GRACE_SECONDS='soon'"):
        read(write_host(tmp_path), SCRIPTMODE_STOP_GRACE_SECONDS="soon")


def test_hyperparameters_are_the_users_own_and_text_that_is_not_json_stands_for_itself(tmp_path):
    base = write_host(tmp_path, sagemaker_x=1, _tuning_objective_metric="loss", default_user_module_name="m", epochs=2)
    file = base / "input/config/hyperparameters.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "text": "plain text", "nothing": "null"}))
    assert read(base).hyperparameters == {"epochs": 2, "text": "plain text", "nothing": None}
    assert script_variables(read(base))["SM_HP_NOTHING"] == ""


def test_the_images_program_wins_and_its_source_is_for_a_request_without_one(tmp_path):
    environ = {"SAGEMAKER_SUBMIT_DIRECTORY": "/image", "SAGEMAKER_PROGRAM": "image.py"}
    requested = {"sagemaker_program": "request.py", "sagemaker_submit_directory": "/request"}
    of_image, of_request = (
        read(write_host(tmp_path / name, **values), **environ) for name, values in (("1", {}), ("2", requested))
    )
    assert (of_image.program, of_request.program) == ("image.py", "image.py")
    assert of_image.framework_parameters["sagemaker_submit_directory"] == "/image"
    assert of_request.framework_parameters["sagemaker_submit_directory"] == "/request"


REQUESTED = {"sagemaker_region": "c", "sagemaker_job_name": "sent"}
PLATFORMS = {"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b", "TRAINING_JOB_NAME": "job-1"}


@pytest.mark.parametrize(
    ("hyperparameters", "environ", "region", "name"),
    [
        ({}, {}, "", ""),
        ({}, {"AWS_REGION": "a"}, "a", ""),
        ({"sagemaker_job_name": "sent"}, {"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, "b", "sent"),
        (REQUESTED, PLATFORMS, "c", "job-1"),
    ],
    ids=["none", "the platform's region", "the request's name", "all"],
)
def test_the_requests_region_and_the_platforms_name_of_the_job_come_first(
    tmp_path, hyperparameters, environ, region, name
):
    here = read(write_host(tmp_path, **hyperparameters), **environ)
    variables = script_variables(here)
    assert here.region == region
    assert here.job_name == variables["SAGEMAKER_JOB_NAME"] == name
    assert json.loads(variables["SM_TRAINING_ENV"])["job_name"] == (name or None)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"model_dir": "s3://b/m"}, {"model_dir": "s3://b/m/job-1/model"}),
        ({"model_dir": "/opt/ml/model"}, {"model_dir": "/opt/ml/model"}),
        ({"model_dir": False}, {"model_dir": False}),
        ({}, {}),
    ],
    ids=["shared", "of the host", "none", "not given"],
)
def test_jobs_of_one_tuning_job_share_no_model_dir(tmp_path, given, expected):
    # A tuner sends one name with all its jobs.
    base = write_host(tmp_path, _tuning_objective_metric="loss", sagemaker_job_name="tuner", **given)
    assert read(base, TRAINING_JOB_NAME="job-1").hyperparameters == expected


@pytest.mark.parametrize(
    ("hyperparameters", "words"),
    [
        pytest.param({}, (), id="none"),
        pytest.param({"b": 2, "rate": 0.1, "a": 1}, ("-a", "1", "-b", "2", "--rate", "0.1"), id="sorted"),
        pytest.param({"flag": True, "nothing": None}, ("--flag", "True", "--nothing", ""), id="true and null"),
        pytest.param({"layers": [1, "a"]}, ("--layers", "[1, 'a']"), id="list"),
        pytest.param({"opt": {"b": 1, "a": "x"}}, ("--opt", "a=x,b=1"), id="dict"),
        *(pytest.param({"text": name}, ("--text", name), id=repr(name)) for name in HOSTILE_NAMES),
    ],
)
def test_each_hyperparameter_is_two_arguments(hyperparameters, words):
    assert script_arguments(hyperparameters) == words


def test_every_variable_of_the_contract_is_there(tmp_path):
    base = tmp_path / "ml"
    write_host(
        base, "algo-2", ["algo-1", "algo-2"], channels=["train", "eval"], sagemaker_program="dir/train.py",
        sagemaker_parameter_server_enabled=True, sagemaker_container_log_level=10, _tuning_objective_metric="loss",
        epochs=3, text='say "x"',
    )  # fmt: skip
    here = read(base, TRAINING_JOB_NAME="job-1", AWS_REGION="us-west-2")
    group = {"homogeneousCluster": here.resource_config["instance_groups"][0]}
    seen = script_variables(here)
    expected = {
        "SM_HOSTS": '["algo-1","algo-2"]', "SM_CURRENT_HOST": "algo-2", "SM_NETWORK_INTERFACE_NAME": "eth0",
        "SM_CURRENT_INSTANCE_TYPE": "ml.c5.xlarge", "SM_CURRENT_INSTANCE_GROUP": "homogeneousCluster",
        "SM_CURRENT_INSTANCE_GROUP_HOSTS": '["algo-1","algo-2"]', "SM_INSTANCE_GROUPS": '["homogeneousCluster"]',
        "SM_INSTANCE_GROUPS_DICT": json.dumps(group, sort_keys=True, separators=(",", ":")),
        "SM_DISTRIBUTION_INSTANCE_GROUPS": '["homogeneousCluster"]', "SM_IS_HETERO": "false",
        "SM_HPS": '{"epochs":3,"text":"say \\"x\\""}', "SM_HP_EPOCHS": "3",
        "SM_USER_ARGS": '["--epochs","3","--text","say \\"x\\""]', "SM_USER_ENTRY_POINT": "dir/train.py",
        "SM_MODULE_NAME": "dir/train", "SM_MODULE_DIR": f"{base}/code", "SM_LOG_LEVEL": "10",
        "SM_FRAMEWORK_PARAMS": '{"sagemaker_parameter_server_enabled":true}', "SM_FRAMEWORK_MODULE": "",
        "SM_CHANNELS": '["eval","train"]', "SM_CHANNEL_TRAIN": f"{base}/input/data/train",
        "SM_CHANNEL_EVAL": f"{base}/input/data/eval", "SM_INPUT_DIR": f"{base}/input",
        "SM_INPUT_CONFIG_DIR": f"{base}/input/config", "SM_OUTPUT_DIR": f"{base}/output",
        "SM_OUTPUT_DATA_DIR": f"{base}/output/data", "SM_OUTPUT_INTERMEDIATE_DIR": f"{base}/output/intermediate",
        "SM_MODEL_DIR": f"{base}/model", "SM_NUM_NEURONS": "0", "SAGEMAKER_JOB_NAME": "job-1",
        "SAGEMAKER_REGION": "us-west-2", "CURRENT_HOST": "algo-2",
    }  # fmt: skip
    assert {name: seen[name] for name in expected} == expected
    assert {"SM_NUM_CPUS", "SM_NUM_GPUS", "SM_RESOURCE_CONFIG", "SM_INPUT_DATA_CONFIG", "SM_TRAINING_ENV"} <= set(seen)
    assert "SM_TOPOLOGY" not in seen
    training_env = json.loads(seen["SM_TRAINING_ENV"])
    assert training_env["hyperparameters"] == {"epochs": 3, "text": 'say "x"'}
    assert training_env["is_master"] is False
    assert training_env["channel_input_dirs"] == {name: f"{base}/input/data/{name}" for name in ("train", "eval")}


def test_a_variable_too_large_for_a_process_is_left_out(tmp_path):
    seen = script_variables(read(write_host(tmp_path, **{f"key{n}": "x" * 2500 for n in range(100)})))
    assert "SM_HPS" not in seen
    assert seen["SM_HP_KEY99"] == "x" * 2500


MIRRORED = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
TOGETHER = "sagemaker_distribution_instance_groups"
GROUPS = {
    "hosts": ["algo-1", "algo-2", "algo-3"],
    "instance_groups": [
        {"instance_group_name": "trainers", "instance_type": "ml.p3.2xlarge", "hosts": ["algo-2", "algo-3"]},
        {"instance_group_name": "data", "instance_type": "ml.c5.xlarge", "hosts": ["algo-1"]},
    ],
}


@pytest.mark.parametrize(
    ("host", "group", "switches", "together", "lead"),
    [
        ("algo-2", None, {}, ["algo-1", "algo-2", "algo-3"], "algo-1"),
        ("algo-1", "data", {}, [], "algo-1"),
        ("algo-3", "trainers", MIRRORED, ["algo-2", "algo-3"], "algo-2"),
        ("algo-1", "data", {**MIRRORED, TOGETHER: ["trainers"]}, ["algo-2", "algo-3"], "algo-2"),
    ],
    ids=["no groups", "no distribution", "a group of its own", "beside the group"],
)
def test_the_script_gets_the_training_hosts_and_their_first(tmp_path, host, group, switches, together, lead):
    base = write_host(tmp_path / "ml", **switches)
    groups = {**GROUPS, "current_group_name": group} if group else {"hosts": GROUPS["hosts"]}
    (base / "input/config/resourceconfig.json").write_text(json.dumps({**groups, "current_host": host}))
    training_env = json.loads(script_variables(read(base))["SM_TRAINING_ENV"])
    assert training_env["distribution_hosts"] == together
    assert (training_env["master_hostname"], training_env["is_master"]) == (lead, lead == host)
