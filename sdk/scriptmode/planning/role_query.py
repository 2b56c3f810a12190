"""The role of each host of a job: before, while and after it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scriptmode.core.request.parse import parse_request
from scriptmode.core.spec.job_request import JobRequest
from scriptmode.planning.host_plans import RUNTIME_ERRORS, host_environment
from scriptmode.platforms import planned_containers
from scriptmode_runtime import contract, preview


def host_roles(description: Mapping[str, Any]) -> dict[str, str]:
    """Return the roles of each host of a job, in the order of the hosts, such as ``chief, worker, ps``.

    MPI ranks are numbered (``mpirun, ranks 0-3``), and so are equal workers (``worker 1``); a host that trains alone is
    ``script``.

    Args:
        description: Response of DescribeTrainingJob, or a CreateTrainingJob request.

    Returns:
        Roles by the name of the host; empty if they are unknown: for an algorithm without script mode, or a job that
        the runtime would refuse.
    """
    return job_roles(parse_request(description))


def job_roles(job: JobRequest) -> dict[str, str]:
    """Return the roles of each host of a job, as `host_roles` does."""
    if not job.resources.hosts or contract.PROGRAM not in job.hyperparameters:
        return {}
    kind = job.resources.host_kind
    counts_gpus = contract.enabled(job.hyperparameters.get(contract.MPI_ENABLED, ""))
    if kind.is_scheduled and counts_gpus and contract.MPI_PROCESSES_PER_HOST not in job.hyperparameters:
        # The number of ranks is that of a node's GPUs, which only the nodes know.
        return {}
    cluster = None if kind.runs_images else {"hosts": {}, "single_machine": True, "secret": ""}
    found = planned_containers.plan_container_hosts(job, job.environment, cluster)
    try:
        return {name: preview.roles(host_environment(host)) for name, host in found.items()}
    except RUNTIME_ERRORS:
        return {}
