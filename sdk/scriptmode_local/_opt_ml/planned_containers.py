"""The planned environment of hosts that are containers, of this machine or of Amazon SageMaker. Pure.

They see their files at ``/opt/ml`` and have a network interface ``eth0``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.host_values import PlannedHost
from scriptmode_local._opt_ml.opt_ml import Sandbox
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest

#: The first interface of a container ("How Amazon SageMaker Provides Training Information").
INTERFACE = "eth0"
#: Shown instead of a secret, which is made when the job starts.
HIDDEN = "******"


def plan_sagemaker_hosts(job: JobRequest, region: str) -> dict[str, PlannedHost]:
    """Return the environment of each host of Amazon SageMaker: the request's variables, and those of the service."""
    variables = {contract.REGION_VARIABLE: region, contract.JOB_NAME_VARIABLE: job.name, **job.environment}
    if contract.SECRET_VARIABLE in variables:
        variables[contract.SECRET_VARIABLE] = HIDDEN
    return plan_container_hosts(job, variables)


def plan_container_hosts(
    job: JobRequest, variables: Mapping[str, str], scriptmode: Mapping[str, Any] | None = None
) -> dict[str, PlannedHost]:
    """Return the environment of each host with these variables and, unless ``scriptmode`` is None, a cluster file."""
    root = contract.DEFAULT_BASE_DIR
    hosts = {}
    for group in job.resources.host_groups:
        for name in group.hosts:
            sandbox = Sandbox(name, Path(root), root, INTERFACE)
            hosts[name] = PlannedHost(group.instance_type, root, sandbox.config_files(job, scriptmode), variables)
    return hosts
