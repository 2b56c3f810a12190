"""Every end of a job in pods is told truly, and leaves nothing in the namespace."""

import re
import time

import pytest
from fakes.processes import until
from fakes.promptness import soon

from scriptmode.errors import DataError

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(1800)]

SLEEPS = "import time; print('up', flush=True); time.sleep(600)"
#: Counts ten steps, each once: a run goes on from the checkpoint of the one before.
COUNTS = """
    import pathlib, signal, sys, time
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    saved = pathlib.Path("/opt/ml/checkpoints/step")
    first = int(saved.read_text()) if saved.exists() else 0
    print("from", first, flush=True)
    for step in range(first, 10):
        print("step", step, flush=True)
        saved.write_text(str(step + 1))
        time.sleep(0.2 if first else 4)
"""


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


def test_a_job_whose_pod_was_evicted_goes_on_from_its_checkpoint_with_each_step_once(jobs, tmp_path):
    more = {
        "CheckpointConfig": {"S3Uri": f"file://{tmp_path}/checkpoints", "LocalPath": "/opt/ml/checkpoints"},
        "RetryStrategy": {"MaximumRetryAttempts": 1},
    }
    name = jobs.start(COUNTS, more=more)
    jobs.until_line(name, "step 1")
    jobs.cluster.evict(jobs.pod(name))
    jobs.completed(name)
    lines = [line.partition(": ")[2] for line in jobs.lines(name)]
    assert sorted(line for line in lines if line.startswith("step ")) == [f"step {number}" for number in range(10)]
    assert "Interrupted" in jobs.statuses(name)
    until(lambda: not jobs.remains(name))


def test_out_of_memory_is_told_with_the_limit(jobs, monkeypatch):
    jobs.use(monkeypatch, resources={"limits": {"memory": "200Mi"}})
    reason = jobs.failed(jobs.start("x = b'x' * (1 << 30)"))
    assert "ran out of its memory, 200Mi" in reason


def test_an_exceeded_quota_is_told(jobs):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}}
    jobs.cluster.apply(quota)
    try:
        until(lambda: jobs.cluster.get("resourcequota", "few").get("status", {}).get("hard"))
        reason = jobs.failed(jobs.start(SLEEPS))
    finally:
        jobs.cluster.kubectl("delete", "resourcequota", "few")
    assert "exceeded quota: few" in reason
    assert "raise the ResourceQuota" in reason
    assert "Traceback" not in reason


def test_a_job_without_a_node_says_so_and_stops(jobs, monkeypatch):
    jobs.use(monkeypatch, node_selector={"none": "has"})
    name = jobs.start(SLEEPS)

    def message():
        return jobs.platform.describe(name).response["SecondaryStatusTransitions"][-1]["StatusMessage"]

    until(lambda: "waiting for a node for algo-1: 0/2 nodes are available" in message())
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
