"""Hosts that are containers: image, network, bind mounts, and the owner of the files that they write."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.spec.hosts import LOCAL_GPU
from scriptmode._core.spec.inputs import FileSystemInput
from scriptmode._core.text.messages import Problem
from scriptmode.errors import ContainerError
from scriptmode_local._data import file_uris, regular_files
from scriptmode_local._data.staging import StagingArea
from scriptmode_local._hosts import CREDENTIALS, job_containers
from scriptmode_local._hosts.container_host import BindMount, Container, ContainerHost
from scriptmode_local._hosts.container_limits import ContainerLimits, default_pids
from scriptmode_local._hosts.fleet import Fleet
from scriptmode_local._hosts.job_containers import WrittenFolder
from scriptmode_local._opt_ml import opt_ml, planned_containers
from scriptmode_local._opt_ml.opt_ml import Sandbox
from scriptmode_local._store import shapes
from scriptmode_local._system import file_systems
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._system.forked_tasks import Tasks

#: Waiting ranks of Open MPI poll without yielding, which takes the cores from the other hosts on this machine. (Open
#: MPI documentation, "Oversubscription and polling")
_ON_SHARED_CORES = {"OMPI_MCA_mpi_yield_when_idle": "1"}
#: A umask that lets all users read.
_READABLE = 0o022
#: File beside the staged channels that records which directories the script's ``model_dir`` held before the job.
_BEFORE = "model_dir.json"
_BEFORE_SHAPE = {"since!": float, "known!": [int]}
#: Number of characters that distinguish jobs of the same name in two data directories.
_DIGEST_CHARACTERS = 8


class ContainerFleet(Fleet):
    """Fleet of containers."""

    def __init__(self, folder: JobFolder, job: Job, tasks: Tasks, inherited: Mapping[str, str]) -> None:
        super().__init__(folder, job, tasks, inherited)
        # Other users, such as that of a container, can read only the FUSE mounts of root.
        obstacle = Problem("a user's own mounts are not to be seen in containers") if os.geteuid() else None
        self.staging = StagingArea(folder.channels, mount_obstacle=obstacle, mounts_file_systems=True)
        self._guard: job_containers.Guard | None = None
        self._umask = _READABLE
        self._hosts: dict[str, ContainerHost] = {}
        self.sandboxes = {
            name: Sandbox(name, folder.host(name), contract.DEFAULT_BASE_DIR, planned_containers.INTERFACE)
            for name in job.request.resources.hosts
        }

    def prepare(self) -> None:
        """Create the network and the sandboxes; from now on a guard process removes them if this process dies."""
        job = self._folder.label
        # The image's user, whose ID is unknown, has to read the files. The job's directory is closed to others.
        self._umask = os.umask(_READABLE)
        self._guard = job_containers.Guard(job, self._folder.guard_lock, self._tasks)
        isolated = bool(self._job.request.network.isolation)
        job_containers.create_network(self._docker_name("network"), job, is_internal=isolated)
        content = {"secret": secrets.token_hex(32), "isolate_requirements": True}
        for sandbox in self.sandboxes.values():
            sandbox.prepare(self._job.request, content, copies_source=True)
            for name in self._file_systems(sandbox):
                sandbox.channel(name).mkdir(parents=True, exist_ok=True)
            sandbox.open_to_all_users()
        if model_dir := model_dir_here(self._job.request):
            before = {"since": time.time(), "known": sorted(job_containers.folder_inodes(model_dir))}
            (self._folder.channels / _BEFORE).write_text(json.dumps(before), encoding="utf-8")
            model_dir.mkdir(parents=True, exist_ok=True)
            if self._folder.path in model_dir.parents:
                opt_ml.open_to_all_users(model_dir)

    def start_host(self, host: str) -> int:
        """Start a container; return the process ID of the task that follows it."""
        limits = ContainerLimits(**self._job.engine)
        limits = replace(limits, pids=limits.pids or default_pids(len(self.sandboxes)))
        request, sandbox = self._job.request, self.sandboxes[host]
        entry, arguments = request.algorithm.container_entry_point, request.algorithm.container_arguments
        with_gpus = (group for group in request.resources.host_groups if group.instance_type == LOCAL_GPU)
        # Checkpoints were restored since `prepare`.
        sandbox.open_to_all_users(sandbox.checkpoints(request.output), files=True)
        container = Container(
            name=self._docker_name(host),
            hostname=host,
            job=self._folder.label,
            image=str(request.algorithm.image_uri),
            network=self._docker_name("network"),
            environment=container_environment(self._job, self._inherited),
            binds=self._binds(sandbox),
            entrypoint=entry,
            # `train` is the argument of the image's entry point, if the request sets neither.
            command=arguments if entry or arguments else ("train",),
            limits=limits,
            has_gpus=any(host in group.hosts for group in with_gpus),
        )
        self._hosts[host] = ContainerHost(container, self._folder.log(host), self._tasks)
        return self._hosts[host].follower.pid

    def poll_host(self, host: str) -> int | None:
        """Return the exit code once the container ended, ``-n`` for signal n, else None."""
        return self._hosts[host].poll()

    def signal_host(self, host: str, number: int) -> None:
        """Send SIGTERM to the container, at once or as soon as it runs; remove it where that is SIGKILL."""
        self._hosts[host].signal(number)

    def find_process(self, host: str) -> int:
        """Return the process ID of the container's first process; 0 while it does not run, or is not visible here."""
        return self._hosts[host].find_process()

    def explain_end(self, host: str, code: int) -> str:  # noqa: ARG002 - Docker knows
        """Return what Docker says of the container's end."""
        return self._hosts[host].machine_failure

    def find_disconnected(self, code: int | None = None) -> Problem | None:  # noqa: ARG002 - whatever it is
        """Return which containers were disconnected from the job's network."""
        network = self._docker_name("network")
        gone = set(job_containers.disconnected_containers(self._folder.label, network))
        hosts = [name for name in self.sandboxes if self._docker_name(name) in gone]
        what = f"{', '.join(hosts)}: disconnected from the job's network, {network}"
        return Problem(what, "run the job again") if hosts else None

    def remove_hosts(self) -> list[str]:
        """Remove the containers and the network, then change the owner of their files to the user."""
        if self._guard is None:
            return []
        os.umask(self._umask)
        try:
            job_containers.remove_job_containers(self._folder.label)
            self._guard.dismiss()
            restore_ownership(self._folder, self._job)
        except ContainerError as error:
            return [str(error)]
        return []

    def _docker_name(self, what: str) -> str:
        """Return Docker's name for a container or the network, unique also if data directories share a job name."""
        digest = hashlib.sha256(self._folder.label.encode()).hexdigest()[:_DIGEST_CHARACTERS]
        return f"{self._folder.name}-{what}-{digest}"

    def _binds(self, sandbox: Sandbox) -> tuple[BindMount, ...]:
        binds = [BindMount(str(sandbox.base), contract.DEFAULT_BASE_DIR)]
        for name, source in self._file_systems(sandbox).items():
            folder = file_systems.find_folder(source, self._job.file_systems)
            target = f"{contract.DEFAULT_BASE_DIR}/{contract.DATA_DIR}/{name}"
            binds.append(BindMount(str(folder), target, file_systems.is_read_only(source)))
        if model_dir := model_dir_here(self._job.request):
            # A script that gets this directory as model_dir writes there, as it would to its bucket.
            binds.append(BindMount(str(model_dir), str(model_dir)))
        return tuple(binds)

    def _file_systems(self, sandbox: Sandbox) -> dict[str, FileSystemInput]:
        return {
            channel.name: channel.source
            for channel in self._job.request.channels
            if isinstance(channel.source, FileSystemInput) and sandbox.host in self._job.request.channel_hosts(channel)
        }


