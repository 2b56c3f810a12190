"""What the platform's files tell, and what is wrong with them."""

import json

import pytest
from fakes.host_folders import write_host

from scriptmode_runtime import environment, machine
from scriptmode_runtime.errors import ConfigurationError

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


def test_a_grace_that_is_no_number_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="SCRIPTMODE_STOP_GRACE_SECONDS='soon'"):
        read(write_host(tmp_path), SCRIPTMODE_STOP_GRACE_SECONDS="soon")


def test_a_hyperparameter_that_is_not_json_stands_for_itself(tmp_path):
    base = write_host(tmp_path)
    (base / "input/config/hyperparameters.json").write_text('{"a": "plain text", "b": "1"}')
    assert read(base).hyperparameters == {"a": "plain text", "b": 1}


def test_program_and_source_may_come_from_the_image(tmp_path):
    assert read(write_host(tmp_path), SAGEMAKER_PROGRAM="image.py").program == "image.py"


def test_accelerators_are_counted_from_device_files(tmp_path):
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / "dev" / name).touch()
    cores = tmp_path / "sys/devices/virtual/neuron_device/neuron0/core_count"
    cores.parent.mkdir(parents=True)
    cores.write_text("2\n")
    found = machine.inspect(str(tmp_path))
    assert (found.gpus, found.neurons) == (2, 2)


@pytest.mark.parametrize(
    ("file", "text", "cpus"),
    [("cpu.max", "100000 100000", 1), ("cpu.max", "1000 100000", 1), ("cpu/cpu.cfs_quota_us", "100000", 1)],
)
def test_a_control_groups_limit_counts(tmp_path, file, text, cpus):
    path = tmp_path / "sys/fs/cgroup" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.with_name("cpu.cfs_period_us").write_text("100000")
    assert machine.inspect(str(tmp_path)).cpus == cpus
