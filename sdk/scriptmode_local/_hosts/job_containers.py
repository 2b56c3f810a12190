"""All containers of a job together: their network, their removal, and the owner of their files.

Containers and networks of a job have its `LABEL`, so any process can find and remove all of them.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode.containers import _docker_client as docker_client
from scriptmode.errors import ContainerError
from scriptmode_local._hosts import container_host
from scriptmode_local._hosts.container_host import LABEL, BindMount, Container
from scriptmode_local._system.directory_lock import try_lock
from scriptmode_local._system.forked_tasks import Tasks, reset_signal_handlers
from scriptmode_runtime._files import beneath, directory_tree
from scriptmode_runtime._processes import process_tree

if TYPE_CHECKING:
    from scriptmode_runtime._files.directory_tree import Entry

_POLL_SECONDS = 0.02
#: Number of paths that fit into one command line at any usual length.
_PATHS_AT_ONCE = 1000
#: Enough for millions of files. A client that only asks for the state of a job may wait for it.
_CHOWN_SECONDS = 600
#: Mount point of the directory in a container that changes the owner of files.
_SEEN = "/mnt/written"
_NOT_REMOVED = "containers of the job cannot be removed"
_NOT_OWNED = "the owner of the files of the job's containers cannot be changed"
#: Option of an internal network: without it this machine is its gateway, and all its listening ports can be reached.
_UNSEEN = {"com.docker.network.bridge.inhibit_ipv4": "true"}
#: A container that another client is removing holds its network for a moment.
CLEARING_SECONDS = 20.0
#: In this time the guard of a killed agent ends, which waits for containers twice.
_ENDING_SECONDS = 2 * CLEARING_SECONDS + 5.0
#: Docker may carry out a request of a killed process a moment later.
_SETTLING_SECONDS = 1.0


def create_network(name: str, job: str, *, is_internal: bool) -> None:
    """Create a job's network, on which its hosts resolve each other's names; raise `ContainerError`.

    From an internal network nothing outside of it can be reached.
    """
    with container_host.with_advice(), docker_client.docker_client(f"network {name!r} cannot be made") as client:
        client.networks.create(
            name,
            driver="bridge",
            internal=is_internal,
            check_duplicate=True,
            labels={LABEL: job},
            options=_UNSEEN if is_internal else None,
        )


def disconnected_containers(job: str, network: str) -> list[str]:
    """Return the job's containers that are not on its network any more; none if Docker does not answer.

    The hosts themselves cannot find out: each side only sees that it lost the other.
    """
    with suppress(ContainerError), docker_client.docker_client("containers of the job cannot be listed") as client:
        containers = client.api.containers(all=True, filters={"label": f"{LABEL}={job}"})
        return [
            (container["Names"] or [""])[0].lstrip("/")
            for container in containers
            if network not in container["NetworkSettings"]["Networks"]
        ]
    return []


def remove_job_containers(
    job: str, then: Callable[[], None] = lambda: None, *, retry_seconds: float = CLEARING_SECONDS
) -> None:
    """Remove every container and network of a job, and call ``then``; raise `ContainerError` if one stays.

    Both are retried for ``retry_seconds``: a daemon that does not answer may be restarting, and the containers that
    ``then`` starts may be removed by the guard of a killed agent.
    """
    begun = time.monotonic()
    while True:
        try:
            with docker_client.docker_client(_NOT_REMOVED) as client:
                count = _remove_found(client, job)
            if not count:
                then()
                return
            advice = "stop the program that creates them: docker ps"
            failure, limit = ContainerError(f"{_NOT_REMOVED}: new ones appear", advice=advice), CLEARING_SECONDS
        except ContainerError as error:
            failure, limit = error, retry_seconds
        if time.monotonic() - begun > limit:
            raise failure
        time.sleep(_POLL_SECONDS)


def _remove_found(client: Any, job: str) -> int:
    mine = {"label": f"{LABEL}={job}"}
    containers = client.api.containers(all=True, filters=mine)
    for container in containers:
        container_host.remove_container(client, container["Id"])
    networks = client.networks.list(filters=mine)
    for network in networks:
        with container_host.ignore_missing():
            network.remove()
    return len(containers) + len(networks)


class WrittenFolder(NamedTuple):
    """A directory that a job's containers wrote to; ``owner`` holds the IDs of the user and group that shall own it.

    In a directory of the job itself every file is the job's. In a shared directory only files that changed ``since``
    (seconds since the epoch) are, and no directory that existed before (``known``, by inode).
    """

    folder: Path
    owner: tuple[int, int]
    since: float | None = None
    known: frozenset[int] = frozenset()

    def foreign_entries(
        self, directory: beneath.Directory, failed: directory_tree.Failed | None = None
    ) -> Iterator[tuple[Entry, int]]:
        """Yield the entries that the owner does not own, each with its depth below the topmost such directory.

        Everything below such a directory counts as not owned. ``directory`` is the open directory; ``failed`` is called
        for a directory that cannot be listed, which is an error without it.
        """
        top = -1
        for entry in directory_tree.walk(directory, failed=failed):
            depth = len(entry.above)
            if 0 <= top < depth:
                yield entry, depth - top
                continue
            top = -1
            if self._is_foreign(entry):
                top = depth if entry.is_directory else -1
                yield entry, 0

    def _is_foreign(self, entry: Entry) -> bool:
        status = entry.status
        if status.st_uid == self.owner[0] or (self.since is not None and status.st_ctime < self.since):
            return False
        return self.since is None or not entry.is_directory or status.st_ino not in self.known


def folder_inodes(folder: Path) -> frozenset[int]:
    """Return the inodes of a directory and of every directory below it."""
    try:
        with beneath.Directory(folder) as directory:
            entries = directory_tree.walk(directory, failed=lambda *_: None)
            below = [entry.status.st_ino for entry in entries if entry.is_directory]
            return frozenset((directory.stat("").st_ino, *below))
    except FileNotFoundError:
        return frozenset()


def restore_owner(written: Sequence[WrittenFolder], image: str, job: str) -> None:
    """Change the owner of the files that a job's containers wrote; raise `ContainerError` where that fails.

    Root does so itself; another user needs a container for it, of the job's image.
    """
    # A job that has ended keeps none of its hosts.
    written = [folder for folder in written if folder.folder.exists()]
    try:
        if os.geteuid() == 0:
            for folder in written:
                _change_owner(folder)
            return
        foreign = {folder: paths for folder in written if (paths := _topmost_foreign_paths(folder))}
    except OSError as error:
        raise ContainerError(f"{_NOT_OWNED}: {error}") from error
    failures = []
    for folder, paths_below in foreign.items():
        paths = [str(Path(_SEEN, top)) for top in paths_below]
        parts = [paths[start : start + _PATHS_AT_ONCE] for start in range(0, len(paths), _PATHS_AT_ONCE)]
        for part in parts:
            try:
                _chown(part, folder, image, job)
            except ContainerError as error:  # noqa: PERF203 - the other files are given back nevertheless
                failures.append(error)
    if failures:
        raise failures[0]


def _change_owner(written: WrittenFolder) -> None:
    """Change the owner of every entry that the owner does not own; follow no link."""
    with beneath.Directory(written.folder) as directory:
        for entry, _ in written.foreign_entries(directory):
            # Another program that uses the directory may have removed the file.
            with suppress(FileNotFoundError):
                os.chown(entry.at.name, *written.owner, dir_fd=entry.at.dir_fd, follow_symlinks=False)


def _topmost_foreign_paths(written: WrittenFolder) -> list[str]:
    """Return the paths that the owner does not own, without those below another of them."""
    with beneath.Directory(written.folder) as directory:
        # This user may not be allowed to list directories of other users.
        return [entry.path for entry, depth in written.foreign_entries(directory, lambda *_: None) if depth == 0]


def _chown(paths: Sequence[str], written: WrittenFolder, image: str, job: str) -> None:
    """Run a container that changes the owner of these paths, recursively; raise `ContainerError`."""
    owner = ":".join(map(str, written.owner))
    container = Container(
        name="",
        hostname="owner",
        job=job,
        image=image,
        network="none",
        environment={},
        binds=(BindMount(str(written.folder), _SEEN),),
        entrypoint=("chown",),
        command=("-R", "-h", owner, "--", *paths),
    )
    with docker_client.docker_client(_NOT_OWNED) as client:
        identifier = container_host.create_container(client.api, container, user="0:0")
        try:
            client.api.start(identifier)
            code = client.api.wait(identifier, timeout=_CHOWN_SECONDS)["StatusCode"]
        finally:
            container_host.remove_container(client, identifier)
    if code:
        raise ContainerError(
            f"{_NOT_OWNED}: chown in image {image} ended with exit code {code}", advice="use chown -R as root"
        )


class Guard:
    """A forked process that removes a job's containers and network when its creator dies without dismissing it.

    It reads from a pipe whose other end only the creator has: the end of file tells that the creator is dead. The
    creator must have no threads. The guard holds the lock of ``lock_file`` until it ends, so that the guard of a killed
    agent does not remove what the job's next agent creates.

    Raises:
        ContainerError: The guard of an earlier agent does not end.
        OSError: The lock file cannot be opened.
    """

    def __init__(self, job: str, lock_file: Path, tasks: Tasks) -> None:
        lock = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not process_tree.wait_until(lambda: try_lock(lock), _ENDING_SECONDS):
                raise ContainerError(f"{_NOT_REMOVED}: those of its earlier run are still being removed")
            self._fork(job, tasks)
        finally:
            os.close(lock)

    def _fork(self, job: str, tasks: Tasks) -> None:
        # Open only in the creator, and in its children, which die with it.
        watched, self._held = os.pipe()
        self._pid = tasks.fork()
        if self._pid == 0:
            os.close(self._held)
            _run_guard(job, watched)
        os.close(watched)

    def dismiss(self) -> None:
        """Stop the guard without removing anything."""
        if self._pid:
            with suppress(OSError):
                os.write(self._held, b".")
            os.close(self._held)
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0


def _run_guard(job: str, watched: int) -> None:
    """Run the guard in the forked child; never return."""
    status = 1
    try:
        os.setsid()
        reset_signal_handlers(signal.SIG_IGN)
        is_dismissed = bool(os.read(watched, 1))
        for pause in () if is_dismissed else (_SETTLING_SECONDS, 0):
            try:
                remove_job_containers(job)
            except ContainerError as error:
                sys.stderr.write(f"{error}\n")
            time.sleep(pause)
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)
