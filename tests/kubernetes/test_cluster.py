"""What tests of Kubernetes rely on: the cluster of ``kubernetes.cluster`` behaves as one of many machines."""

from pathlib import Path

import pytest
from kubernetes.configuration import MACHINE_IMAGE

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]


def pod(name, command, *, memory=None, **spec):
    """A pod of one container that runs a shell command in the machine's image."""
    limits = {"resources": {"limits": {"memory": memory}}} if memory else {}
    container = {"name": "main", "image": MACHINE_IMAGE, "command": ["sh", "-c", command], **limits}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "test"}}, "spec": spec}


def headless(name):
    """A headless service of all pods above."""
    spec = {"clusterIP": "None", "selector": {"app": "test"}, "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def test_pods_of_a_headless_service_reach_each_other_by_name(idle_cluster):
    serve = "echo hello >/tmp/index.html; exec python -m http.server --directory /tmp 8000"
    get = "until curl --silent --fail server.jobs.default.svc.cluster.local:8000/; do sleep 0.2; done"
    idle_cluster.apply(
        headless("jobs"),
        pod("server", serve, hostname="server", subdomain="jobs", nodeName="node1"),
        pod("client", get, hostname="client", subdomain="jobs", nodeName="node2"),
    )
    idle_cluster.reaches("client", "Succeeded")
    assert idle_cluster.kubectl("logs", "client").stdout == "hello\n"
    assert (
        idle_cluster.kubectl("exec", "server", "--", "hostname", "--fqdn").stdout
        == "server.jobs.default.svc.cluster.local\n"
    )
