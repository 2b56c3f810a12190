"""Hyperparameters as the script's arguments, and ``SM_*`` values."""

import json

import pytest
from fakes.host_folders import HOSTILE_NAMES, write_host

from scriptmode_runtime import environment
from scriptmode_runtime.errors import ConfigurationError
from scriptmode_runtime.variables import script_arguments, script_variables


@pytest.mark.parametrize(
    ("hyperparameters", "words"),
    [
        pytest.param({}, (), id="none"),
        pytest.param({"epochs": 3}, ("--epochs", "3"), id="number"),
        pytest.param({"b": 2, "a": 1}, ("-a", "1", "-b", "2"), id="one letter, sorted"),
        pytest.param({"rate": 0.1}, ("--rate", "0.1"), id="float"),
        pytest.param({"flag": True}, ("--flag", "True"), id="true"),
        pytest.param({"nothing": None}, ("--nothing", ""), id="null"),
        pytest.param({"layers": [1, "a"]}, ("--layers", "[1, 'a']"), id="list"),
        pytest.param({"opt": {"b": 1, "a": "x"}}, ("--opt", "a=x,b=1"), id="dict"),
        pytest.param({"text": "a b"}, ("--text", "a b"), id="blank"),
        pytest.param({"empty": ""}, ("--empty", ""), id="empty"),
        pytest.param({"": "nameless"}, ("", "nameless"), id="no name"),
        *(pytest.param({"text": name}, ("--text", name), id=repr(name)) for name in HOSTILE_NAMES),
    ],
)
def test_each_hyperparameter_is_two_arguments(hyperparameters, words):
    assert script_arguments(hyperparameters) == words


@pytest.mark.parametrize("value", ["a\0b", "\ud800"], ids=["zero byte", "half a character"])
def test_what_no_argument_can_hold_is_refused_by_name(value):
    with pytest.raises(ConfigurationError, match="hyperparameter 'text'"):
        script_arguments({"text": value})


def read(tmp_path, environ=None, **kwargs):
    base = write_host(tmp_path / "ml", **kwargs)
    return environment.read(str(base), environ or {})


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        pytest.param("text", "text", id="string as it is"),
        pytest.param(None, "", id="null"),
        pytest.param(True, "true", id="true"),
        pytest.param(1.5, "1.5", id="float"),
        pytest.param({"b": [1, 2], "a": None}, '{"a":null,"b":[1,2]}', id="compact and sorted"),
    ],
)
def test_a_hyperparameter_is_a_variable_of_its_own(tmp_path, value, spelled):
    assert script_variables(read(tmp_path, key=value))["SM_HP_KEY"] == spelled


