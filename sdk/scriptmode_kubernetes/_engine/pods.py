"""The objects of a job, as the API takes them. Pure.

A job has a Secret, which owns everything else: a Service without an address, by which the hosts have names, and a pod
for each host. A pod has two containers that share a volume. ``train`` runs the job's image, whose program waits until
the other one starts it. ``agent`` is the host's agent: it stages the inputs into ``/opt/ml`` of ``train``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode_kubernetes._engine.settings import KubernetesSettings, settings_from_json
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode.engines import Job, JobFolder

LABEL, HOST_LABEL = "scriptmode/job", "scriptmode/host"
#: The parent of the job's directory, a volume, in the container ``agent``; the directory that both containers see.
PARENT, CONTROL = "/scriptmode", "/scriptmode-control"
#: What the Secret has beside the variables of the hosts, whose names get the prefix.
CONNECTION_KEY, VARIABLE_PREFIX = "connection", "env."
TRAIN, AGENT = "train", "agent"
#: Seconds that a pod has after its script's grace period to tell its end and send what it has.
_MARGIN_SECONDS = 30
#: Those of the container ``agent``; the limits are of what the other container has a limit of, as quotas count all.
_AGENT_REQUESTS, _AGENT_LIMITS = {"cpu": "100m", "memory": "256Mi"}, {"cpu": "2", "memory": "4Gi"}
#: The user and the group of restricted pods.
_USER = 1000
#: Runs a program once the file ``start`` is there, with its output in ``log`` and its exit code in ``code``. ``$0`` is
#: the directory of these files, ``$1`` the job's Service. The host's agent passes SIGTERM of the kubelet on.
#: A pod alone knows the domain of the cluster: its hosts' names are found by LOCALDOMAIN, glibc's list of domains.
_WAIT = """
service=$1 && shift
while read -r key domain others; do
    [ "$key" != search ] || export LOCALDOMAIN="$service.$domain $domain $others"
done </etc/resolv.conf
echo $$ >"$0/pid.part" && mv "$0/pid.part" "$0/pid"
trap 'exit 143' TERM
until [ -e "$0/start" ]; do sleep 0.05 || sleep 1; done
trap : TERM
"$@" >>"$0/log" 2>&1
code=$?
echo $code >"$0/code.part" && mv "$0/code.part" "$0/code"
exit $code
"""


INSTANCE_TYPE = "kubernetes"


def gpu_count(instance_type: str) -> int | None:
    """Return the GPUs of each host for ``kubernetes`` or ``kubernetes:gpu=N``; None for another instance type."""
    match = re.fullmatch(f"{INSTANCE_TYPE}(?::gpu=([0-9]+))?", instance_type)
    return int(match[1] or 0) if match else None


class Names(NamedTuple):
    """The names of a job's objects, unique also where data directories have jobs of the same name."""

    #: That of the Secret, of the Service and, with the host's name after it, of each pod: at most 50 characters.
    name: str
    #: The value of `LABEL`.
    label: str

    @property
    def selector(self) -> str:
        """What selects the job's objects."""
        return f"{LABEL}={self.label}"


def names_of(folder: JobFolder) -> Names:
    """Return the names of a job's objects."""
    label = hashlib.sha256(folder.label.encode()).hexdigest()[:20]
    readable = re.sub("[^a-z0-9-]", "-", folder.name.lower())[:40].strip("-")
    return Names(f"sm-{readable}-{label[:6]}", label)


def _metadata(name: str, label: str, owner: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the metadata of an object; ``owner`` is the Secret as the API returned it."""
    about: dict[str, Any] = {"name": name, "labels": {LABEL: label, "app.kubernetes.io/managed-by": "scriptmode"}}
    if owner:
        # Of a pod without a controller `kubectl drain` says that nothing creates it again, and stops.
        reference = {"apiVersion": "v1", "kind": "Secret", "name": owner["metadata"]["name"], "controller": True}
        about["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"]}]
    return about


def secret(names: Names, connection: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the Secret with the variables of the hosts and the proof of their connections."""
    values = {f"{VARIABLE_PREFIX}{key}": value for key, value in variables.items()}
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": _metadata(names.name, names.label, None),
        "stringData": {CONNECTION_KEY: connection, **values},
    }  # fmt: skip


