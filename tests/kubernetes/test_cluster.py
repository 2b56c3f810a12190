"""What tests of Kubernetes rely on: the cluster of ``kubernetes.cluster`` behaves as one of many machines."""

import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.processes import processes_naming, until
from kubernetes.configuration import MACHINE_IMAGE

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]


def pod(name, command, *, memory=None, **spec):
    """A pod of one container that runs a shell command in the machine's image."""
    limits = {"resources": {"limits": {"memory": memory}}} if memory else {}
    container = {"name": "main", "image": MACHINE_IMAGE, "command": ["sh", "-c", command], **limits}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "test"}}, "spec": spec}


def server(name, node):
    """A pod that serves ``hello`` on port 8000, as NAME.jobs."""
    serve = "echo hello >/tmp/index.html; exec python -m http.server --directory /tmp 8000"
    return pod(name, serve, hostname=name, subdomain="jobs", nodeName=node)


def headless(name):
    """A headless service of all pods above."""
    spec = {"clusterIP": "None", "selector": {"app": "test"}, "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def test_pods_of_a_headless_service_reach_each_other_by_name(idle_cluster):
    get = "until curl --silent --fail server.jobs.default.svc.cluster.local:8000/; do sleep 0.2; done"
    idle_cluster.apply(headless("jobs"), server("server", "node1"), pod("client", get, nodeName="node2"))
    idle_cluster.reaches("client", "Succeeded")
    assert idle_cluster.kubectl("logs", "client").stdout == "hello\n"
    name = idle_cluster.kubectl("exec", "server", "--", "hostname", "--fqdn").stdout
    assert name == "server.jobs.default.svc.cluster.local\n"


def test_a_service_has_an_address_and_forwards_to_its_pods(idle_cluster):
    ports = {"ports": [{"port": 80, "targetPort": 8000}], "selector": {"app": "test"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": ports}
    get = "until curl --silent --fail --max-time 5 web/; do sleep 0.2; done"
    client = pod("client", get, nodeName="node2")
    client["metadata"]["labels"] = {}
    idle_cluster.apply(service, server("server", "node1"), client)
    idle_cluster.reaches("client", "Succeeded")
    assert idle_cluster.kubectl("logs", "client").stdout == "hello\n"


def test_deleting_what_tests_made_keeps_the_tokens_of_service_accounts(cluster):
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "of-a-test"}})
    secrets = [secret["metadata"]["name"] for secret in cluster.get("secrets")["items"]]
    cluster.delete_all()
    assert [secret["metadata"]["name"] for secret in cluster.get("secrets")["items"]] == sorted(
        {*secrets} - {"of-a-test"}
    )


def test_a_cut_between_two_pods_drops_what_they_send(idle_cluster):
    idle_cluster.apply(headless("jobs"), server("server", "node1"), pod("client", "sleep 600", nodeName="node2"))
    idle_cluster.reaches("server", "Running")
    idle_cluster.reaches("client", "Running")
    get = ("exec", "client", "--", "curl", "--silent", "--max-time", "2", "server.jobs:8000")
    until(lambda: idle_cluster.kubectl(*get, check=False).stdout == "hello\n")
    idle_cluster.cut("client", "server")
    assert "exit code 28" in idle_cluster.kubectl(*get, check=False).stderr  # curl's for a time limit
    idle_cluster.mend("client", "server")
    until(lambda: idle_cluster.kubectl(*get, check=False).stdout == "hello\n")


def test_a_container_that_passes_its_memory_limit_is_killed(idle_cluster):
    idle_cluster.apply(pod("hungry", "exec python -c 'bytes(300 << 20).decode()'", memory="100Mi"))
    (status,) = idle_cluster.reaches("hungry", "Failed")["status"]["containerStatuses"]
    assert status["state"]["terminated"]["reason"] == "OOMKilled"
    assert status["state"]["terminated"]["exitCode"] == 128 + signal.SIGKILL


