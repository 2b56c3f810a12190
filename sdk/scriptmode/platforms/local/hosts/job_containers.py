"""What is done about the containers of a job together: their network, their removal, their files' owner.

Whatever belongs to a job carries its `LABEL`, so that nothing of it is left, whoever is there to remove it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.containers import engine
from scriptmode.errors import ContainerError
from scriptmode.platforms.local.hosts import containers
from scriptmode.platforms.local.hosts.containers import LABEL, Bind, Container

if TYPE_CHECKING:
    from collections.abc import Iterator

_POLL_SECONDS = 0.01
#: A command line has room for so many of usual length.
_PATHS_AT_ONCE = 5000
#: Else this machine is the gateway of an internal network, too, and whatever listens on it can be reached.
_UNSEEN = {"com.docker.network.bridge.inhibit_ipv4": "true"}
#: What is being removed by somebody else holds its network for a moment.
_CLEARING_SECONDS = 20.0


def make_network(name: str, job: str, *, is_internal: bool) -> None:
    """Make a job's own network, on which its hosts know each other by name; raise `ContainerError`.

    Of an internal one nothing outside it can be reached.
    """
    with containers.advised(), engine.connected(f"network {name!r} cannot be made") as client:
        client.networks.create(
            name,
            driver="bridge",
            internal=is_internal,
            check_duplicate=True,
            labels={LABEL: job},
            options=_UNSEEN if is_internal else None,
        )


def cut_off(job: str, network: str) -> list[str]:
    """Name the job's containers that are not on its network any more; none where Docker does not answer.

    From within, a host that was cut off and those it was cut off from lose each other alike.
    """
    with suppress(ContainerError), engine.connected("containers of the job cannot be listed") as client:
        found = client.api.containers(all=True, filters={"label": f"{LABEL}={job}"})
        return [each["Names"][0].lstrip("/") for each in found if network not in each["NetworkSettings"]["Networks"]]
    return []


def clear(job: str) -> str:
    """Remove every container and network of a job; say why one stays, "" when nothing does."""
    try:
        client = engine.connect()
    except ContainerError as error:
        return str(error)
    deadline = time.monotonic() + _CLEARING_SECONDS
    said = "they come again and again"
    try:
        while time.monotonic() < deadline:
            try:
                with engine.translated("containers of the job cannot be removed"):
                    if not _found_and_removed(client, job):
                        return ""
            except ContainerError as error:
                said = str(error)
            time.sleep(_POLL_SECONDS)
    finally:
        client.close()
    return said


def _found_and_removed(client: Any, job: str) -> int:
    """Remove what there is now; give how much that was."""
    mine = {"label": f"{LABEL}={job}"}
    found = client.api.containers(all=True, filters=mine)
    for each in found:
        containers.remove(client, each["Id"])
    networks = client.networks.list(filters=mine)
    for network in networks:
        with containers.gone_is_fine():
            network.remove()
    return len(found) + len(networks)


def give_back(folders: list[Path], since: float, image: str, job: str) -> str:
    """Make what is below these folders and was written since then the caller's; say why that failed or "".

    ``since`` is in seconds since the epoch: what others wrote before stays theirs. Root does it itself; another user
    needs a container for it, of the job's own image.
    """
    found = {folder: foreign for folder in folders if (foreign := list(_foreign(folder, since)))}
    if os.geteuid() == 0:
        for path in (path for foreign in found.values() for top in foreign for path in _below(top)):
            os.chown(path, os.geteuid(), os.getegid(), follow_symlinks=False)
        return ""
    binds = tuple(Bind(str(folder), f"/mnt/{number}") for number, folder in enumerate(found))
    seen = {bind.source: bind.target for bind in binds}
    paths = [str(Path(seen[str(folder)], top.relative_to(folder))) for folder, tops in found.items() for top in tops]
    parts = [paths[start : start + _PATHS_AT_ONCE] for start in range(0, len(paths), _PATHS_AT_ONCE)]
    return next(filter(None, (_chown(part, binds, image, job) for part in parts)), "")


def _chown(paths: list[str], binds: tuple[Bind, ...], image: str, job: str) -> str:
    """Have a container make these paths, with all below them, the caller's; say why that failed or ""."""
    container = Container(
        name="",
        hostname="owner",
        job=job,
        image=image,
        network="none",
        environment={},
        binds=binds,
        entrypoint=("chown",),
        command=("-R", "-h", f"{os.geteuid()}:{os.getegid()}", "--", *paths),
    )
    try:
        with engine.connected("files of the job's containers cannot be given back to their owner") as client:
            identifier = containers.create(client.api, container, user="0:0")
            try:
                client.api.start(identifier)
                code = client.api.wait(identifier, timeout=containers.NO_LIMIT_SECONDS)["StatusCode"]
            finally:
                containers.remove(client, identifier)
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
            _guard(job, watched)
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


def _guard(job: str, watched: int) -> None:
    """Be the guard: never returns."""
    status = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if not os.read(watched, 1) and (problem := clear(job)):
            sys.stderr.write(f"{problem}\n")
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def _foreign(folder: Path, since: float) -> Iterator[Path]:
    """Give what is not the caller's and was written since then; not what is below such a folder, which goes with it."""

    def is_foreign(path: Path) -> bool:
        status = path.lstat()
        return status.st_uid != os.geteuid() and status.st_ctime >= since

    if is_foreign(folder):
        yield folder
        return
    for parent, folders, files in os.walk(folder):
        foreign = {name: None for name in (*folders, *files) if is_foreign(Path(parent, name))}
        folders[:] = [name for name in folders if name not in foreign]
        yield from (Path(parent, name) for name in foreign)


def _below(folder: Path) -> Iterator[Path]:
    """Give the folder and everything below it; what is in folders of others alone stays unseen."""
    yield folder
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))
