"""Every end of a job in pods is told truly, and leaves nothing in the namespace."""

import re
import time
from base64 import b64decode
from http.server import BaseHTTPRequestHandler

import pytest
import yaml
from fakes.answering_server import Quiet, served
from fakes.local_jobs import COUNTS, SLEEPS
from fakes.processes import until
from fakes.promptness import soon
from kubernetes.configuration import MACHINE_IMAGE, PAUSE_IMAGE, REGISTRY, REGISTRY_PORT

from scriptmode.errors import DataError

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(1800)]


def seconds_until(jobs, name, fault):
    """Cause a fault and wait for the failure; return its reason, and the seconds until it was told."""
    fault()
    started = time.monotonic()
    jobs.wait(name)
    seconds = time.monotonic() - started
    print(f"told after {seconds:.1f} s")
    return jobs.failed(name), seconds


@pytest.mark.prompt
@pytest.mark.parametrize(
    ("script", "said", "most"),
    [
        ("import sys; print('so', file=sys.stderr); sys.exit(3)", "exit code 3", 2.5),
        ("raise ValueError('wrong number')", "ValueError: wrong number", 2.5),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL", 8),
    ],
    ids=["exit code", "traceback", "signal"],
)
def test_a_script_that_fails_by_itself_is_the_reason_and_told_at_once(jobs, script, said, most):
    """A signal may be that of the cluster, which is asked for longer."""
    name = jobs.start(f"import time; print('at', time.time(), flush=True); {script}")
    reason = jobs.failed(name)
    assert said in reason
    assert "algo-1" in reason
    ended = float(next(line.split()[2] for line in jobs.lines(name) if " at " in line))
    seconds = jobs.job_folder(name).read_state().transitions[-1].started - ended
    print(f"told after {seconds:.1f} s")
    soon(seconds, most)


@pytest.mark.parametrize("words", [(), ("--force", "--grace-period=0")], ids=["gracefully", "by force"])
def test_a_deleted_pod_is_the_reason(jobs, words):
    name = jobs.start(SLEEPS)
    jobs.until_up(name)
    pod = jobs.pod(name)
    reason, seconds = seconds_until(
        jobs, name, lambda: jobs.cluster.kubectl("delete", "pod", pod, "--wait=false", *words)
    )
    assert "the pod of algo-1 was deleted" in reason
    assert "max_retry_attempts" in reason
    assert seconds < 60


def test_a_host_that_fails_because_another_pod_is_gone_is_not_the_reason(jobs):
    script = """
        import os, socket, sys, time
        if os.environ["SM_CURRENT_HOST"] == "algo-1":
            served = socket.create_server(("", 5000)).accept()
            print("up", flush=True)
            time.sleep(600)
        while True:
            try:
                other = socket.create_connection(("algo-1", 5000))
                break
            except OSError:
                time.sleep(0.2)
        print("up", flush=True)
        other.recv(1)
        sys.exit(1)
    """
    name = jobs.start(script, hosts=2)
    jobs.until_up(name)
    jobs.cluster.kubectl("delete", "pod", jobs.pod(name), "--wait=false", "--force", "--grace-period=0")
    assert "the pod of algo-1 was deleted" in jobs.failed(name)


def test_a_node_can_be_drained_and_its_jobs_go_on_or_say_why_they_ended(jobs, monkeypatch, tmp_path):
    """Each step is done once: a job with retries goes on from its checkpoint, on another node."""
    more = {
        "CheckpointConfig": {"S3Uri": f"file://{tmp_path}/checkpoints", "LocalPath": "/opt/ml/checkpoints"},
        "RetryStrategy": {"MaximumRetryAttempts": 1},
    }
    name = jobs.start(COUNTS, more=more)
    jobs.until_line(name, "step 1")
    node = jobs.cluster.pod(jobs.pod(name))["spec"]["nodeName"]
    jobs.use(monkeypatch, node_selector={"kubernetes.io/hostname": node})
    other = jobs.start(SLEEPS)
    jobs.until_up(other)
    try:
        jobs.cluster.kubectl("drain", node, "--delete-emptydir-data", "--timeout=60s")
        assert f"the pod of algo-1 was deleted from node {node}" in jobs.failed(other)
        jobs.completed(name)
    finally:
        jobs.cluster.kubectl("uncordon", node)
    lines = [line.partition(": ")[2] for line in jobs.lines(name)]
    assert sorted(line for line in lines if line.startswith("step ")) == [f"step {number}" for number in range(10)]
    assert "Interrupted" in jobs.statuses(name)
    until(lambda: not jobs.remains(name))


def test_out_of_memory_is_told_with_the_limit(jobs, monkeypatch):
    jobs.use(monkeypatch, resources={"limits": {"memory": "200Mi"}})
    reason = jobs.failed(jobs.start("x = b'x' * (1 << 30)"))
    assert re.search("ran out of its memory, 200Mi, on node node[12]; give it more", reason)