def test_a_pod_sees_the_environment_of_the_tests_and_its_volumes(idle_cluster, tmp_path):
    volumes = [
        {"name": "host", "hostPath": {"path": str(tmp_path)}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "disk"}},
    ]
    code = "import importlib.metadata; print(importlib.metadata.version('pytest'), end='')"
    looks = pod("looks", f'python -c "{code}" | tee /host/version >/claim/version', volumes=volumes)
    looks["spec"]["containers"][0]["volumeMounts"] = [
        {"name": name, "mountPath": f"/{name}"} for name in ("host", "claim")
    ]
    (tmp_path / "disk").mkdir()
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    disk = {**common, "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(tmp_path / "disk")}}
    claim = {**common, "resources": {"requests": {"storage": "1Gi"}}}
    idle_cluster.apply(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": disk},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}, "spec": claim},
        looks,
    )
    idle_cluster.reaches("looks", "Succeeded")
    installed = importlib.metadata.version("pytest")
    assert (tmp_path / "version").read_text() == (tmp_path / "disk" / "version").read_text() == installed


def test_a_service_account_has_its_rights_alone(idle_cluster):
    secrets = "/var/run/secrets/kubernetes.io/serviceaccount"
    get = f'curl --silent --cacert {secrets}/ca.crt --header "Authorization: Bearer $(cat {secrets}/token)"'
    idle_cluster.apply(
        pod("asks", f"{get} https://kubernetes.default.svc.cluster.local/api/v1/namespaces/default/pods")
    )
    idle_cluster.reaches("asks", "Succeeded")
    answer = json.loads(idle_cluster.kubectl("logs", "asks").stdout)
    assert (answer["code"], answer["reason"]) == (403, "Forbidden")
    assert "system:serviceaccount:default:default" in answer["message"]


def test_pods_of_a_lost_node_are_deleted_and_the_node_comes_back(idle_cluster):
    idle_cluster.apply(pod("stays", "sleep 600", nodeName="node2"))
    idle_cluster.reaches("stays", "Running")
    idle_cluster.lose_node("node2")
    try:
        until(lambda: not idle_cluster.ready("node2"))
        until(lambda: idle_cluster.pod("stays")["metadata"].get("deletionTimestamp"))
    finally:
        idle_cluster.restore_node("node2")
    until(lambda: idle_cluster.kubectl("get", "pod", "stays", check=False).returncode)
    idle_cluster.apply(pod("next", "true", nodeName="node2"))
    idle_cluster.reaches("next", "Succeeded")


def test_pods_go_on_while_a_kubelet_or_the_api_server_is_away(idle_cluster):
    idle_cluster.apply(pod("waits", "until test -e /tmp/end; do sleep 0.1; done", nodeName="node2"))
    idle_cluster.reaches("waits", "Running")
    idle_cluster.stop_api_server()
    assert "refused" in idle_cluster.kubectl("get", "nodes", check=False).stderr
    idle_cluster.start_api_server()
    idle_cluster.stop_kubelet("node2")
    idle_cluster.start_kubelet("node2")
    until(lambda: not idle_cluster.kubectl("exec", "waits", "--", "touch", "/tmp/end", check=False).returncode)
    assert idle_cluster.reaches("waits", "Succeeded")["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_drained_node_has_no_pods_and_accepts_none(idle_cluster):
    idle_cluster.apply(pod("stays", "sleep 600", nodeName="node1"))
    idle_cluster.reaches("stays", "Running")
    idle_cluster.drain("node1")
    assert not idle_cluster.get("pods")["items"]
    idle_cluster.apply(pod("elsewhere", "true"))
    assert idle_cluster.reaches("elsewhere", "Succeeded")["spec"]["nodeName"] == "node2"


def test_a_node_has_the_extended_resources_that_tests_give_it(idle_cluster):
    idle_cluster.advertise("node2", "example.com/accelerator", 1)
    needs = pod("needs", "true")
    needs["spec"]["containers"][0]["resources"] = {"limits": {"example.com/accelerator": "1"}}
    idle_cluster.apply(needs)
    assert idle_cluster.reaches("needs", "Succeeded")["spec"]["nodeName"] == "node2"


@pytest.mark.docker
def test_an_image_of_the_docker_daemon_has_its_name_on_the_nodes(idle_cluster, base_image):
    idle_cluster.load(base_image)
    stranger = pod("stranger", "cat /etc/debian_version; command -v python || echo none")
    stranger["spec"]["containers"][0] |= {"image": base_image, "imagePullPolicy": "Never"}
    idle_cluster.apply(stranger)
    idle_cluster.reaches("stranger", "Succeeded")
    assert idle_cluster.kubectl("logs", "stranger").stdout.splitlines()[1:] == ["none"]


def test_a_killed_run_leaves_nothing_but_logs(cluster):
    """Of the process, its children and their mounts, control groups, interfaces and data."""
    script = "from kubernetes.cluster import Cluster; print(Cluster(nodes=['one']).folder, flush=True); input()"
    words = [sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        folder = Path(run.stdout.readline().strip())
        assert list(Path("/sys/fs/cgroup").glob(f"*/{folder.name}"))
        assert processes_naming(folder.name)
        run.kill()
    try:
        until(lambda: not processes_naming(folder.name))
        until(lambda: not (folder / "disk").exists())
        assert not list(Path("/sys/fs/cgroup").glob(f"*/{folder.name}"))
        assert folder.name not in Path("/proc/self/mountinfo").read_text()
    finally:
        shutil.rmtree(folder)
