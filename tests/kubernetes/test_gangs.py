"""Jobs whose pods have room one job at a time: some pods that have nodes wait for those that have none."""

import pytest
from fakes.processes import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(1800)]

DELETED = "not all pods had a node in 10 s: they were deleted, and are created again later"


@pytest.fixture
def start(jobs, monkeypatch):
    """Start jobs of two pods, each of which gets one node for one pod; node2 takes none without a toleration."""
    cpu = int(jobs.cluster.get("node", "node1")["status"]["allocatable"]["cpu"])

    def start(**settings):
        requests = {"requests": {"cpu": f"{cpu * 600}m"}}
        jobs.use(monkeypatch, resources=requests, schedule_timeout=10, **settings)
        name = jobs.start("print('trained')", hosts=2)
        until(lambda: "waiting for a node for algo-2: 0/2 nodes are available" in jobs.message(name))
        return name

    jobs.cluster.kubectl("cordon", "node2")
    yield start
    jobs.cluster.kubectl("uncordon", "node2")


def test_two_jobs_that_hold_each_others_nodes_both_complete(jobs, start):
    names = start(), start(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    jobs.cluster.kubectl("uncordon", "node2")
    for name in names:
        jobs.completed(name)
        assert "Interrupted" not in jobs.statuses(name)
    assert any(f"scriptmode: {DELETED}" in line for name in names for line in jobs.lines(name))


def test_pods_that_may_not_be_created_again_yet_say_why(jobs, start):
    name = start()
    with jobs.quota(pods="0"):
        until(lambda: DELETED in jobs.message(name))
        until(lambda: "waiting for a node for algo-1: the API server refuses" in jobs.message(name))
        assert "exceeded quota: few" in jobs.message(name)
    jobs.cluster.kubectl("uncordon", "node2")
    jobs.completed(name)
