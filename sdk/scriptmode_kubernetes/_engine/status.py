"""What the status of a pod says: what it waits for, and why it ended. Pure.

The source of the facts: Kubernetes' documentation, "Pod Lifecycle", "Disruptions" and "Node-pressure Eviction".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from scriptmode.engines import StopReason, Termination
from scriptmode.errors import PlatformError
from scriptmode_kubernetes._engine.pods import AGENT, TRAIN

if TYPE_CHECKING:
    Pod = Mapping[str, Any]

#: Reasons of a container that waits for what does not come by itself.
_NEVER = {
    "InvalidImageName": "correct the name of the image",
    "ErrImageNeverPull": "load the image on the nodes, or change imagePullPolicy by Kubernetes(patch=...)",
    "CreateContainerConfigError": "correct Kubernetes(patch=...)",
    "CreateContainerError": "correct Kubernetes(patch=...), or the image",
    "RunContainerError": "use an image with /bin/sh and `train`",
    "StartError": "use an image with /bin/sh and `train`",
}
#: Words of a message about what the kubelet tries again: its cache of Secrets, or the container runtime, was slow.
_AGAIN = ("timed out", "deadline exceeded", "is reserved for")
_IMAGE_AWAY = ("ErrImagePull", "ImagePullBackOff")
#: Words of a message about an image that no later attempt brings.
_REFUSED = ("not found", "not exist", "denied", "unauthorized", "manifest unknown")
#: Reasons of a failed pod (`status.reason`), and of the condition DisruptionTarget.
_PREEMPTED = ("Evicted", "Preempting", "PreemptionByScheduler", "EvictionByEvictionAPI")
_NODE_LOST = ("DeletionByTaintManager", "DeletionByPodGC", "NodeLost", "NodeAffinity")
_NODE_SHUTDOWN = ("TerminationByKubelet", "NodeShutdown", "Shutdown", "Terminated")
_REASONS = {
    **dict.fromkeys(_PREEMPTED, StopReason.PREEMPTED),
    **dict.fromkeys((*_NODE_LOST, *_NODE_SHUTDOWN), StopReason.NODE_LOST),
    "DeadlineExceeded": StopReason.TIME_LIMIT,
}
#: Words of the message of an eviction that the pod's own use of its disk is the reason of.
_OWN_FAULT = ("exceeds the limit", "exceeds the total limit", "exceeded its local ephemeral storage limit")


def describe_place(found: Pod) -> str:
    """Return the names of a pod, of its namespace and of its node, which it may not have yet."""
    names, node = found["metadata"], found["spec"].get("nodeName")
    return f"pod {names['name']}, namespace {names['namespace']}" + (f", node {node}" if node else "")


def is_partly_scheduled(found: Iterable[Pod | None]) -> bool:
    """Return whether some pods have a node, and others wait for one."""
    return len({bool(pod["spec"].get("nodeName")) for pod in found if pod}) > 1


def deleted_to_wait(text: str) -> Pod:
    """Return what stands for a pod that is created again later; ``text`` is what it waits for."""
    condition = {"type": "PodScheduled", "status": "False", "message": text}
    return {"metadata": {}, "spec": {}, "status": {"conditions": [condition]}}


def describe_wait(host: str, found: Pod) -> str:
    """Return what a host waits for whose agent has not said hello; raise `PlatformError` for one that never will."""
    status = found.get("status", {})
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"a node for {host}: {condition.get('message') or condition.get('reason', '')}"
    for container in status.get("containerStatuses", ()):
        if what := _describe_container(host, found, container):
            return what
    states = [entry.get("state", {}) for entry in status.get("containerStatuses", ())]
    is_up = states and all("running" in current for current in states)
    return f"a connection from the pod of {host}" if is_up else f"the containers of {host}"


def _describe_container(host: str, found: Pod, container: Mapping[str, Any]) -> str:
    """Return what a container of the host waits for, "" if for nothing; raise `PlatformError` if it never starts."""
    state = container.get("state", {})
    waiting, ended = state.get("waiting", {}), state.get("terminated")
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    what = f"its container {container['name']!r} with the image {container['image']!r}"
    if reason in _NEVER and any(words in message for words in _AGAIN):
        return f"the containers of {host}: {message}"
    if reason in _NEVER:
        raise PlatformError(f"{what} is {reason}: {message}", advice=_NEVER[reason])
    if reason in _IMAGE_AWAY:
        if any(words in message.lower() for words in _REFUSED):
            raise PlatformError(f"{what} has no image: {message}", advice="correct the image, or its pull secret")
        return f"the image {container['image']!r} of {host}: {message or reason}"
    if ended:
        logs = f"see: kubectl logs {found['metadata']['name']} --all-containers"
        what = f"{what} ended with exit code {ended.get('exitCode')} before training: {ended.get('message', '')}"
        raise PlatformError(what, advice=_NEVER.get(ended.get("reason"), logs))
    return ""


def find_image_error(found: Pod) -> str | None:
    """Return why the last try to get an image failed, "" between two tries; None where none failed."""
    for container in found.get("status", {}).get("containerStatuses", ()):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") in _IMAGE_AWAY:
            return waiting.get("message", "") if waiting["reason"] == _IMAGE_AWAY[0] else ""
    return None


def describe_loss(host: str, found: Pod | None) -> str:
    """Return how the silent pod of a host ended; "" if it may answer again, or lost its connection and ended with 0."""
    if termination := find_termination({host: found}):
        return termination.text
    for container in (found or {}).get("status", {}).get("containerStatuses", ()):
        ended = container.get("state", {}).get("terminated")
        if container["name"] == AGENT and ended and ended.get("exitCode"):
            what = f"the container {AGENT!r} of its pod ended with exit code {ended.get('exitCode')}"
            last = ended.get("message", "").strip().rpartition("\n")[2]
            return f"{what}, {ended.get('reason', '')}" + (f": {last}" if last else "") + _find_advice(last)
    return ""


def _find_advice(last: str) -> str:
    """Return the next step where the agent's last line tells that it cannot start, or not connect."""
    if "No module named" in last or "no such file" in last:
        return "; Kubernetes(agent_image=..., agent_python=...) names an interpreter with this version of scriptmode"
    return "; Kubernetes(address=...) is this machine's address for the pods" if "is lost: " in last else ""


