"""The engine of a Slurm cluster: what a job needs to be one batch job, whose nodes are the hosts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode._core.text.messages import Problem
from scriptmode.errors import DataError, PlatformError
from scriptmode_local._data.durable import replace_file
from scriptmode_local._hosts.process_engine import ProcessEngine
from scriptmode_local._store.job_store import ENGINE_RECORD, JobFolder
from scriptmode_slurm._engine import batch_script, commands
from scriptmode_slurm._engine.agent import CLUSTER, NUMBER, SlurmAgent, find_own_job
from scriptmode_slurm._engine.settings import parse_settings, settings_from_json

if TYPE_CHECKING:
    from scriptmode._core.spec.host_values import PlannedHost
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import TrainingJobSpec
    from scriptmode_local._hosts import HostSettings
    from scriptmode_local._hosts.fleet import Fleet
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._system.forked_tasks import Tasks

#: The batch script in the job's folder.
_SCRIPT = "job.sh"


class SlurmEngine(SlurmAgent, ProcessEngine):
    """Engine of ``slurm`` and ``slurm:PARTITION``, whose hosts are processes of nodes."""

    def complete(self, spec: TrainingJobSpec, settings: HostSettings) -> TrainingJobSpec:
        """Return the spec as it is, after slurmctld answered, which may restart; `launch` waits for nothing.

        Raises `PlatformError` where Slurm does not answer.
        """
        commands.STATES.cluster(wait=commands.RETRY_SECONDS)
        return super().complete(spec, settings)

    def problems(self, job: JobRequest) -> Iterator[Problem]:
        """Yield a missing network, and the name of a partition that none can have."""
        yield from super().problems(job)
        for instance_type in dict.fromkeys(job.resources.types):
            # A line end would be one of the batch script.
            if instance_type.endswith(":") or not instance_type.isprintable():
                what = f"instance_type is {instance_type!r}, which names no partition"
                yield Problem(what, "use 'slurm' or 'slurm:PARTITION'", "instance_type")

    def settings(self, given: HostSettings) -> dict[str, object]:
        """Return the settings of `Slurm`, of the variable and of the config files.

        Raises `SpecError` for wrong ones, and `DataError` for those of a damaged record.
        """
        try:
            recorded = settings_from_json(given.recorded) if given.recorded else None
        except ValueError as error:
            what = f"the Slurm settings of the first job are damaged: {error}"
            raise DataError(what, advice="start a new job: scriptmode run") from error
        return parse_settings(given.options, os.environ, recorded).to_json()

    def plan(self, folder: JobFolder, job: Job, inherited: Mapping[str, str]) -> tuple[dict[str, PlannedHost], str]:
        """Return the environment of each host, and what sbatch would get."""
        from scriptmode_local._hosts.planned_processes import plan_processes

        own = settings_from_json(job.engine)
        gpus = {
            host: batch_script.gpus_of_host(own.all_options(component.partition), len(component.hosts))
            for component in batch_script.components(job.request.resources, own)
            for host in component.hosts
        }
        return plan_processes(folder, job, inherited, gpus), self._render(folder, job)

    def launch(self, folder: JobFolder, job: Job, lock: int) -> None:  # noqa: ARG002 - the agent takes it on its node
        """Submit the job's batch script, whose step is the agent; raise `PlatformError`.

        Nothing is repeated while slurmctld is away, because Ctrl-C is deferred; `complete` waited for it.
        """
        script = self._render(folder, job)
        path = folder.path / _SCRIPT
        try:
            replace_file(path, script.encode())
        except OSError as error:
            raise PlatformError(f"the batch script cannot be written: {error}") from error
        header = settings_from_json(job.engine).header_options
        environ = batch_script.submission_environment(script, os.environ, header)
        cluster = commands.STATES.cluster()
        number = commands.submit(path, environ=environ)
        try:
            folder.write_record(ENGINE_RECORD, {NUMBER: str(number), CLUSTER: cluster})
            folder.write_places(dict.fromkeys(job.request.resources.hosts, f"Slurm job {number}"))
        except OSError as error:
            commands.cancel(number)
            what = f"the number of Slurm job {number} cannot be recorded: {error}"
            raise PlatformError(what, advice="make the data directory writable") from error

    def create_fleet(
        self, folder: JobFolder, job: Job, tasks: Tasks, inherited: Mapping[str, str], host: str = ""
    ) -> Fleet:
        """Return the hosts of a job, as many as its allocation has nodes, which may be fewer with ``min_nodes``.

        This process is its batch step or, with ``host``, the step on that host's node.
        """
        from scriptmode_slurm._engine import fleet

        if host:
            return fleet.NodeFleet(folder, job, host, tasks, inherited)
        resources, nodes = job.request.resources, int(inherited.get("SLURM_JOB_NUM_NODES", "0"))
        if job.engine.get("min_nodes") and not resources.instance_groups and 0 < nodes < resources.count:
            job = job.with_hosts(nodes)
        return fleet.SlurmFleet(folder, job, tasks, inherited)

    def remove_outside_folder(self, folder: JobFolder, inherited: Mapping[str, str]) -> None:  # noqa: ARG002 - Slurm has it
        """Cancel the job, which ends what is left on its nodes."""
        with suppress(DataError):
            if folder.read_state().ended:
                # Its agent ended, and the allocation with it.
                return
        if (number := find_own_job(folder)) is not None:
            commands.cancel(number)

    @staticmethod
    def _render(folder: JobFolder, job: Job) -> str:
        settings = settings_from_json(job.engine)
        agent = (sys.executable, "-m", "scriptmode_slurm._engine", str(folder.path), *job.request.resources.hosts)
        partitions = commands.list_partitions()
        return batch_script.render_batch_script(job, settings, str(folder.agent_log), agent, partitions)