def test_every_variable_of_the_contract_is_there(tmp_path):
    base = tmp_path / "ml"
    here = read(
        tmp_path,
        {"TRAINING_JOB_NAME": "job-1", "AWS_REGION": "us-west-2"},
        name="algo-2",
        hosts=["algo-1", "algo-2"],
        channels=["train", "eval"],
        sagemaker_program="dir/train.py",
        sagemaker_parameter_server_enabled=True,
        sagemaker_container_log_level=10,
        _tuning_objective_metric="loss",
        epochs=3,
        text='say "x"',
    )
    group = {"homogeneousCluster": here.resource_config["instance_groups"][0]}
    seen = script_variables(here)
    expected = {
        "SM_HOSTS": '["algo-1","algo-2"]',
        "SM_CURRENT_HOST": "algo-2",
        "SM_NETWORK_INTERFACE_NAME": "eth0",
        "SM_CURRENT_INSTANCE_TYPE": "ml.c5.xlarge",
        "SM_CURRENT_INSTANCE_GROUP": "homogeneousCluster",
        "SM_CURRENT_INSTANCE_GROUP_HOSTS": '["algo-1","algo-2"]',
        "SM_INSTANCE_GROUPS": '["homogeneousCluster"]',
        "SM_INSTANCE_GROUPS_DICT": json.dumps(group, sort_keys=True, separators=(",", ":")),
        "SM_DISTRIBUTION_INSTANCE_GROUPS": '["homogeneousCluster"]',
        "SM_IS_HETERO": "false",
        "SM_HPS": '{"epochs":3,"text":"say \\"x\\""}',
        "SM_HP_EPOCHS": "3",
        "SM_USER_ARGS": '["--epochs","3","--text","say \\"x\\""]',
        "SM_USER_ENTRY_POINT": "dir/train.py",
        "SM_MODULE_NAME": "dir/train",
        "SM_MODULE_DIR": f"{base}/code",
        "SM_LOG_LEVEL": "10",
        "SM_FRAMEWORK_PARAMS": '{"sagemaker_parameter_server_enabled":true}',
        "SM_FRAMEWORK_MODULE": "",
        "SM_CHANNELS": '["eval","train"]',
        "SM_CHANNEL_TRAIN": f"{base}/input/data/train",
        "SM_CHANNEL_EVAL": f"{base}/input/data/eval",
        "SM_INPUT_DIR": f"{base}/input",
        "SM_INPUT_CONFIG_DIR": f"{base}/input/config",
        "SM_OUTPUT_DIR": f"{base}/output",
        "SM_OUTPUT_DATA_DIR": f"{base}/output/data",
        "SM_OUTPUT_INTERMEDIATE_DIR": f"{base}/output/intermediate",
        "SM_MODEL_DIR": f"{base}/model",
        "SM_NUM_NEURONS": "0",
        "SAGEMAKER_JOB_NAME": "job-1",
        "SAGEMAKER_REGION": "us-west-2",
        "CURRENT_HOST": "algo-2",
    }
    assert {name: seen[name] for name in expected} == expected
    assert {"SM_NUM_CPUS", "SM_NUM_GPUS", "SM_RESOURCE_CONFIG", "SM_INPUT_DATA_CONFIG", "SM_TRAINING_ENV"} <= set(seen)
    assert "SM_TOPOLOGY" not in seen
    training_env = json.loads(seen["SM_TRAINING_ENV"])
    assert training_env["hyperparameters"] == {"epochs": 3, "text": 'say "x"'}
    assert training_env["is_master"] is False
    assert training_env["channel_input_dirs"] == {name: f"{base}/input/data/{name}" for name in ("train", "eval")}


GROUPS = {
    "hosts": ["algo-1", "algo-2", "algo-3"],
    "instance_groups": [
        {"instance_group_name": "trainers", "instance_type": "ml.p3.2xlarge", "hosts": ["algo-2", "algo-3"]},
        {"instance_group_name": "data", "instance_type": "ml.c5.xlarge", "hosts": ["algo-1"]},
    ],
}


@pytest.mark.parametrize(
    ("resources", "switches", "together", "lead"),
    [
        ({"hosts": ["b", "a"], "current_host": "a"}, {}, ["b", "a"], "b"),
        ({**GROUPS, "current_host": "algo-1", "current_group_name": "data"}, {}, [], "algo-1"),
        (
            {**GROUPS, "current_host": "algo-3", "current_group_name": "trainers"},
            {"sagemaker_multi_worker_mirrored_strategy_enabled": True},
            ["algo-2", "algo-3"],
            "algo-2",
        ),
        (
            {**GROUPS, "current_host": "algo-1", "current_group_name": "data"},
            {
                "sagemaker_multi_worker_mirrored_strategy_enabled": True,
                "sagemaker_distribution_instance_groups": ["trainers"],
            },
            ["algo-2", "algo-3"],
            "algo-2",
        ),
    ],
    ids=["no groups", "no distribution", "a group of its own", "beside the group"],
)
def test_the_script_gets_the_training_hosts_and_their_first(tmp_path, resources, switches, together, lead):
    base = write_host(tmp_path / "ml", **switches)
    (base / "input/config/resourceconfig.json").write_text(json.dumps(resources))
    told = json.loads(script_variables(environment.read(str(base), {}))["SM_TRAINING_ENV"])
    assert told["distribution_hosts"] == together
    assert (told["master_hostname"], told["is_master"]) == (lead, lead == resources["current_host"])


def test_a_job_without_a_name_has_none(tmp_path):
    seen = script_variables(read(tmp_path))
    assert seen["SAGEMAKER_JOB_NAME"] == ""
    assert json.loads(seen["SM_TRAINING_ENV"])["job_name"] is None


def test_of_channels_that_differ_in_case_the_later_one_counts(tmp_path):
    assert script_variables(read(tmp_path, channels=["train", "TRAIN"]))["SM_CHANNEL_TRAIN"].endswith("/TRAIN")


def test_a_variable_too_large_for_a_process_is_left_out(tmp_path):
    seen = script_variables(read(tmp_path, **{f"key{n}": "x" * 2500 for n in range(100)}))
    assert "SM_HPS" not in seen
    assert seen["SM_HP_KEY99"] == "x" * 2500
