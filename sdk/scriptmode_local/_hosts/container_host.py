"""A training host that is a container of this machine's Docker.

A forked task of the agent creates the container, copies its output to the host's log and returns how it ended. The
output is read from an attached stream, which Docker sends without delay and without keeping a copy.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode._core.text.messages import format_bytes
from scriptmode.containers import _docker_client as docker_client
from scriptmode.errors import ContainerError
from scriptmode_local._data import regular_files
from scriptmode_local._hosts.container_limits import ContainerLimits
from scriptmode_runtime._processes import proc
from scriptmode_runtime._processes.streams import Sink

if TYPE_CHECKING:
    from scriptmode_local._system.forked_tasks import Tasks

LABEL = "scriptmode.job"
#: Exit code of `docker run` when no container could be run. (docker run documentation, "Exit status")
NOT_RUN = 125
#: Time limit for reading the rest of a container's output after its removal; its processes are dead by then.
_DRAIN_SECONDS = 2.0
_POLL_SECONDS = 0.05
#: Seconds for which a line without an end delays the other stream, as in the runtime's relay.
_HOLD_SECONDS = 0.5
#: The timeout that stands for none, because Docker's client requires one for each call.
NO_LIMIT_SECONDS = 7 * 24 * 3600
#: Fragments of Docker's messages, and the next step for each.
_ADVICE = {
    "bind source path does not exist": "use a Docker daemon on this machine, because it must see its directories",
    "could not select device driver": "install the NVIDIA Container Toolkit, or use instance_type 'local'",
    "non-overlapping": "remove unused networks: docker network prune",
    "Range of CPUs": "container_limits['cpus'] is more than this machine has; give less",
    "executable file not found": "the image has no `train`; use one that has, or give container_entry_point",
    "OCI runtime create failed": "see that the image has the command; container_entry_point names another one",
}


class BindMount(NamedTuple):
    """A directory of this machine that is mounted in a container."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Container:
    """Settings of one container: ``name`` for Docker, ``hostname`` in the job; ``job`` is the value of `LABEL`."""

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


class ContainerHost:
    """A container that runs the image's ``train``. ``follower`` is the task that creates, runs and follows it.

    The failure of that task becomes `NOT_RUN` and ``machine_failure``.
    """

    def __init__(self, container: Container, log: Path, tasks: Tasks) -> None:
        self.container = container
        self.machine_failure = ""
        self.follower = tasks.start(partial(_follow, container, log), f"the reader of {container.hostname}'s output")
        self._asked = False

    def find_process(self) -> int:
        """Return the process ID of the container's first process; 0 while it does not run, or is not visible here."""
        with suppress(ContainerError), docker_client.docker_client("the container cannot be inspected") as client:
            details = client.api.inspect_container(self.container.name)
            pid = int(details["State"]["Pid"])
            # In another process namespace than the daemon's, the number is that of another program.
            return pid if details["Id"] in proc.control_groups(pid) else 0
        return 0

    def poll(self) -> int | None:
        """Return the exit code once the container ended, ``-n`` for signal n, else None."""
        if not self.follower.poll():
            if self._asked:
                self._ask()
            return None
        ended = self.follower.value
        if ended is None:
            self.machine_failure = self.follower.error
            return NOT_RUN
        code = int(ended["code"])
        if ended["out_of_memory"] and code:
            self.machine_failure = _out_of_memory(self.container.limits.memory)
        return 128 - code if code - 128 in signal.Signals.__members__.values() else code

    def signal(self, number: int) -> None:
        """Send SIGTERM to the container, at once or as soon as it runs; remove it where that is SIGKILL."""
        if number == signal.SIGKILL:
            self._kill()
        else:
            self._asked = True
            self.poll()

    def _kill(self) -> None:
        """Remove the container and kill everything in it."""
        self._asked = False
        deadline = time.monotonic() + _DRAIN_SECONDS
        _remove_named(self.container.name)
        while not self.follower.poll() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            # The follower may have created the container after the last attempt.
            _remove_named(self.container.name)
        if not self.follower.poll():
            self.follower.kill()
            _remove_named(self.container.name)

    def _ask(self) -> None:
        # Docker refuses while the container does not exist or run; the next poll retries.
        with suppress(ContainerError), docker_client.docker_client("the container cannot be asked to end") as client:
            client.api.kill(self.container.name, signal.SIGTERM)
            self._asked = False