def describe_out_of_memory(found: Pod | None) -> str | None:
    """Return how the container that trains ran out of memory; "" if it did not, None until its end is known."""
    if found is None:
        return ""
    for container in found.get("status", {}).get("containerStatuses", ()):
        ended = container.get("state", {}).get("terminated")
        if container["name"] == TRAIN and ended:
            if ended.get("reason") != "OOMKilled":
                return ""
            own = next(spec for spec in found["spec"]["containers"] if spec["name"] == TRAIN)
            limit = own.get("resources", {}).get("limits", {}).get("memory")
            what = f"its memory, {limit}," if limit else "the memory"
            advice = "give it more: Kubernetes(resources={'limits': {'memory': ...}})"
            return f"it ran out of {what} on node {found['spec'].get('nodeName', '')}; {advice}"
    return None


def find_termination(pods: Mapping[str, Pod | None]) -> Termination | None:
    """Return why one of the pods, by their hosts, was ended, None where nothing says so; None is a missing pod."""
    for host, pod in pods.items():
        reason, text = _find_reason(pod)
        if reason:
            return Termination(reason, f"the pod of {host} {text}")
    return None


def _find_reason(found: Pod | None) -> tuple[StopReason | None, str]:
    if found is None:
        return StopReason.PREEMPTED, "was deleted"
    status = found.get("status", {})
    reason, message = status.get("reason", ""), status.get("message", "")
    for condition in status.get("conditions", ()):
        if condition["type"] == "DisruptionTarget" and condition["status"] == "True":
            reason, message = condition.get("reason", ""), condition.get("message", "")
    node = found.get("spec", {}).get("nodeName", "")
    if reason == "Evicted" and any(words in message for words in _OWN_FAULT):
        return StopReason.OUT_OF_MEMORY, f"was evicted from node {node}: {message}; give it more disk, or less data"
    if reason in _REASONS:
        return _REASONS[reason], f"ended on node {node}: {reason}" + (f", {message}" if message else "")
    if found["metadata"].get("deletionTimestamp"):
        return StopReason.PREEMPTED, f"was deleted from node {node}"
    return None, ""
