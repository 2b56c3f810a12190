"""A training host that is a container of this machine's Docker, and what is done about a job's containers together.

A child of the agent makes the container, copies what it says into the host's log and answers how it ended: an attached
stream is what Docker gives at once and without a copy of its own. Whatever belongs to a job carries its `LABEL`, so
that nothing of it is left, whoever is there to remove it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.containers import engine
from scriptmode.errors import ContainerError
from scriptmode.platforms.local.hosts.children import Chore
from scriptmode.platforms.local.limits import ContainerLimits
from scriptmode.sizes import in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LABEL = "scriptmode.job"
#: What `docker run` ends with when there was no container to run. (docker run documentation, "Exit status")
NOT_RUN = 125
#: A container's log is read to its end before its removal is told; its processes are dead by then.
_DRAIN_SECONDS = 2.0
_POLL_SECONDS = 0.01
#: What is being removed by somebody else holds its network for a moment.
_CLEARING_SECONDS = 20.0
_WEEK_SECONDS = 7 * 24 * 3600
#: Docker's words, and what to do about them.
_ADVICE = {
    "bind source path does not exist": "the Docker daemon must be one of this machine, which sees its folders",
    "could not select device driver": "install the NVIDIA Container Toolkit, or use instance_type 'local'",
    "non-overlapping": "remove networks that nobody uses: docker network prune",
    "executable file not found": "the image has no `train`; use one that has, or give container_entry_point",
}


@dataclass(frozen=True)
class Bind:
    """A folder of this machine that a container sees."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Container:
    """What one host is made of. ``name`` is Docker's, ``hostname`` the job's; ``job`` is the value of `LABEL`."""

    name: str
    hostname: str
    job: str
    image: str
    network: str
    environment: Mapping[str, str]
    binds: tuple[Bind, ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ("train",)
    limits: ContainerLimits = field(default_factory=ContainerLimits)
    has_gpus: bool = False


@dataclass
class ContainerHost:
    """A container that runs the image's ``train``; ``lock`` is the descriptor that its follower must not keep."""

    container: Container
    log: Path
    lock: int
    trouble: str = ""
    _follower: Chore | None = field(default=None, init=False, repr=False)
    _asked: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """The host's name in the job."""
        return self.container.hostname

    @property
    def address(self) -> str:
        """The name by which the job's network knows it."""
        return self.container.hostname

    @property
    def pid(self) -> int:
        """The number of the process that follows the container; 0 before the start."""
        return self._follower.pid if self._follower else 0

    def start(self) -> None:
        """Have the container made and started; what goes wrong shows as `NOT_RUN` and ``trouble``."""
        self._follower = Chore(partial(_follow, self.container, self.log), self.lock)

    def poll(self) -> int | None:
        """Give the exit code once the container ended, ``-n`` for signal n."""
        if self._follower is None:
            return None
        if not self._follower.poll():
            if self._asked:
                self._ask()
            return None
        ended = self._follower.value
        if ended is None:
            self.trouble = self._follower.error
            return NOT_RUN
        code = int(ended["code"])
        if ended["out_of_memory"] and code:
            self.trouble = _out_of_memory(self.container.limits.memory)
        return 128 - code if code - 128 in signal.Signals.__members__.values() else code

    def terminate(self) -> None:
        """Send SIGTERM to the container, at once or as soon as it runs."""
        self._asked = True
        if self.poll() is None:
            self._ask()

    def kill(self) -> None:
        """Remove the container with everything in it."""
        follower, self._asked = self._follower, False
        if follower is None:
            return
        problem = _remove(self.container.name)
        deadline = time.monotonic() + _DRAIN_SECONDS
        while problem is None and not follower.poll() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        if not follower.poll():
            # It may have been just about to make or start the container.
            follower.kill()
            _remove(self.container.name)

    def _ask(self) -> None:
        # Refused where the container is not there yet, or does not run yet or any more: asked again by the next poll.
        with suppress(ContainerError), engine.connected(f"{self.name} cannot be asked to end") as client:
            client.api.kill(self.container.name, signal.SIGTERM)
            self._asked = False


def make_network(name: str, job: str, *, is_internal: bool) -> None:
    """Make a job's own network, on which its hosts know each other by name; raise `ContainerError`.

    Of an internal one nothing outside it can be reached.
    """
    with _advised(), engine.connected(f"network {name!r} cannot be made") as client:
        client.networks.create(name, driver="bridge", internal=is_internal, check_duplicate=True, labels={LABEL: job})


def clear(job: str) -> str:
    """Remove every container and network of a job; say why one stays, "" when nothing does."""
    deadline = time.monotonic() + _CLEARING_SECONDS
    mine = {"label": f"{LABEL}={job}"}
    said = ""
    while True:
        try:
            with engine.connected("containers of the job cannot be removed") as client:
                left = [each["Id"] for each in client.api.containers(all=True, filters=mine)]
                for identifier in left:
                    _remove_by(client, identifier)
                for network in client.networks.list(filters=mine):
                    left.append(network.id)
                    with _gone_is_fine():
                        network.remove()
            if not left:
                return ""
        except ContainerError as error:
            said = str(error)
        if time.monotonic() > deadline:
            return said or "containers of the job come again and again"
        time.sleep(_POLL_SECONDS)


def give_back(folders: list[Path], image: str, job: str) -> str:
    """Make everything below these folders the caller's, whoever wrote it in a container; say why that failed or "".

    Root does that itself; another user needs a container for it, of the job's own image.
    """
    foreign = [folder for folder in folders if _has_foreign(folder)]
    if not foreign:
        return ""
    if os.geteuid() == 0:
        for folder in foreign:
            for path in _below(folder):
                os.chown(path, os.geteuid(), os.getegid(), follow_symlinks=False)
        return ""
    owner = f"{os.geteuid()}:{os.getegid()}"
    targets = [f"/mnt/{number}" for number in range(len(foreign))]
    container = Container(
        name="",
        hostname="owner",
        job=job,
        image=image,
        network="none",
        environment={},
        binds=tuple(Bind(str(folder), target) for folder, target in zip(foreign, targets)),
        entrypoint=("chown",),
        command=("-R", "-h", owner, "--", *targets),
    )
    try:
        with engine.connected("files of the job's containers cannot be given back to their owner") as client:
            identifier = _create(client.api, container, user="0:0")
            try:
                client.api.start(identifier)
                code = client.api.wait(identifier, timeout=_WEEK_SECONDS)["StatusCode"]
            finally:
                _remove_by(client, identifier)
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


def _follow(container: Container, log: Path) -> dict[str, Any]:
    """Run a container to its end; give its exit code and whether it ran out of memory."""
    from docker.utils.socket import frames_iter

    with _advised(), engine.connected("the container cannot be started") as client:
        identifier = _create(client.api, container)
        wanted = {"stdout": 1, "stderr": 1, "stream": 1}
        attached = client.api.attach_socket(identifier, params=wanted)
        client.api.start(identifier)
        with log.open("ab", buffering=0) as file, engine.translated("the container cannot be followed"):
            for _, said in frames_iter(attached, tty=False):
                file.write(said)
            client.api.wait(identifier, timeout=_WEEK_SECONDS)
            state = client.api.inspect_container(identifier)["State"]
        attached.close()
    return {"code": state["ExitCode"], "out_of_memory": state["OOMKilled"]}


def _create(api: Any, container: Container, user: str | None = None) -> str:
    from docker.types import DeviceRequest, LogConfig, Mount

    limits = container.limits
    gpus = [DeviceRequest(count=-1, capabilities=[["gpu"]])] if container.has_gpus else None
    host_config = api.create_host_config(
        mounts=[Mount(bind.target, bind.source, type="bind", read_only=bind.read_only) for bind in container.binds],
        network_mode=container.network,
        log_config=LogConfig(type="none"),
        shm_size=limits.shm_size or _half_of_memory(),
        mem_limit=limits.memory,
        nano_cpus=limits.cpus and int(limits.cpus * 10**9),
        device_requests=gpus,
    )
    known_as = api.create_endpoint_config(aliases=[container.hostname])
    has_network = container.network != "none"
    made = api.create_container(
        container.image,
        command=list(container.command),
        entrypoint=list(container.entrypoint) or None,
        hostname=container.hostname,
        name=container.name or None,
        user=user,
        environment=dict(container.environment),
        labels={LABEL: container.job},
        host_config=host_config,
        networking_config=api.create_networking_config({container.network: known_as}) if has_network else None,
    )
    return str(made["Id"])


def _half_of_memory() -> int:
    """Give the size that Linux itself gives a tmpfs: a limit, no reservation (tmpfs(5), "size")."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _remove(name: str) -> str | None:
    """Remove a container whatever it does; give None when that is done, else why it is not."""
    try:
        with engine.connected(f"container {name} cannot be removed") as client:
            client.api.remove_container(name, force=True, v=True)
    except ContainerError as error:
        return str(error)
    return None


def _remove_by(client: Any, identifier: str) -> None:
    with _gone_is_fine():
        client.api.remove_container(identifier, force=True, v=True)


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    """Let what somebody else removed, or is removing, count as removed."""
    from docker.errors import APIError, NotFound

    try:
        yield
    except NotFound:
        return
    except APIError as error:
        if "already in progress" not in str(error):
            raise


@contextmanager
def _advised() -> Iterator[None]:
    """Add to Docker's words what to do about them."""
    try:
        yield
    except ContainerError as error:
        advice = next((advice for words, advice in _ADVICE.items() if words in str(error)), "")
        if not advice:
            raise
        raise ContainerError(f"{error}; {advice}") from error


def _out_of_memory(limit: int | None) -> str:
    if limit is None:
        return "it ran out of this machine's memory"
    return f"it ran out of its memory, {in_words(limit)}; give it more: LocalPlatform(container_limits={'memory': ...})"


def _has_foreign(folder: Path) -> bool:
    return any(path.lstat().st_uid != os.geteuid() for path in _below(folder))


def _below(folder: Path) -> Iterator[Path]:
    """Give the folder and everything below it; what is in folders of others alone stays unseen."""
    yield folder
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))
