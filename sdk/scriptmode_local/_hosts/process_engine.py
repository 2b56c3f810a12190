"""Hosts that are processes of this machine, which share its software, its network and its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from scriptmode._core.text.messages import Problem
from scriptmode.errors import invalid
from scriptmode_local._hosts.engine import Engine

if TYPE_CHECKING:
    from scriptmode._core.spec.host_values import PlannedHost
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import TrainingJobSpec
    from scriptmode_local._hosts import HostSettings
    from scriptmode_local._hosts.fleet import Fleet
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._system.forked_tasks import Tasks


class ProcessEngine(Engine):
    """Engine of ``local_process``."""

    def complete(self, spec: TrainingJobSpec, settings: HostSettings) -> TrainingJobSpec:
        """Return the spec as it is; warn if the interpreter has another TensorFlow, or is another Python."""
        if spec.script is None:
            raise invalid("entry_point", "is missing", "give a script, because hosts that are processes run no image")
        if settings.container_limits:
            kind = spec.resources.types[0]
            what = f"is {settings.container_limits!r}, but hosts of instance type {kind!r} are processes without limits"
            raise invalid("container_limits", what, "leave it out of LocalPlatform(...), or use instance_type='local'")
        if spec.algorithm.framework_version or spec.algorithm.py_version:
            from scriptmode_local._hosts.interpreter import compare_versions

            compare_versions(spec.algorithm, settings)
        return spec

    def problems(self, job: JobRequest) -> Iterator[Problem]:
        """Yield a missing network."""
        if job.network.isolation:
            what = "EnableNetworkIsolation is True: hosts that are processes cannot be isolated"
            yield Problem(what, "leave it out, or use instance type 'local'", "enable_network_isolation")

    def plan(self, folder: JobFolder, job: Job, inherited: Mapping[str, str]) -> tuple[dict[str, PlannedHost], str]:
        """Return the environment of each host, with ports that are not chosen yet."""
        from scriptmode_local._hosts.planned_processes import plan_processes

        return plan_processes(folder, job, inherited), ""

    def create_fleet(
        self, folder: JobFolder, job: Job, tasks: Tasks, inherited: Mapping[str, str], host: str = ""
    ) -> Fleet:
        """Return the processes of a job."""
        from scriptmode_local._hosts import process_fleet

        return process_fleet.ProcessFleet(folder, job, tasks, inherited, only=host)

    def remove_outside_folder(self, folder: JobFolder, inherited: Mapping[str, str]) -> None:
        """Remove the launchers' directories."""
        from scriptmode_local._hosts import process_fleet

        process_fleet.remove_scratch(folder.read_job().request, inherited)
