"""The engine of the instance type ``kubernetes``, in `_engine`: each host of a job is a pod of a cluster.

- `settings`: what `Kubernetes(...)` is given; `platform`: the platform with these settings
- `engine`: the engine; `fleet`: the pods of one job, for the job's agent
- `pods`: the objects of a job, as the API takes them; `status`: what a pod's status says
- `api`: the calls of the API
- `manifests`, `manifests_command`: scriptmode serve in the cluster; `checks`: those of scriptmode doctor
- `pod`, `pod_host`: what runs in a pod: the other end of the job's agent, and the host there
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.engines import HostKind

if TYPE_CHECKING:
    from scriptmode_kubernetes._engine.platform import Kubernetes

__all__ = ["KUBERNETES", "Kubernetes"]

#: The instance type is the name of the entry point.
KUBERNETES = HostKind(
    "pods of a Kubernetes cluster",
    "Kubernetes",
    engine="scriptmode_kubernetes._engine.engine:KubernetesEngine",
    agent_control="scriptmode_kubernetes._engine.engine:KubernetesEngine",
    runs_images=True,
    runs_scripts=False,
    takes_gpus=True,
    other_names=("k8s", "kubectl", "pods"),
    checks="scriptmode_kubernetes._engine.checks:CHECKS",
)


def __getattr__(name: str) -> Any:
    """Return `Kubernetes`, which imports the local platform."""
    if name != "Kubernetes":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from scriptmode_kubernetes._engine import platform

    return platform.Kubernetes