def test_an_exceeded_quota_is_told(jobs):
    with jobs.quota(pods="0"):
        reason = jobs.failed(jobs.start(SLEEPS))
    assert "exceeded quota: few" in reason
    assert "raise the ResourceQuota" in reason
    assert "Traceback" not in reason


def test_groups_have_their_own_limits_which_threads_keep_and_a_quota_counts(jobs, monkeypatch):
    """A quota of limits refuses a pod with a container that has none."""
    limits = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    jobs.use(monkeypatch, resources=limits, group_resources={"small": {"limits": {"cpu": "1"}}})
    groups = [
        {"InstanceGroupName": name, "InstanceType": "kubernetes", "InstanceCount": 1} for name in ("large", "small")
    ]
    threads = ("SM_NUM_CPUS", "OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
    script = f"import os, time; print('up', *map(os.environ.get, {threads})); time.sleep(600)"
    with jobs.quota(**{"limits.cpu": "8", "limits.memory": "20Gi"}):
        name = jobs.start(script, more={"ResourceConfig": {"InstanceGroups": groups, "VolumeSizeInGB": 1}})
        lines = [jobs.until_line(name, f"{host}: up")[0] for host in ("algo-1", "algo-2")]
        pods = [jobs.cluster.pod(jobs.pod(name, host))["spec"]["containers"] for host in ("algo-1", "algo-2")]
        jobs.platform.stop(name)
    train = [next(each for each in pod if each["name"] == "train")["resources"]["limits"] for pod in pods]
    assert train == [{"cpu": "2", "memory": "2Gi"}, {"cpu": "1", "memory": "2Gi"}]
    assert lines[1].endswith("up 1 1 1")


def test_a_job_without_a_node_says_so_and_stops(jobs, monkeypatch):
    jobs.use(monkeypatch, node_selector={"none": "has"})
    name = jobs.start(SLEEPS)
    until(lambda: "waiting for a node for algo-1: 0/2 nodes are available" in jobs.message(name))
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"
    until(lambda: not jobs.remains(name))


def test_a_lost_node_is_the_reason(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_up(name)
    node = jobs.cluster.pod(jobs.pod(name))["spec"]["nodeName"]
    try:
        reason, seconds = seconds_until(jobs, name, lambda: jobs.cluster.lose_node(node))
    finally:
        jobs.cluster.restore_node(node)
    assert node in reason
    assert "algo-1" in reason
    assert seconds < 120


def test_jobs_go_on_and_end_while_the_api_server_is_away_and_leave_nothing(jobs):
    """It is away for longer than a job that ends tries to delete its objects."""
    left, deleted, retried, goes_on = jobs.start_printing("left", "deleted", "retried", "goes_on")
    jobs.cluster.stop_api_server()
    try:
        started = time.monotonic()
        for each in ("left", "deleted"):
            jobs.end(each)
        for name in (left, deleted):
            jobs.completed(name)
            assert any("are still in the cluster: the API server" in line for line in jobs.lines(name))
        soon(time.monotonic() - started, 80)
        assert time.monotonic() - started > 55
        with pytest.raises(DataError, match="is deleted, but its Secret sm-.* still in the cluster") as refused:
            jobs.platform.delete(deleted)
        jobs.end("retried")
        jobs.until_line(retried, "lines ")
    finally:
        jobs.cluster.start_api_server()
    jobs.end("goes_on")
    for name in (retried, goes_on):
        assert jobs.each_line_once(name) > 300
    # Those of one job are deleted by another one's end, and those of a job without a directory by the printed command.
    until(lambda: len(jobs.cluster.get("secrets", "--selector=scriptmode/job")["items"]) == 1)
    jobs.cluster.kubectl(*re.search("delete them: kubectl (.*)", str(refused.value))[1].split())
    until(lambda: not jobs.remains(left))


#: Saves its model within the grace period.
SAVES = """
    import os, pathlib, signal, sys, time
    def save(*_):
        time.sleep(3)
        pathlib.Path(os.environ["SM_MODEL_DIR"], "weights").write_text("saved")
        sys.exit(0)
    signal.signal(signal.SIGTERM, save)
    print("up", flush=True)
    time.sleep(600)
"""


def test_a_stop_and_the_time_limit_leave_time_to_save_the_model(jobs):
    stopped, limited = jobs.start(SAVES, grace=20), jobs.start(SAVES, grace=20, max_run=12)
    jobs.until_up(stopped)
    jobs.platform.stop(stopped)
    for name, secondary in ((stopped, "Stopped"), (limited, "MaxRuntimeExceeded")):
        description = jobs.wait(name)
        assert (description["TrainingJobStatus"], description["SecondaryStatus"]) == ("Stopped", secondary)
        assert jobs.model(description)["weights"] == b"saved"
        until(lambda name=name: not jobs.remains(name))


class Registry(Quiet, BaseHTTPRequestHandler):
    """A registry that shows no image."""

    def do_GET(self):
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815 - the class calls it so


@pytest.mark.prompt
def test_an_image_that_no_pod_can_run_is_told_with_the_next_step(jobs, monkeypatch):
    private = f"{REGISTRY}/private:1"
    with served(Registry, (jobs.cluster.address, REGISTRY_PORT)):
        jobs.use(monkeypatch, agent_image=MACHINE_IMAGE)
        begun = time.monotonic()
        names = [jobs.start(SLEEPS, image=image) for image in (private, PAUSE_IMAGE)]
        never = {"spec": {"containers": [{"name": "train", "imagePullPolicy": "Never"}]}}
        jobs.use(monkeypatch, agent_image=MACHINE_IMAGE, patch=never)
        names.append(jobs.start(SLEEPS, image=private))
        reasons = [jobs.failed(name) for name in names]
    soon(time.monotonic() - begun, 60)
    said = (
        ("401 Unauthorized", "correct the image, or its pull secret"),
        ("/bin/sh", "use an image with /bin/sh and `train`"),
        ("ErrImageNeverPull", "load the image on the nodes"),
    )
    for reason, words in zip(reasons, said):
        assert all(word in reason for word in words), reason
        assert "Traceback" not in reason


def test_a_registry_that_does_not_answer_is_the_reason_after_two_minutes(jobs, monkeypatch):
    jobs.use(monkeypatch, agent_image=MACHINE_IMAGE)
    name = jobs.start(SLEEPS, image=f"{REGISTRY}/away:1")
    until(lambda: f"waiting for the image '{REGISTRY}/away:1' of algo-1" in jobs.message(name))
    reason = jobs.failed(name)
    assert "no image in 120 s" in reason
    assert "connection refused" in reason
    assert "see that nodes reach its registry" in reason


def test_an_account_that_may_not_create_pods_is_told_at_once(jobs, monkeypatch, tmp_path):
    rules = [{"apiGroups": [""], "resources": ["secrets", "services"], "verbs": ["create", "delete"]}]
    about = {"name": "few", "namespace": "default"}
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": about}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "few"}
    subject = {"kind": "ServiceAccount", **about}
    jobs.cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about},
        {**rbac, "kind": "Role", "rules": rules},
        {**rbac, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]},
    )
    try:
        secret = until(lambda: jobs.cluster.get("serviceaccount", "few").get("secrets", [{}])[0].get("name"))
        token = b64decode(jobs.cluster.get("secret", secret)["data"]["token"]).decode()
        content = yaml.safe_load(jobs.cluster.kubeconfig.read_text())
        content["users"][0]["user"] = {"token": token}
        (tmp_path / "few").write_text(yaml.safe_dump(content))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "few"))
        begun = time.monotonic()
        name = jobs.start(SLEEPS)
        reason = jobs.failed(name)
        soon(time.monotonic() - begun, 20)
    finally:
        jobs.cluster.kubectl("delete", "serviceaccount/few", "role/few", "rolebinding/few")
    assert 'pods is forbidden: User "system:serviceaccount:default:few" cannot create resource "pods"' in reason
    assert "give the user the rights of: scriptmode serve manifests" in reason
    assert "Traceback" not in reason


