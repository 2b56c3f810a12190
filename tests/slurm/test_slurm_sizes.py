"""Jobs on clusters of 8 and of 16 nodes: all hosts meet, and one that fails ends all of them."""

import time

import pytest
from fakes.processes import until
from fakes.promptness import soon
from slurm import cluster as clusters

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(1200)]

NAMES_ITSELF = """
import os
print("rank", os.environ.get("OMPI_COMM_WORLD_RANK", "-"), "on", os.uname().nodename, flush=True)
open(os.path.join(os.environ["SM_MODEL_DIR"], os.environ["SM_CURRENT_HOST"]), "w").write("model")
"""
ONE_FAILS = """
import os, sys, time
print("up", flush=True)
time.sleep(2 if os.environ["SM_CURRENT_HOST"] == "algo-5" else 600)
sys.exit(7)
"""
#: Seconds from the failure of a host to the end of all, on few cores.
GONE_SECONDS = 30


@pytest.fixture(scope="module", params=[8, 16])
def cluster(request, tmp_path_factory):
    if reason := clusters.why_not():
        pytest.skip(reason)
    names = tuple(f"node{number}" for number in range(1, request.param + 1))
    running = clusters.Cluster(tmp_path_factory.getbasetemp(), nodes=names)
    yield running
    running.close()


@pytest.fixture
def many(jobs):
    jobs.hosts = len(jobs.cluster.nodes)
    return jobs


def places(lines):
    """The rank and the node of each line that a script printed, as two lists."""
    found = [line.rpartition(": rank ")[2].split(" on ") for line in lines if ": rank " in line]
    return sorted(rank for rank, _ in found), sorted(node for _, node in found)


def test_each_host_has_a_node_of_its_own(many):
    name = many.start(NAMES_ITSELF)
    assert places(many.completed_lines(name))[1] == sorted(many.cluster.nodes)
    assert len(many.model(many.platform.describe(name).response)) == many.hosts


def test_mpirun_starts_two_ranks_on_every_node(many):
    parameters = {"sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "2"}
    name = many.start(NAMES_ITSELF, hyperparameters=parameters)
    ranks, nodes = places(many.completed_lines(name))
    assert (ranks, nodes) == (sorted(map(str, range(2 * many.hosts))), sorted(many.cluster.nodes * 2))


@pytest.mark.prompt
def test_a_host_that_fails_ends_all_and_slurm_has_its_code(many):
    name = many.start(ONE_FAILS)
    many.until_up(name)
    began = time.monotonic()
    assert many.wait(name)["FailureReason"].startswith("AlgorithmError: algo-5, script: exit code 7")
    until(lambda: not many.processes())
    soon(time.monotonic() - began, GONE_SECONDS)
    others = {f"algo-{number}": ["15:0"] for number in range(1, many.hosts + 1) if number != 5}
    expected = {"algo-5": ["7:0"], **others}
    steps = many.cluster.step_codes
    until(lambda: expected.items() <= steps(many.number(name)).items(), describe=lambda: steps(many.number(name)))
