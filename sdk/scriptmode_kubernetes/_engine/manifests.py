"""The objects with which ``scriptmode serve`` runs in a cluster, and trains there. Pure but for the access key."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from scriptmode_kubernetes._engine.pods import LABEL, restrict
from scriptmode_kubernetes._engine.settings import SETTINGS_VARIABLE

NAME = "scriptmode"
PORT = 4580
DATA = "/data"
#: What the engine calls: kinds of objects by what it does with them.
RIGHTS = {
    "pods": ("create", "list", "watch", "deletecollection"),
    "secrets": ("create", "delete"),
    "services": ("create",),
}
_LABELS = {"app.kubernetes.io/name": NAME}
_RBAC = "rbac.authorization.k8s.io"


def manifests(namespace: str, image: str, storage: str, *, restricted: bool = False) -> list[dict[str, Any]]:
    """Return the objects in the order in which they are created, with a new access key."""
    # As AWS's own keys are. (IAM User Guide, "IAM identifiers")
    key = "AKIA" + base64.b32encode(secrets.token_bytes(10)).decode()
    keys = json.dumps({key: secrets.token_urlsafe(30)})
    rules = [{"apiGroups": [""], "resources": [kind], "verbs": list(verbs)} for kind, verbs in RIGHTS.items()]
    role = {"apiGroup": _RBAC, "kind": "Role", "name": NAME}
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    jobs = {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]}
    own = {"matchLabels": _LABELS}
    spec = {"selector": _LABELS, "ports": [{"port": PORT}]}
    labels = {"pod-security.kubernetes.io/enforce": "restricted"} if restricted else {}
    settings = {"namespace": namespace, "image": image, "agent_image": image, "restricted": restricted}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}},
        _made("ServiceAccount", namespace),
        _made("Role", namespace, f"{_RBAC}/v1", rules=rules),
        _made("RoleBinding", namespace, f"{_RBAC}/v1", roleRef=role, subjects=[subject]),
        _made("Secret", namespace, stringData={"keys.json": keys}),
        _made("Service", namespace, spec=spec),
        _made("StatefulSet", namespace, "apps/v1", spec=_stateful_set(settings, storage, key)),
        # Clients reach the API, and the hosts of jobs their agents, at ports that the system chooses.
        _policy(namespace, NAME, own, [{"ports": [{"port": PORT}]}, {"from": [{"podSelector": jobs}]}]),
        _policy(namespace, f"{NAME}-jobs", jobs, [{"from": [{"podSelector": jobs}]}]),
    ]


def _made(kind: str, namespace: str, version: str = "v1", name: str = NAME, **content: Any) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": _LABELS},
        **content,
    }


def _policy(namespace: str, name: str, selector: object, ingress: Sequence[object]) -> dict[str, Any]:
    spec = {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": ingress}
    return _made("NetworkPolicy", namespace, "networking.k8s.io/v1", name, spec=spec)


def _container(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the container of the server."""
    variables = {
        "SCRIPTMODE_DATA_DIR": DATA,
        "AWS_DEFAULT_REGION": "us-east-1",
        SETTINGS_VARIABLE: json.dumps(settings),
    }
    # Without credentials, as a browser. A server that is busy for a time is not restarted, which would end its jobs.
    page = {"path": "/", "port": PORT, "httpHeaders": [{"name": "Accept", "value": "text/html"}]}
    probe = {"httpGet": page, "timeoutSeconds": 10}
    return {
        "name": NAME,
        "image": settings["image"],
        "command": ["scriptmode", "serve", "--hosts=kubernetes", f"--listen=0.0.0.0:{PORT}"],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "ports": [{"containerPort": PORT}],
        "readinessProbe": probe,
        "livenessProbe": {**probe, "periodSeconds": 20, "failureThreshold": 9},
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
        "volumeMounts": [
            {"name": "data", "mountPath": DATA},
            # The directory that a mount there creates would be of root.
            {"name": "data", "mountPath": f"{DATA}/server", "subPath": "server"},
            {"name": "keys", "mountPath": f"{DATA}/server/keys.json", "subPath": "keys.json"},
        ],
    }


def _stateful_set(settings: Mapping[str, Any], storage: str, key: str) -> dict[str, Any]:
    """Return the one pod of the service, with the jobs on its volume."""
    pod = {
        "serviceAccountName": NAME,
        # The jobs end with the pod: their scripts have 120 s to save, and their agents a minute for what they saved.
        "terminationGracePeriodSeconds": 180,
        "containers": [_container(settings)],
        "volumes": [{"name": "keys", "secret": {"secretName": NAME}}],
    }
    pod = restrict(pod) if settings["restricted"] else pod
    # A file that is mounted by subPath stays as it is: with another key there is another pod. An autoscaler leaves the
    # node; a disruption budget would also stop `kubectl drain`, as there is one replica.
    about = {"scriptmode/access-key": key, "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {
        "replicas": 1,
        "serviceName": NAME,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS, "annotations": about}, "spec": pod},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": size}],
    }