def test_a_full_volume_is_told(jobs, monkeypatch):
    """That of a pod with a limit, which is evicted for it, and a small one, on which a write fails."""
    fills = "open('/opt/ml/model/weights', 'wb').write(bytes(80 << 20)); print('up', flush=True); time.sleep(600)"
    volume = {"name": "scriptmode", "emptyDir": {"sizeLimit": "50Mi"}}
    jobs.use(monkeypatch, patch={"spec": {"volumes": [volume]}})
    evicted = jobs.start(f"import time; {fills}")
    for node in jobs.cluster.nodes:
        jobs.cluster.run_on(node, "mkdir", "-p", "/run/small")
        jobs.cluster.run_on(node, "mount", "-t", "tmpfs", "-o", "size=50m", "tmpfs", "/run/small")
    volume = {"name": "scriptmode", "emptyDir": None, "hostPath": {"path": "/run/small"}}
    jobs.use(monkeypatch, patch={"spec": {"volumes": [volume]}})
    try:
        assert "No space left on device" in jobs.failed(jobs.start(f"import time; {fills}"))
    finally:
        for node in jobs.cluster.nodes:
            jobs.cluster.run_on(node, "umount", "--lazy", "/run/small")
    reason = jobs.failed(evicted)
    assert 'Usage of EmptyDir volume "scriptmode" exceeds the limit "50Mi"' in reason
    assert "give it more disk, or less data" in reason
