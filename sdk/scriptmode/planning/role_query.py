"""The role of each host of a job: before, while and after it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from scriptmode.core.request.parse import parse_request
from scriptmode.core.spec.hosts import LOCAL_PROCESS
from scriptmode.core.spec.job_request import JobRequest
from scriptmode.core.spec.service_values import PlannedHost
from scriptmode.errors import ScriptmodeError
from scriptmode.planning import assumptions
from scriptmode.planning.runtime_query import RuntimeQuery
from scriptmode_runtime import contract


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
    if kind.runs_images:
        from scriptmode.platforms import planned_containers

        found = planned_containers.plan_container_hosts(job, job.environment)
    else:
        found = _processes(job)
    types = {host.instance_type for host in found.values()}
    known = assumptions.assumptions_for(job, sorted(types))
    if types == {LOCAL_PROCESS}:
        known = replace(known, gpus={})
    try:
        return RuntimeQuery(found, known).roles()
    except ScriptmodeError:
        return {}


def _processes(job: JobRequest) -> dict[str, PlannedHost]:
    from scriptmode.platforms.opt_ml import Sandbox, single_machine_cluster

    sandboxes = {name: Sandbox(name, Path("/", name)) for name in job.resources.hosts}
    content = single_machine_cluster(sandboxes, dict.fromkeys(sandboxes, dict.fromkeys(contract.DEFAULT_PORTS, 0)), "")
    return {
        name: PlannedHost(LOCAL_PROCESS, str(sandbox.base), sandbox.config_files(job, content), job.environment)
        for name, sandbox in sandboxes.items()
    }
