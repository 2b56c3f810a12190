"""The hosts of a job that is not started, if they are processes of this machine or of nodes with the same programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from scriptmode._core.spec.host_values import PlannedHost
from scriptmode_local._hosts import host_identity, process_fleet
from scriptmode_local._opt_ml.opt_ml import Sandbox, cluster_of_machines, single_machine_cluster
from scriptmode_local._opt_ml.planned_containers import HIDDEN
from scriptmode_runtime.contract import DEFAULT_PORTS

if TYPE_CHECKING:
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder


def plan_processes(
    folder: JobFolder, job: Job, inherited: Mapping[str, str], gpus: Mapping[str, int] | None = None
) -> dict[str, PlannedHost]:
    """Return the environment of each host, a process of this machine, or of a node that has so many ``gpus``."""
    types = {name: group.instance_type for group in job.request.resources.host_groups for name in group.hosts}
    sandboxes = {name: Sandbox(name, folder.host(name)) for name in types}
    # Port 0 stands for a port that is chosen when the job starts, and a host's name for the address of its node.
    ports = dict.fromkeys(types, dict.fromkeys(DEFAULT_PORTS, 0))
    if gpus is None:
        content, refusal = single_machine_cluster(sandboxes, ports, HIDDEN), host_identity.find_refusal()
    else:
        content, refusal = cluster_of_machines(sandboxes, {name: name for name in types}, ports, HIDDEN), None
    return {
        name: PlannedHost(
            types[name],
            str(sandbox.base),
            sandbox.config_files(job.request, content),
            process_fleet.process_environment(job, sandbox, inherited),
            job.python,
            gpus[name] if gpus else None,
            str(refusal or ""),
        )
        for name, sandbox in sandboxes.items()
    }
