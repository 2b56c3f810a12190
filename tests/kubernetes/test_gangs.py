"""Jobs whose pods have room one job at a time: some pods that have nodes wait for those that have none."""

import pytest
from fakes.processes import until

from scriptmode_kubernetes._engine.pods import names_of

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(1800)]

SECONDS = 10
DELETED = f"not all pods had a node in {SECONDS} s: they were deleted, and are created again later"


def nodes_of(jobs, name):
    """The nodes of the pods of a job, "" of one that has none."""
    found = jobs.cluster.get("pods", f"--selector={names_of(jobs.job_folder(name)).selector}")["items"]
    return sorted(pod["spec"].get("nodeName", "") for pod in found)


def message_of(jobs, name):
    return jobs.platform.describe(name).response["SecondaryStatusTransitions"][-1]["StatusMessage"]


@pytest.fixture
def start(jobs, monkeypatch):
    """Start a job of two pods, of which a node has room for one; node2 takes none without a toleration."""
    cpu = int(jobs.cluster.get("node", "node1")["status"]["allocatable"]["cpu"])

    def start(**settings):
        requests = {"requests": {"cpu": f"{cpu * 600}m"}}
        jobs.use(monkeypatch, resources=requests, schedule_timeout=SECONDS, **settings)
        return jobs.start("print('trained')", hosts=2)

    jobs.cluster.kubectl("cordon", "node2")
    yield start
    jobs.cluster.kubectl("uncordon", "node2")


def test_two_jobs_that_hold_each_others_nodes_both_complete(jobs, start):
    one = start()
    until(lambda: nodes_of(jobs, one) == ["", "node1"])
    other = start(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    until(lambda: nodes_of(jobs, other) == ["", "node2"])
    jobs.cluster.kubectl("uncordon", "node2")
    for name in (one, other):
        jobs.completed(name)
        assert "Interrupted" not in jobs.statuses(name)
        assert sum(line.endswith(": trained") for line in jobs.lines(name)) == 2
    assert any(f"scriptmode: {DELETED}" in line for name in (one, other) for line in jobs.lines(name))


def test_pods_that_may_not_be_created_again_yet_say_why_and_a_job_stops_meanwhile(jobs, start):
    name, stopped = start(), start(node_selector={"kubernetes.io/hostname": "node1"})
    none = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    until(lambda: "waiting for a node for algo" in message_of(jobs, name))
    jobs.cluster.apply(none)
    try:
        until(lambda: DELETED in message_of(jobs, name))
        until(lambda: "waiting for a node for algo-1: the API server refuses" in message_of(jobs, name))
        assert "exceeded quota: none" in message_of(jobs, name)
        jobs.platform.stop(stopped)
        assert jobs.wait(stopped)["TrainingJobStatus"] == "Stopped"
    finally:
        jobs.cluster.kubectl("delete", "resourcequota", "none")
    jobs.cluster.kubectl("uncordon", "node2")
    jobs.completed(name)
