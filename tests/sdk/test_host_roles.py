"""What each host of a described job is in it."""

import pytest

from scriptmode.planning import host_roles

PS = {"sagemaker_parameter_server_enabled": "true"}
COORDINATOR = {**PS, "sagemaker_parameter_server_coordinator": "true"}
MIRRORED = {"sagemaker_multi_worker_mirrored_strategy_enabled": "true"}
MPI = {"sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "4"}


def description(parameters, count=2, kind="ml.c5.xlarge", **fields):
    return {
        "TrainingJobName": "job-1",
        "TrainingJobStatus": "InProgress",
        "AlgorithmSpecification": {"TrainingImage": "registry/tf:2.15"},
        "ResourceConfig": {"InstanceType": kind, "InstanceCount": count, "VolumeSizeInGB": 30},
        "HyperParameters": {"sagemaker_program": '"train.py"', **parameters},
        **fields,
    }


@pytest.mark.parametrize("kind", ["ml.c5.xlarge", "local", "local_process"])
@pytest.mark.parametrize(
    ("parameters", "roles"),
    [
        ({}, ["script", "script"]),
        (COORDINATOR, ["chief, worker, ps", "worker, ps"]),
        (MIRRORED, ["worker 0", "worker 1"]),
        (MPI, ["mpirun, ranks 0-3", "ranks 4-7"]),
    ],
    ids=str,
)
def test_hosts_of_every_platform_have_roles(kind, parameters, roles):
    assert host_roles(description(parameters, kind=kind)) == dict(zip(["algo-1", "algo-2"], roles))


def test_two_hundred_hosts_have_roles():
    roles = host_roles(description(PS, 200))
    assert list(roles) == [f"algo-{number}" for number in range(1, 201)]
    assert (roles["algo-1"], roles["algo-200"]) == ("master, ps", "worker, ps")


def test_hosts_have_the_role_of_their_group():
    groups = [
        {"InstanceGroupName": "leader", "InstanceType": "ml.c5.xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "memory", "InstanceType": "ml.r5.xlarge", "InstanceCount": 2},
    ]
    roles = '{"master": ["leader"], "ps": ["memory"]}'
    asked = description({**PS, "sagemaker_parameter_server_roles": roles}, ResourceConfig={"InstanceGroups": groups})
    assert list(host_roles(asked).values()) == ["master", "ps", "ps"]


@pytest.mark.parametrize(
    "unknown",
    [
        description({}, HyperParameters={"epochs": "3"}),
        description({}, ResourceConfig={}),
        description({**PS, **MPI}),
        {"TrainingJobName": "job-1"},
    ],
    ids=["an image's own program", "no hosts", "what the runtime refuses", "nothing"],
)
def test_unknown_roles_are_empty(unknown):
    assert host_roles(unknown) == {}


def test_a_description_is_left_as_it_is():
    asked = description(PS)
    host_roles(asked)
    assert asked == description(PS)
