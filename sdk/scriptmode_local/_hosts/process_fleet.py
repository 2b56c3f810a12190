"""Hosts that are processes: their interpreter, their ports, and their environment variables."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.text.messages import Problem
from scriptmode_local._data.staging import StagingArea
from scriptmode_local._hosts.fleet import Fleet
from scriptmode_local._hosts.host_identity import loopback_address, write_hosts_file
from scriptmode_local._hosts.process_host import ProcessHost
from scriptmode_local._opt_ml.opt_ml import Sandbox, single_machine_cluster
from scriptmode_local._store.job_store import JobFolder, JobStore
from scriptmode_local._system.ports import Ports
from scriptmode_runtime._files import scratch
from scriptmode_runtime.contract import BASE_DIR_VARIABLE, DEFAULT_BASE_DIR, WORLD_VARIABLES

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._system.forked_tasks import Tasks

#: Variables of other jobs, other launchers and batch systems, which a host must not read as its own: with those of a
#: batch system mpirun starts its ranks on the nodes of that system's job, and libraries take its ranks and addresses.
#: CUDA_VISIBLE_DEVICES and its kind, which Slurm sets too, stay. PYTHONINSPECT makes every sys.exit() an exit code 1.
FOREIGN_PREFIXES = (
    "SM_", "SAGEMAKER_", "OMPI_", "PMIX_", "PRTE_", "PMI_", "PMI2_", "SLURM_", "SLURMD_", "SRUN_", "SBATCH_", "SALLOC_",
    "PBS_", "LSB_", "HOROVOD_GLOO_", "PYTHONINSPECT",
)  # fmt: skip
FOREIGN_NAMES = frozenset(
    ("TF_CONFIG", *WORLD_VARIABLES, "SLURM", "PE_HOSTFILE", "HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS")
)


class ProcessFleet(Fleet):
    """Fleet of processes."""

    def __init__(
        self, folder: JobFolder, job: Job, tasks: Tasks, inherited: Mapping[str, str], *, only: str = ""
    ) -> None:
        """Create the fleet of all hosts; ``only``: of this host alone, which another process prepared."""
        super().__init__(folder, job, tasks, inherited)
        self.staging = StagingArea(folder.channels / only)
        self._hosts: dict[str, ProcessHost] = {}
        self._began = 0.0
        self._hosts_file = folder.channels / "hosts"
        self._ports = Ports(JobStore(folder.path.parent.parent).ports)
        names = (only,) if only else job.request.resources.hosts
        self.sandboxes = {name: Sandbox(name, folder.host(name)) for name in names}

    def prepare(self) -> None:
        """Reserve the hosts' ports and write their configuration files."""
        ports = self._ports.reserve(list(self.sandboxes))
        addresses = {name: loopback_address(min(block.values())) for name, block in ports.items()}
        write_hosts_file(self._hosts_file, addresses)
        content = single_machine_cluster(self.sandboxes, ports, os.urandom(32).hex())
        for sandbox in self.sandboxes.values():
            sandbox.prepare(self._job.request, content)

    def start_host(self, host: str) -> int:
        """Start a process; return its ID."""
        self._began = self._began or time.time()
        sandbox = self.sandboxes[host]
        self._hosts[host] = ProcessHost(
            argv=self.command(),
            env=self.environment(sandbox),
            log=self._folder.log(host),
            base=sandbox.base,
            hosts_file=self._hosts_file,
        )
        return self._hosts[host].pid

    def poll_host(self, host: str) -> int | None:
        """Return the exit code once the process ended, ``-n`` for signal n, else None."""
        return self._hosts[host].poll()

    def signal_host(self, host: str, number: int) -> None:
        """Send a signal to the process, SIGKILL to all its descendants, too."""
        self._hosts[host].signal(number)

    def find_process(self, host: str) -> int:
        """Return the process ID."""
        return self._hosts[host].pid

    def command(self) -> tuple[str, ...]:
        """Return what a host runs: the request's entry point and arguments, by default ``train``."""
        algorithm = self._job.request.algorithm
        own = (*algorithm.container_entry_point, *algorithm.container_arguments)
        return own or (self._job.python, "-m", "scriptmode_runtime")

    def environment(self, sandbox: Sandbox) -> dict[str, str]:
        """Return a host's variables."""
        variables = process_environment(self._job, sandbox, self._inherited)
        if not self._job.request.algorithm.container_entry_point:
            return variables
        # An entry point finds the job's `python` and `train`.
        search = (str(Path(self._job.python).parent), variables.get("PATH", os.defpath))
        return {**variables, "PATH": os.pathsep.join(search)}

    def release_machine(self) -> Problem | None:
        """Return which file appeared in this machine's ``/opt/ml`` while hosts ran that have none of their own."""
        if not any(host.refusal for host in self._hosts.values()):
            return None
        walk = os.walk(DEFAULT_BASE_DIR)
        for path in (os.path.join(folder, name) for folder, _, files in walk for name in files):  # noqa: PTH118 - texts
            with suppress(OSError):
                if os.lstat(path).st_ctime >= self._began:
                    message = f"the model directory is empty, and {path!r} of this machine was written meanwhile"
                    return Problem(message, "save to the directory that SM_MODEL_DIR names, or allow namespaces")
        return None

    def remove_hosts(self) -> list[str]:
        """Release the ports, and remove directories that killed launchers left outside the job's directory."""
        self._ports.release()
        remove_scratch(self._job.request, self._inherited)
        return []


def remove_scratch(job: JobRequest, inherited: Mapping[str, str]) -> None:
    """Remove the directories that launchers of this user left in their TMPDIR when they were killed."""
    for variables in (inherited, job.environment):
        scratch.remove_orphans(scratch.candidate_directories(variables.get("TMPDIR", "")))


def process_environment(job: Job, sandbox: Sandbox, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return a host's variables: the inherited ones, except for those of other jobs, the request's and the job's."""
    own = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(FOREIGN_PREFIXES) and name not in FOREIGN_NAMES
    }
    given = {name: sandbox.map_paths(value) for name, value in job.request.environment.items()}
    return job.variables({**own, **given, BASE_DIR_VARIABLE: str(sandbox.base)})