def service(names: Names, owner: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the Service by which ``algo-1`` is the address of that pod, also before it is ready."""
    spec = {"clusterIP": "None", "selector": {LABEL: names.label}, "publishNotReadyAddresses": True}
    about = _metadata(names.name, names.label, owner)
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}


def pod(
    job: Job,
    host: str,
    names: Names,
    variables: Sequence[str],
    agent_variables: Mapping[str, str],
    owner: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the pod of a host.

    ``variables`` are the names of the script's variables, whose values are in the Secret, ``agent_variables`` those of
    the agent.
    """
    settings = settings_from_json(job.engine)
    name, label = names
    spec = {
        "restartPolicy": "Never",
        "hostname": host,
        "subdomain": name,
        "dnsConfig": {"searches": [f"{name}.{settings.namespace}.svc.cluster.local"]} if settings.namespace else {},
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # The agent signals the script and measures its processes.
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": int(job.stop_grace) + _MARGIN_SECONDS,
        "nodeSelector": settings.node_selector,
        "tolerations": list(settings.tolerations),
        "containers": [
            _agent_container(job, host, name, agent_variables),
            _train_container(job, host, name, [_from_secret(variable, name) for variable in variables]),
        ],
        "volumes": [{"name": "scriptmode", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    if settings.restricted:
        spec = restrict(spec)
    about = _metadata(f"{name}-{host}", label, owner)
    about["labels"][HOST_LABEL] = host
    about["annotations"] = {"kubectl.kubernetes.io/default-container": AGENT}
    if settings.queue:
        about["labels"].update({"kueue.x-k8s.io/queue-name": settings.queue, "kueue.x-k8s.io/pod-group-name": name})
        about["annotations"]["kueue.x-k8s.io/pod-group-total-count"] = str(job.request.resources.count)
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}
    return dict(merge(made, settings.patch))


def _resources(job: Job, host: str, settings: KubernetesSettings) -> dict[str, Any]:
    """Return the requests and limits of the container that trains: those of the host's group, with its GPUs."""
    group = next(group for group in job.request.resources.host_groups if host in group.hosts)
    own, gpus = settings.group_resources.get(group.name, {}), gpu_count(group.instance_type)
    return dict(merge(merge(settings.resources, own), {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}))


def _train_container(job: Job, host: str, name: str, env: Sequence[Any]) -> dict[str, Any]:
    algorithm = job.request.algorithm
    command = (*algorithm.container_entry_point, *algorithm.container_arguments) or ("train",)
    return {
        "name": TRAIN,
        "image": algorithm.image_uri,
        # Kubernetes would replace $(NAME), and $$ by $.
        "command": [word.replace("$", "$$") for word in ("/bin/sh", "-c", _WAIT, CONTROL, name, *command)],
        "env": env,
        "resources": _resources(job, host, settings_from_json(job.engine)),
        "volumeMounts": [
            {"name": "scriptmode", "mountPath": contract.DEFAULT_BASE_DIR, "subPath": f"hosts/{host}"},
            {"name": "scriptmode", "mountPath": CONTROL, "subPath": "control"},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - in the pod
        ],
    }


def _agent_container(job: Job, host: str, name: str, variables: Mapping[str, str]) -> dict[str, Any]:
    settings = settings_from_json(job.engine)
    limited = _resources(job, host, settings).get("limits", {})
    return {
        "name": AGENT,
        "image": settings.agent_image or job.request.algorithm.image_uri,
        "command": [settings.agent_python, "-m", "scriptmode_kubernetes._engine.pod"],
        "env": [
            *({"name": key, "value": value} for key, value in variables.items()),
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            _from_secret(CONNECTION_KEY, name, prefix="", variable="SCRIPTMODE_CONNECTION"),
        ],
        "resources": {
            "requests": _AGENT_REQUESTS,
            "limits": {kind: most for kind, most in _AGENT_LIMITS.items() if kind in limited},
        },
        # Then its status has the end of its log.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [{"name": "scriptmode", "mountPath": f"{PARENT}/{job.request.name}"}],
    }


def restrict(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a pod as the Pod Security Standard "restricted" has it, whose root is read-only besides.

    The containers have one user: each may signal the other's processes, and change its files.
    """
    rules = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    change = {
        "securityContext": {**rules, "runAsUser": None},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }
    containers = []
    for container in spec["containers"]:
        names = {variable["name"] for variable in container.get("env", ())}
        # A user without an entry in /etc/passwd has no other HOME than a variable of the job.
        env = [] if "HOME" in names else [{"name": "HOME", "value": "/tmp"}]  # noqa: S108
        containers.append({"name": container["name"], **change, "env": env})
    user = {"runAsNonRoot": True, "runAsUser": _USER, "runAsGroup": _USER, "fsGroup": _USER}
    patch = {
        "securityContext": {**user, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": containers,
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    return dict(merge(spec, patch))


def merge(value: Any, patch: Any) -> Any:
    """Return a value changed by a JSON merge patch (RFC 7396), where a list of named members changes those members."""
    if isinstance(patch, dict):
        base = value if isinstance(value, dict) else {}
        merged = {**base, **{key: merge(base.get(key), change) for key, change in patch.items()}}
        return {key: member for key, member in merged.items() if member is not None}
    if isinstance(patch, list) and isinstance(value, list) and all("name" in member for member in (*patch, *value)):
        # A volume may be mounted twice.
        changes, names = {member["name"]: member for member in patch}, {member["name"] for member in value}
        added = [merge(None, member) for member in patch if member["name"] not in names]
        return [*(merge(member, changes.get(member["name"], {})) for member in value), *added]
    return patch


def _from_secret(key: str, name: str, *, prefix: str = VARIABLE_PREFIX, variable: str = "") -> dict[str, Any]:
    return {"name": variable or key, "valueFrom": {"secretKeyRef": {"name": name, "key": f"{prefix}{key}"}}}
