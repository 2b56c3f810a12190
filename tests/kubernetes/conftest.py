"""One Kubernetes cluster for the run: tests that need one share it, for it starts in half a minute."""

import pytest
from kubernetes import cluster as clusters
from kubernetes.kubernetes_jobs import KubernetesJobs


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """The cluster of this directory's tests."""
    yield from running_cluster(tmp_path_factory)


def running_cluster(tmp_path_factory, clusters=clusters):
    """Yield two nodes that see the folders of the tests; skip where there can be none."""
    if reason := clusters.why_not():
        pytest.skip(reason)
    running = clusters.Cluster(tmp_path_factory.getbasetemp())
    yield running
    running.close()


@pytest.fixture
def idle_cluster(cluster):
    """The same, and nothing is left of a test when the next one begins."""
    yield cluster
    cluster.delete_all()


@pytest.fixture
def jobs(idle_cluster, tmp_path, monkeypatch, closed_after):
    """Starts jobs in pods; the variables make every job of this process find the cluster."""
    found = closed_after(KubernetesJobs(tmp_path, idle_cluster))
    found.use(monkeypatch)
    return found
