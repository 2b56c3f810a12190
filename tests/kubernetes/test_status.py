"""What the statuses of pods say, as the API documents them."""

import pytest

from scriptmode.engines import StopReason
from scriptmode.errors import PlatformError
from scriptmode_kubernetes._engine import status


def pod(*, containers=(), metadata=None, spec=None, **fields):
    """A pod on node1 with the fields of its status."""
    fields = {"containerStatuses": list(containers), **fields}
    metadata = {"name": "sm-job-algo-1", **(metadata or {})}
    train = {"name": "train", "resources": {"limits": {"memory": "2Gi"}}}
    return {
        "metadata": metadata,
        "spec": {"nodeName": "node1", "containers": [train], **(spec or {})},
        "status": fields,
    }


def container(name="train", **state):
    return {"name": name, "image": "image:1", "state": state}


def disrupted(reason, message="", value="True"):
    """The condition of Kubernetes 1.26 and later."""
    return {"type": "DisruptionTarget", "status": value, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("found", "reason", "text"),
    [
        (None, StopReason.PREEMPTED, "was deleted"),
        (pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), StopReason.PREEMPTED, "deleted from node node1"),
        (pod(conditions=[disrupted("PreemptionByScheduler", "for a pod")]), StopReason.PREEMPTED, "for a pod"),
        (
            pod(conditions=[disrupted("EvictionByEvictionAPI")]),
            StopReason.PREEMPTED,
            "node node1: EvictionByEvictionAPI",
        ),
        (pod(conditions=[disrupted("DeletionByTaintManager")]), StopReason.NODE_LOST, "node1: DeletionByTaintManager"),
        (pod(conditions=[disrupted("DeletionByPodGC")]), StopReason.NODE_LOST, "node1: DeletionByPodGC"),
        (pod(conditions=[disrupted("TerminationByKubelet")]), StopReason.NODE_LOST, "node1: TerminationByKubelet"),
        (pod(phase="Failed", reason="NodeShutdown", message="shuts down"), StopReason.NODE_LOST, "NodeShutdown, shuts"),
        (pod(phase="Failed", reason="Evicted", message="low on resource: memory"), StopReason.PREEMPTED, "low on"),
        (
            pod(phase="Failed", reason="Evicted", message='Usage of EmptyDir volume "x" exceeds the limit "1Mi".'),
            StopReason.OUT_OF_MEMORY,
            "give it more disk",
        ),
        (pod(phase="Failed", reason="DeadlineExceeded"), StopReason.TIME_LIMIT, "DeadlineExceeded"),
        (pod(conditions=[disrupted("EvictionByEvictionAPI", value="False")], phase="Running"), None, ""),
        (pod(phase="Failed", containers=[container(terminated={"exitCode": 3})]), None, ""),
    ],
)
def test_why_a_pod_ended(found, reason, text):
    termination = status.find_termination({"algo-1": found})
    assert (termination and termination.reason) == reason
    if termination:
        assert termination.text.startswith("the pod of algo-1 ")
        assert text in termination.text
        assert status.describe_loss("algo-1", found) == termination.text


def test_a_container_of_the_agent_that_ended_is_a_loss():
    found = pod(containers=[container("agent", terminated={"exitCode": 137, "reason": "OOMKilled"})])
    assert "'agent' of its pod ended with exit code 137, OOMKilled" in status.describe_loss("algo-1", found)
    others = [container(terminated={"exitCode": 1}), container("agent", terminated={"exitCode": 0})]
    assert status.describe_loss("algo-1", pod(containers=others)) == ""


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("python3: No module named scriptmode_kubernetes", "names an interpreter with this version of scriptmode"),
        ("runc: stat /no/python3: no such file or directory", "names an interpreter with this version"),
        (
            "step 1\nscriptmode: the job's agent is lost: no connection for 90 s",
            "Kubernetes(address=...) is this machine's",
        ),
    ],
)
def test_the_last_line_of_an_agent_that_ended_is_told_with_the_next_step(message, words):
    ended = container("agent", terminated={"exitCode": 1, "reason": "Error", "message": f"{message}\n"})
    last = message.rpartition("\n")[2]
    found = status.describe_loss("algo-1", pod(containers=[ended]))
    assert found.startswith(f"the container 'agent' of its pod ended with exit code 1, Error: {last}; Kubernetes(")
    assert words in found


@pytest.mark.parametrize(
    ("reason", "message", "advice"),
    [
        ("InvalidImageName", "x", "correct the name of the image"),
        ("ErrImageNeverPull", "x", "load the image on the nodes"),
        ("ImagePullBackOff", "docker.io/x:1: not found", "correct the image, or its pull secret"),
        ("ErrImagePull", "unauthorized", "correct the image, or its pull secret"),
        ("CreateContainerConfigError", "secret not found", "patch"),
    ],
)
def test_what_never_starts_is_an_error_with_the_next_step(reason, message, advice):
    found = pod(containers=[container(waiting={"reason": reason, "message": message})])
    with pytest.raises(PlatformError) as raised:
        status.describe_wait("algo-1", found)
    assert advice in str(raised.value)
    assert message in str(raised.value)


def test_what_may_start_is_waited_for():
    unscheduled = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}
    assert status.describe_wait("algo-1", pod(conditions=[unscheduled])).startswith("a node for algo-1: 0/2 nodes")
    pulling = pod(containers=[container(waiting={"reason": "ErrImagePull", "message": "i/o timeout"})])
    assert status.describe_wait("algo-1", pulling) == "the image 'image:1' of algo-1: i/o timeout"
    message = "failed to sync secret cache: timed out waiting for the condition"
    slow = pod(containers=[container(waiting={"reason": "CreateContainerConfigError", "message": message})])
    assert status.describe_wait("algo-1", slow) == f"the containers of algo-1: {message}"
    up = [container(name, running={}) for name in ("agent", "train")]
    assert status.describe_wait("algo-1", pod(containers=up)) == "a connection from the pod of algo-1"
    assert status.describe_wait("algo-1", pod(containers=[*up[:1], container()])) == "the containers of algo-1"


def test_pods_that_hold_nodes_while_others_wait_are_known_and_those_that_were_deleted_count_for_nothing():
    placed, waits = pod(), pod(spec={"nodeName": ""})
    assert status.is_partly_scheduled([placed, waits])
    for found in ([], [placed], [placed, None], [waits, None], [placed, placed], [waits, waits]):
        assert not status.is_partly_scheduled(found)
    later = status.deleted_to_wait("later")
    assert status.describe_wait("algo-1", later) == "a node for algo-1: later"
    assert status.describe_loss("algo-1", later) == ""


def test_the_cause_of_a_missing_image_is_that_of_a_try_and_not_of_the_time_between_two():
    def error(**waiting):
        return status.find_image_error(pod(containers=[container("agent", running={}), container(waiting=waiting)]))

    assert error(reason="ErrImagePull", message="i/o timeout") == "i/o timeout"
    assert error(reason="ImagePullBackOff", message="Back-off pulling image") == ""
    assert error(reason="ContainerCreating") is None


def test_out_of_memory_names_the_limit():
    ended = container(terminated={"exitCode": 137, "reason": "OOMKilled"})
    assert "ran out of its memory, 2Gi, on node node1; give it more" in status.describe_out_of_memory(
        pod(containers=[ended])
    )
    assert status.describe_out_of_memory(pod(containers=[container(running={})])) is None
    assert status.describe_out_of_memory(pod(containers=[container(terminated={"reason": "Error"})])) == ""