def _follow(container: Container, log: Path) -> dict[str, Any]:
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
                copy_output(attached, sink.write)
            client.api.wait(identifier, timeout=NO_LIMIT_SECONDS)
            state = client.api.inspect_container(identifier)["State"]
        attached.close()
    return {"code": state["ExitCode"], "out_of_memory": state["OOMKilled"]}


class MergedStreams:
    """The streams of one container, merged so that no line stands inside another.

    A print is often several writes, between which Docker may send output of the other stream. That waits for the end of
    the line, but at most for `_HOLD_SECONDS`.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        #: The stream of the incomplete line in the log, and the output of the other one since then.
        self._holder: int | None = None
        self._waiting: list[tuple[int, bytes]] = []
        self._deadline = 0.0

    def add(self, stream: int, data: bytes) -> None:
        """Write the next bytes of a stream, or keep them until the other stream's line has ended."""
        if self._holder not in (None, stream):
            if not self._waiting:
                self._deadline = time.monotonic() + _HOLD_SECONDS
            self._waiting.append((stream, data))
            return
        end = data.find(b"\n") + 1 if self._waiting else 0
        if end:
            self._write(data[:end])
            self._resume()
            data = data[end:]
            if data:
                self.add(stream, data)
            return
        self._write(data)
        self._holder = None if data.endswith((b"\n", b"\r")) else stream

    def remaining_seconds(self) -> float | None:
        """Return how long the kept output still waits, or ``None`` where nothing is kept."""
        return max(0.0, self._deadline - time.monotonic()) if self._waiting else None

    def release(self) -> None:
        """Write the kept output, on a new line."""
        if self._waiting:
            self._write(b"\n")
            self._resume()

    def _resume(self) -> None:
        kept, self._waiting, self._holder = self._waiting, [], None
        for stream, data in kept:
            self.add(stream, data)


def copy_output(attached: Any, write: Callable[[bytes], None]) -> None:
    """Write the output of an attached container until its streams end. ``attached`` is Docker's socket."""
    from docker.utils.socket import frames_iter

    streams = MergedStreams(write)
    frames = frames_iter(attached, tty=False)
    readable = select.poll()
    readable.register(attached, select.POLLIN)
    while True:
        seconds = streams.remaining_seconds()
        if seconds is not None and not (seconds and readable.poll(seconds * 1000)):
            streams.release()
        frame = next(frames, None)
        if frame is None:
            break
        streams.add(*frame)
    streams.release()


def create_container(api: Any, container: Container, user: str | None = None) -> str:
    """Create a container without starting it; return its ID. ``user`` defaults to the image's user."""
    from docker.types import DeviceRequest, LogConfig, Mount

    limits = container.limits
    host_config = api.create_host_config(
        mounts=[Mount(bind.target, bind.source, type="bind", read_only=bind.read_only) for bind in container.binds],
        network_mode=container.network,
        log_config=LogConfig(type="none"),
        # By default half of this machine's memory, Linux's own size of a tmpfs: a limit, not a reservation.
        shm_size=limits.shm_size or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2,
        mem_limit=limits.memory,
        nano_cpus=limits.cpus and int(limits.cpus * 10**9),
        pids_limit=limits.pids,
        security_opt=["no-new-privileges"] if limits.no_new_privileges else None,
        device_requests=[DeviceRequest(count=-1, capabilities=[["gpu"]])] if container.has_gpus else None,
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


def _remove_named(name: str) -> None:
    """Remove a container by its name if it exists; one that stays is removed later by `remove_job_containers`."""
    with suppress(ContainerError), docker_client.docker_client(f"container {name} cannot be removed") as client:
        remove_container(client, name)


def remove_container(client: Any, identifier: str) -> None:
    """Remove a container by its ID or name, also while it runs."""
    with ignore_missing():
        client.api.remove_container(identifier, force=True, v=True)


@contextmanager
def ignore_missing() -> Iterator[None]:
    """Ignore the error for an object that another client removed or is removing."""
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
    """Add the next step to an error with one of Docker's known messages."""
    try:
        yield
    except ContainerError as error:
        advice = next((advice for words, advice in _ADVICE.items() if words in str(error)), "")
        if not advice:
            raise
        raise ContainerError(f"{error}", advice=advice) from error


def _out_of_memory(limit: int | None) -> str:
    if limit is None:
        return "it ran out of this machine's memory"
    larger = "LocalPlatform(container_limits={'memory': '8g'})"
    return f"it ran out of its memory, {format_bytes(limit)}; give it more: {larger}"
