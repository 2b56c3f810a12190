"""Hosts that are processes: their interpreter, their ports, and their environment variables."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.platforms.local.hosts.process_host import ProcessHost
from scriptmode.platforms.local.store.job_store import JobStore
from scriptmode.platforms.local.system.ports import Ports
from scriptmode.platforms.opt_ml import Sandbox, single_machine_cluster
from scriptmode_runtime.contract import BASE_DIR_VARIABLE
from scriptmode_runtime.files import scratch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scriptmode.platforms.local.hosts import Host
    from scriptmode.platforms.local.store.job_record import Job
    from scriptmode.platforms.local.store.job_store import JobFolder
    from scriptmode.spec.job_request import JobRequest

#: Variables of other jobs and other launchers, which a host's runtime must not read as its own.
FOREIGN_PREFIXES = ("SM_", "SAGEMAKER_", "OMPI_", "PMIX_", "PRTE_")
FOREIGN_NAMES = frozenset({"TF_CONFIG"})


class ProcessFleet:
    """Fleet of processes; implements `fleet.Fleet`."""

    no_model_message = (
        "the script saved no files in SM_MODEL_DIR, so model.tar.gz is empty; save to the directory that SM_MODEL_DIR "
        "names, not to /opt/ml/model"
    )
    mount_obstacle = None
    mounts_file_systems = False

    def __init__(self, folder: JobFolder, job: Job, inherited: Mapping[str, str]) -> None:
        self._folder = folder
        self._job = job
        self._inherited = inherited
        self._ports = Ports(JobStore(folder.path.parent.parent).ports)
        self.sandboxes = {name: Sandbox(name, folder.host(name)) for name in job.request.resources.hosts}

    def prepare(self) -> None:
        """Reserve the hosts' ports and write their configuration files."""
        ports = self._ports.reserve(list(self.sandboxes))
        content = single_machine_cluster(self.sandboxes, ports, secrets.token_hex(32))
        for sandbox in self.sandboxes.values():
            sandbox.prepare(self._job.request, content)

    def has_image(self) -> bool:
        """Return whether the image is on this machine: always, as processes need none."""
        return True

    def pull_image(self) -> None:
        """Skip: processes need no image."""

    def create_hosts(self, environments: Mapping[str, Mapping[str, str]]) -> Sequence[Host]:
        """Create the hosts, not started."""
        return [
            ProcessHost(
                name=name,
                argv=(self._job.python, "-m", "scriptmode_runtime"),
                env=environments[name],
                cwd=Path("/"),
                log=self._folder.log(name),
            )
            for name in self.sandboxes
        ]

    def environment(self, sandbox: Sandbox) -> dict[str, str]:
        """Return this process's variables, except for those of other jobs, and the request's."""
        return process_environment(self._job.request, sandbox, self._inherited)

    def find_disconnected(self) -> None:
        """Return ``None``: processes of one machine reach each other."""

    def remove_hosts(self) -> list[str]:
        """Skip: the agent kills every process below it."""
        return []

    def release(self) -> None:
        """Release the ports, and remove directories that killed launchers left outside the job's folder."""
        self._ports.release()
        remove_scratch(self._job.request, self._inherited)


def remove_scratch(job: JobRequest, inherited: Mapping[str, str]) -> None:
    """Remove the directories that launchers of this user left in their TMPDIR when they were killed."""
    for variables in (inherited, job.environment):
        scratch.remove_orphans(scratch.candidate_directories(variables.get("TMPDIR", "")))


def process_environment(job: JobRequest, sandbox: Sandbox, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return a host's variables, except for those of `job_variables`: the inherited ones and the request's.

    Inherited variables that belong to another job are left out.
    """
    own = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(FOREIGN_PREFIXES) and name not in FOREIGN_NAMES
    }
    return {
        **own,
        **{name: sandbox.map_paths(value) for name, value in job.environment.items()},
        BASE_DIR_VARIABLE: str(sandbox.base),
    }
