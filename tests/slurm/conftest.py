"""A Slurm cluster for each file of tests."""

import pytest
from kubernetes.conftest import running_cluster
from slurm import cluster as clusters
from slurm.slurm_jobs import SlurmJobs


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes that see the folders of the tests; skipped where there can be none."""
    yield from running_cluster(tmp_path_factory, clusters)


@pytest.fixture
def idle_cluster(cluster):
    """The same, and no job is left of a test when the next one begins."""
    yield cluster
    cluster.cancel_all()


@pytest.fixture
def slurm_environment(cluster, monkeypatch):
    """The variables by which Slurm's commands find the cluster."""
    cluster.use(monkeypatch)


@pytest.fixture
def jobs(idle_cluster, slurm_environment, tmp_path, closed_after):
    return closed_after(SlurmJobs(tmp_path, idle_cluster))