def container_environment(job: Job, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of every host: the credentials among the inherited ones, the request's and the job's."""
    request = job.request
    # As on SageMaker, which gives no credentials to containers without a network.
    names = () if request.network.isolation else CREDENTIALS
    own = {name: inherited[name] for name in names if name in inherited}
    if request.resources.count > 1:
        own.update(_ON_SHARED_CORES)
    return job.variables({**own, **request.environment})


def restore_ownership(folder: JobFolder, job: Job) -> None:
    """Change the owner of files that the job's containers wrote to the job's owner; raise `ContainerError`."""
    status = folder.path.stat()
    owner = status.st_uid, status.st_gid
    written = [WrittenFolder(folder.hosts, owner)]
    record = folder.channels / _BEFORE
    if model_dir := model_dir_here(job.request):
        # Without the record it is unknown which files the containers wrote.
        with suppress(OSError, ValueError):
            before = regular_files.read_json(record)
            shapes.validate_shape(before, _BEFORE_SHAPE, "")
            written.append(WrittenFolder(model_dir, owner, before["since"], frozenset(before["known"])))
    job_containers.restore_owner(written, str(job.request.algorithm.image_uri), folder.label)


def model_dir_here(job: JobRequest) -> Path | None:
    """Return the directory of this machine that the script gets as ``model_dir``; None if it is elsewhere."""
    with suppress(ValueError):  # validation reports a URI that is not that of a file
        return file_uris.file_path(job.model_dir) if file_uris.is_file(job.model_dir) else None
    return None
