"""The engines whose jobs this directory tests: an entry for each, which names what differs."""

from collections.abc import Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Callable

import pytest
from fakes.container_jobs import ContainerJobs
from fakes.local_jobs import LocalJobs
from kubernetes.kubernetes_jobs import KubernetesJobs
from slurm.slurm_jobs import SlurmJobs


@dataclass(frozen=True)
class EngineUnderTest:
    """One engine: how the tests start its jobs, and which capabilities differ.

    Args:
        name: Name in the tests' ids.
        open_jobs: Context manager ``(request, folder)`` of the engine's `LocalJobs`, which end with it.
        marks: What the engine's tests need.
        hosts: Hosts that a job may have, at most 3.
        machine_of_each_host: Whether each host is on a machine of its own, with an agent of its own.
        interface: Name of the network interface between the hosts.
        inherits_variables: Whether the hosts have the variables of the client.
        has_tensorflow: Whether the hosts have TensorFlow, Open MPI and Horovod.
        has_loopback: Whether the hosts' agents reach servers on the loopback interface of this machine.
        mounts: Whether channels are mounted on the hosts' machines.
        seconds_to_end: Seconds within which nothing remains of a job of which a host failed or was killed.
        left_out: Reasons by the names of files and tests that do not run with this engine.
        expected_failures: Reasons by the names of tests that fail with this engine, and will not.

    """

    name: str
    open_jobs: Callable
    marks: tuple = ()
    hosts: int = 3
    machine_of_each_host: bool = False
    interface: str = "eth0"
    inherits_variables: bool = False
    has_tensorflow: bool = True
    has_loopback: bool = True
    mounts: bool = True
    seconds_to_end: float = 10.0
    left_out: Mapping = field(default_factory=dict)
    expected_failures: Mapping = field(default_factory=dict)


def processes(request, folder):
    """Jobs whose hosts are processes of this machine."""
    return closing(LocalJobs(folder, stop_grace=60.0))


def containers(request, folder):
    """Jobs whose hosts are containers of a small image."""
    return closing(ContainerJobs(folder, request.getfixturevalue("runtime_image"), stop_grace=60.0))


@contextmanager
def slurm(request, folder):
    """Jobs whose hosts are nodes of a cluster."""
    cluster = request.getfixturevalue("cluster")
    with pytest.MonkeyPatch.context() as patch:
        cluster.use(patch)
        with closing(SlurmJobs(folder, cluster, hosts=1, stop_grace=60.0)) as jobs:
            yield jobs


@contextmanager
def kubernetes(request, folder):
    """Jobs whose hosts are pods of a cluster."""
    cluster = request.getfixturevalue("kubernetes_cluster")
    with pytest.MonkeyPatch.context() as patch:
        jobs = KubernetesJobs(folder, cluster, stop_grace=60.0)
        jobs.use(patch)
        yield jobs
        jobs.close()


ENGINES = (
    EngineUnderTest("processes", processes, interface="lo", inherits_variables=True, seconds_to_end=3.0),
    EngineUnderTest("containers", containers, marks=(pytest.mark.docker,), has_tensorflow=False),
    EngineUnderTest(
        "slurm", slurm, marks=(pytest.mark.slurm,), hosts=2, machine_of_each_host=True, inherits_variables=True,
        has_loopback=False, expected_failures={
            "test_nothing_is_mounted_after_a_host_agent_was_killed": "Slurm kills the server of the mount with the agent",
        },
    ),
    EngineUnderTest(
        "kubernetes", kubernetes, marks=(pytest.mark.kubernetes, pytest.mark.thorough), machine_of_each_host=True, has_loopback=False,
        mounts=False, seconds_to_end=20.0, left_out={
            "test_inputs": "tests/kubernetes/test_pods.py has each mode, whole and in shards; a matrix takes too long",
            "test_every_verb_notices_a_killed_agent":
                "the objects of a job whose agent was killed stay until the next command",
            "test_spot_training_goes_on_after_a_host_agent_was_killed":
                "a checkpoint of the last seconds is lost with its pod",
        },
    ),
)  # fmt: skip
