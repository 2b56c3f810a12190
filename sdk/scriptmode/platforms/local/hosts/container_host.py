"""A training host that is a container of this machine's Docker.

A child of the agent makes the container, copies what it says into the host's log and answers how it ended: an attached
stream is what Docker gives at once and without a copy of its own.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from scriptmode.containers import docker_client
from scriptmode.data import regular_files
from scriptmode.errors import ContainerError
from scriptmode.messages import format_bytes
from scriptmode.platforms.local.hosts.container_limits import ContainerLimits
from scriptmode.platforms.local.system.forked_tasks import ForkedTask
from scriptmode_runtime.processes.streams import Sink

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LABEL = "scriptmode.job"
#: What `docker run` ends with when there was no container to run. (docker run documentation, "Exit status")
NOT_RUN = 125
#: A container's log is read to its end before its removal is told; its processes are dead by then.
_DRAIN_SECONDS = 2.0
_POLL_SECONDS = 0.05
#: Docker's client has one for every call.
NO_LIMIT_SECONDS = 7 * 24 * 3600
#: Docker's words, and what to do about them.
_ADVICE = {
    "bind source path does not exist": "the Docker daemon must be one of this machine, which sees its folders",
    "could not select device driver": "install the NVIDIA Container Toolkit, or use instance_type 'local'",
    "non-overlapping": "remove networks that nobody uses: docker network prune",
    "Range of CPUs": "container_limits['cpus'] is not what this machine has; give less",
    "executable file not found": "the image has no `train`; use one that has, or give container_entry_point",
    "OCI runtime create failed": "see that the image has the command; container_entry_point names another one",
}


@dataclass(frozen=True)
class BindMount:
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
    binds: tuple[BindMount, ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    limits: ContainerLimits = field(default_factory=ContainerLimits)
    has_gpus: bool = False


@dataclass
class ContainerHost:
    """A container that runs the image's ``train``; ``lock`` is the descriptor that its follower must not keep."""

    container: Container
    log: Path
    lock: int
    machine_failure: str = ""
    _follower: ForkedTask | None = field(default=None, init=False, repr=False)
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
        """Have the container made and started; what goes wrong shows as `NOT_RUN` and ``machine_failure``."""
        self._follower = ForkedTask(partial(_follow, self.container, self.log), self.lock)

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
            self.machine_failure = self._follower.error
            return NOT_RUN
        code = int(ended["code"])
        if ended["out_of_memory"] and code:
            self.machine_failure = _out_of_memory(self.container.limits.memory)
        return 128 - code if code - 128 in signal.Signals.__members__.values() else code

    def terminate(self) -> None:
        """Send SIGTERM to the container, at once or as soon as it runs."""
        self._asked = True
        self.poll()

    def kill(self) -> None:
        """Remove the container with everything in it."""
        follower, self._asked = self._follower, False
        if follower is None:
            return
        deadline = time.monotonic() + _DRAIN_SECONDS
        _remove_named(self.container.name)
        while not follower.poll() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            # It may have been just about to make the container.
            _remove_named(self.container.name)
        if not follower.poll():
            follower.kill()
            _remove_named(self.container.name)

    def _ask(self) -> None:
        # Refused where the container is not there yet, or does not run yet or any more: asked again by the next poll.
        with suppress(ContainerError), docker_client.docker_client(f"{self.name} cannot be asked to end") as client:
            client.api.kill(self.container.name, signal.SIGTERM)
            self._asked = False


def _follow(container: Container, log: Path) -> dict[str, Any]:
    """Run a container to its end; give its exit code and whether it ran out of memory."""
    from docker.utils.socket import frames_iter

    with with_advice(), docker_client.docker_client("the container cannot be started") as client:
        identifier = create_container(client.api, container)
        wanted = {"stdout": 1, "stderr": 1, "stream": 1}
        attached = client.api.attach_socket(identifier, params=wanted)
        client.api.start(identifier)
        with (
            regular_files.open_to_append(log) as file,
            docker_client.translate_errors("the container cannot be followed"),
        ):
            with closing(Sink(file.fileno())) as sink:
                for _, said in frames_iter(attached, tty=False):
                    sink.write(said)
            client.api.wait(identifier, timeout=NO_LIMIT_SECONDS)
            state = client.api.inspect_container(identifier)["State"]
        attached.close()
    return {"code": state["ExitCode"], "out_of_memory": state["OOMKilled"]}


def create_container(api: Any, container: Container, user: str | None = None) -> str:
    """Create a container, not started; return Docker's identifier. ``user`` is by default the image's."""
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
        pids_limit=limits.pids,
        security_opt=["no-new-privileges"] if limits.no_new_privileges else None,
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


def _remove_named(name: str) -> None:
    """Remove a container whatever it does, if it is there; what stays is removed with everything of the job."""
    with suppress(ContainerError), docker_client.docker_client(f"container {name} cannot be removed") as client:
        remove_container(client, name)


def remove_container(client: Any, identifier: str) -> None:
    """Remove a container, by Docker's identifier or its name, whatever it does."""
    with ignore_missing():
        client.api.remove_container(identifier, force=True, v=True)


@contextmanager
def ignore_missing() -> Iterator[None]:
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
def with_advice() -> Iterator[None]:
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
    larger = "LocalPlatform(container_limits={'memory': '8g'})"
    return f"it ran out of its memory, {format_bytes(limit)}; give it more: {larger}"
