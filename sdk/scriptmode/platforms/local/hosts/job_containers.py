"""What is done about the containers of a job together: their network, their removal, their files' owner.

Whatever belongs to a job carries its `LABEL`, so that nothing of it is left, whoever is there to remove it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.containers import docker_client
from scriptmode.errors import ContainerError
from scriptmode.platforms.local.hosts import container_host
from scriptmode.platforms.local.hosts.container_host import LABEL, BindMount, Container
from scriptmode.platforms.local.system.forked_tasks import reset_signal_handlers
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scriptmode_runtime.files.beneath import Entry

_POLL_SECONDS = 0.02
#: A command line has room for so many of any usual length.
_PATHS_AT_ONCE = 1000
#: For millions of files; who waits for it may be somebody who only asks how a job stands.
_CHOWN_SECONDS = 600
#: Where a container that gives files back sees their folder.
_SEEN = "/mnt/written"
#: Else this machine is the gateway of an internal network, too, and whatever listens on it can be reached.
_UNSEEN = {"com.docker.network.bridge.inhibit_ipv4": "true"}
#: What is being removed by somebody else holds its network for a moment.
CLEARING_SECONDS = 20.0
#: What a killed process had asked Docker for may be done a moment later.
_SETTLING_SECONDS = 1.0


def create_network(name: str, job: str, *, is_internal: bool) -> None:
    """Make a job's own network, on which its hosts know each other by name; raise `ContainerError`.

    Of an internal one nothing outside it can be reached.
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
    """Name the job's containers that are not on its network any more; none where Docker does not answer.

    From within, a host that was cut off and those it was cut off from lose each other alike.
    """
    with suppress(ContainerError), docker_client.docker_client("containers of the job cannot be listed") as client:
        found = client.api.containers(all=True, filters={"label": f"{LABEL}={job}"})
        return [
            (each["Names"] or [""])[0].lstrip("/")
            for each in found
            if network not in each["NetworkSettings"]["Networks"]
        ]
    return []


def remove_job_containers(job: str, *, retry_seconds: float = CLEARING_SECONDS) -> str:
    """Remove every container and network of a job; say why one stays, "" when nothing does.

    A daemon that does not answer is asked again for ``retry_seconds`` seconds: it may be starting anew.
    """
    begun = time.monotonic()
    while True:
        try:
            with docker_client.docker_client("containers of the job cannot be removed") as client:
                if not _remove_found(client, job):
                    return ""
            said, limit = "they come again and again", CLEARING_SECONDS
        except ContainerError as error:
            said, limit = str(error), retry_seconds
        if time.monotonic() - begun > limit:
            return said
        time.sleep(_POLL_SECONDS)


def _remove_found(client: Any, job: str) -> int:
    """Remove what there is now; give how much that was."""
    mine = {"label": f"{LABEL}={job}"}
    found = client.api.containers(all=True, filters=mine)
    for each in found:
        container_host.remove_container(client, each["Id"])
    networks = client.networks.list(filters=mine)
    for network in networks:
        with container_host.ignore_missing():
            network.remove()
    return len(found) + len(networks)


@dataclass(frozen=True)
class WrittenFolder:
    """A folder that a job's containers wrote to. ``owner`` is a user's and a group's number.

    Everything below a folder of the job's own is the job's. Of a shared one that is only what changed ``since``
    (seconds since the epoch), and no folder that was there before (``known``, by inode).
    """

    folder: Path
    owner: tuple[int, int]
    since: float | None = None
    known: frozenset[int] = frozenset()

    def foreign_entries(
        self, directory: beneath.Directory, failed: beneath.Failed | None = None
    ) -> Iterator[tuple[Entry, int]]:
        """Yield what is not the owner's, and how deep it is below a directory that is not; all below such a one is not.

        ``directory`` is the open folder; ``failed`` is told what cannot be listed, which is an error without it.
        """
        top = -1
        for entry in directory.walk(failed=failed):
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
    """Return the inodes of a folder and of every folder below it."""
    try:
        with beneath.Directory(folder) as directory:
            below = [entry.status.st_ino for entry in directory.walk(failed=lambda *_: None) if entry.is_directory]
            return frozenset((directory.stat("").st_ino, *below))
    except FileNotFoundError:
        return frozenset()


def restore_owner(written: Sequence[WrittenFolder], image: str, job: str) -> str:
    """Make what a job's containers wrote its owner's; say why that failed or "".

    Root does it itself; another user needs a container for it, of the job's own image.
    """
    try:
        if os.geteuid() == 0:
            for each in written:
                _change_owner(each)
            return ""
        found = {each: paths for each in written if (paths := _topmost_foreign_paths(each))}
    except OSError as error:
        return f"files of the job's containers cannot be given back to their owner: {error}"
    problems = []
    for each, paths_below in found.items():
        paths = [str(Path(_SEEN, top)) for top in paths_below]
        parts = [paths[start : start + _PATHS_AT_ONCE] for start in range(0, len(paths), _PATHS_AT_ONCE)]
        problems += [_chown(part, each, image, job) for part in parts]
    return next(filter(None, problems), "")


def _change_owner(written: WrittenFolder) -> None:
    """Make everything that is not the owner's the owner's, and follow no link."""
    with beneath.Directory(written.folder) as directory:
        for entry, _ in written.foreign_entries(directory):
            # Removed meanwhile, from a folder that others use, too.
            with suppress(FileNotFoundError):
                os.chown(entry.at.name, *written.owner, dir_fd=entry.at.dir_fd, follow_symlinks=False)


def _topmost_foreign_paths(written: WrittenFolder) -> list[str]:
    """Return the paths that are not the owner's but for what is below others of them."""
    with beneath.Directory(written.folder) as directory:
        # What is not this user's may not be this user's to list.
        return [entry.path for entry, depth in written.foreign_entries(directory, lambda *_: None) if depth == 0]


def _chown(paths: Sequence[str], written: WrittenFolder, image: str, job: str) -> str:
    """Have a container make these paths, with all below them, the owner's; say why that failed or ""."""
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
    try:
        with docker_client.docker_client("files of the job's containers cannot be given back to their owner") as client:
            identifier = container_host.create_container(client.api, container, user="0:0")
            try:
                client.api.start(identifier)
                code = client.api.wait(identifier, timeout=_CHOWN_SECONDS)["StatusCode"]
            finally:
                container_host.remove_container(client, identifier)
    except ContainerError as error:
        return str(error)
    return f"chown in image {image} ended with exit code {code}" if code else ""


class Guard:
    """Removes a job's containers and network as soon as the process that made it dies without having dismissed it.

    The maker must have no threads, and keeps its descriptor ``lock`` to itself.
    """

    def __init__(self, job: str, lock: int) -> None:
        # Open in nobody but the maker and children that die with it.
        watched, self._held = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(lock)
            os.close(self._held)
            _run_guard(job, watched)
        os.close(watched)

    def dismiss(self) -> None:
        """End the guard; there is nothing left to remove."""
        if self._pid:
            with suppress(OSError):
                os.write(self._held, b".")
            os.close(self._held)
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0


def _run_guard(job: str, watched: int) -> None:
    """Be the guard: never returns."""
    status = 1
    try:
        os.setsid()
        reset_signal_handlers(signal.SIG_IGN)
        if not os.read(watched, 1):
            problem = remove_job_containers(job)
            time.sleep(_SETTLING_SECONDS)
            problem = remove_job_containers(job) or problem
            sys.stderr.write(problem and f"{problem}\n")
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)
