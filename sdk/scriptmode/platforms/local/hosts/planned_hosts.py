"""The planned environment of hosts on this machine; nothing is reserved or written for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode.platforms import planned_containers
from scriptmode.platforms.base import PlannedHost
from scriptmode.platforms.local.hosts import job_variables
from scriptmode.platforms.local.store.job_store import JobFolder
from scriptmode.platforms.opt_ml import Sandbox, single_machine_cluster
from scriptmode.spec.hosts import HostKind
from scriptmode_runtime.contract import DEFAULT_PORTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.local.store.job_record import Job
    from scriptmode.platforms.local.store.job_store import JobStore

#: Port 0 stands for a port that is chosen when the job starts.
UNCHOSEN_PORTS = dict.fromkeys(DEFAULT_PORTS, 0)


def plan_local_hosts(job: Job, store: JobStore, inherited: Mapping[str, str]) -> dict[str, PlannedHost]:
    """Return the environment of each host; ``inherited`` are this process's variables."""
    if job.request.resources.host_kind is HostKind.CONTAINER:
        return _containers(job, inherited)
    return _processes(job, store, inherited)


def _containers(job: Job, inherited: Mapping[str, str]) -> dict[str, PlannedHost]:
    from scriptmode.platforms.local.hosts import container_fleet

    request, _ = container_fleet.with_visible_source(job.request)
    variables = job_variables.with_job_variables(container_fleet.container_environment(job.request, inherited), job)
    return planned_containers.plan_container_hosts(request, variables, {"secret": planned_containers.HIDDEN})


def _processes(job: Job, store: JobStore, inherited: Mapping[str, str]) -> dict[str, PlannedHost]:
    from scriptmode.platforms.local.hosts import process_fleet

    folder = JobFolder(store.jobs / job.request.name)
    types = {name: group.instance_type for group in job.request.resources.host_groups for name in group.hosts}
    sandboxes = {name: Sandbox(name, folder.host(name)) for name in types}
    content = single_machine_cluster(
        sandboxes,
        dict.fromkeys(types, UNCHOSEN_PORTS),
        planned_containers.HIDDEN,
        environments=str(store.environments),
    )
    return {
        name: PlannedHost(
            types[name],
            str(sandbox.base),
            sandbox.config_files(job.request, content),
            job_variables.with_job_variables(process_fleet.process_environment(job.request, sandbox, inherited), job),
            job.python,
        )
        for name, sandbox in sandboxes.items()
    }
