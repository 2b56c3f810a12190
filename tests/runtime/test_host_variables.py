"""What all processes of a host get by its cluster and its CPUs."""

import pytest
from fakes.host_folders import write_host

from scriptmode_runtime import _environment as environment
from scriptmode_runtime._host.machine import Machine
from scriptmode_runtime._launch.host_variables import host_variables

CLUSTER = {"hosts": {"algo-1": {"address": "10.0.0.1"}, "algo-2": {"address": "fd00::2"}}}
THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


def variables_of(tmp_path, environ, machine, **hyperparameters):
    names = ["algo-1", "algo-2"]
    base = write_host(tmp_path / "ml", names[0], names, cluster=CLUSTER, **hyperparameters)
    here = environment.read(str(base), environ)._replace(machine=machine)
    return host_variables(here, environ)


@pytest.mark.parametrize(
    ("environ", "no_proxy", "for_grpc"),
    [
        pytest.param({}, [], [], id="unset"),
        pytest.param({"no_proxy": "a"}, ["a"], ["a"], id="set"),
        pytest.param({"NO_PROXY": "a"}, ["a"], ["a"], id="in capitals"),
        pytest.param({"NO_PROXY": "a", "no_proxy": "b"}, ["b"], ["b"], id="both"),
        pytest.param({"no_proxy": "a", "no_grpc_proxy": "b"}, ["a"], ["b"], id="of gRPC"),
        # Programs know the asterisk by itself alone, and gRPC does not know it.
        pytest.param({"no_proxy": "*"}, "*", ["*"], id="all"),
    ],
)
def test_a_cluster_is_reached_without_a_proxy_as_it_spells_its_hosts(tmp_path, environ, no_proxy, for_grpc):
    tf_config = '{"cluster": {"worker": ["named.example:2222", "[fd00::9]:2222"]}}'
    distribution = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
    found = variables_of(tmp_path, {**environ, "TF_CONFIG": tf_config}, Machine(4, 0, 0), **distribution)
    cluster = {"algo-1", "algo-2", "10.0.0.1", "fd00::2", "named.example", "fd00::9", "localhost", "127.0.0.1"}
    lists = {name: value.split(",") for name, value in found.items()}
    for name, own in (("no_proxy", no_proxy), ("no_grpc_proxy", for_grpc)):
        if own == "*":
            assert found[name] == "*"
        else:
            assert lists[name][: len(own)] == own
            assert sorted(lists[name][len(own) :]) == sorted(cluster)


@pytest.mark.parametrize(
    ("machine", "ranks", "environ", "threads"),
    [
        pytest.param(Machine(8, 0, 0), 0, {}, (), id="a whole machine"),
        pytest.param(Machine(8, 0, 0), 4, {}, (), id="ranks of a whole machine"),
        pytest.param(Machine(8, 0, 0, is_limited=True), 0, {}, (8, 8, 8), id="a part of it"),
        pytest.param(Machine(8, 0, 0, is_limited=True), 4, {}, (2, 2, 2), id="ranks share a part"),
        pytest.param(Machine(2, 0, 0, is_limited=True), 4, {}, (1, 1, 2), id="more ranks than CPUs"),
        pytest.param(Machine(1, 0, 0), 0, {}, (1, 1, 2), id="one CPU"),
        pytest.param(Machine(1, 0, 0), 0, dict.fromkeys(THREADS, "1"), (), id="of the user"),
    ],
)
def test_threads_fit_the_cpus_and_are_never_one_between_operations(tmp_path, machine, ranks, environ, threads):
    more = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": ranks} if ranks else {}
    found = variables_of(tmp_path, environ, machine, **more)
    assert {name: found[name] for name in THREADS if name in found} == dict(zip(THREADS, map(str, threads)))
