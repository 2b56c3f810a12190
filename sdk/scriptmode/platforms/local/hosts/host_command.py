"""Commands in the environment of a running host: on this machine, or in the host's container."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from scriptmode.containers import docker_client
from scriptmode.errors import DataError
from scriptmode.platforms.local.hosts import enter
from scriptmode.platforms.local.hosts.container_host import LABEL
from scriptmode_runtime.contract import BASE_DIR_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scriptmode.platforms.local.store.job_record import Job
    from scriptmode.platforms.local.store.job_store import JobFolder

_POLL_SECONDS = 0.2


def run_beside_process(
    folder: JobFolder, job: Job, host: str, command: Sequence[str], *, on_machine: Sequence[str] = ()
) -> int:
    """Run a command as the script of a host that is a process would start it; return its exit code as a shell's.

    ``on_machine`` is the command that runs another one on the host's machine; by default it is this machine. Raises
    `DataError` if the command cannot start.
    """
    wanted = (f"{BASE_DIR_VARIABLE}={folder.host(host)}", f"SM_CURRENT_HOST={host}")
    argv = (*on_machine, job.python, *enter.entering_arguments(*wanted), *command)
    try:
        process = subprocess.Popen(argv)
    except OSError as error:
        raise DataError(
            f"the command cannot be started with {argv[0]}: {error}",
            advice="correct its path, or the permissions of that file",
        ) from error
    while True:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            # The program got it too, and decides.
            continue
        return code if code >= 0 else 128 - code


def run_in_container(folder: JobFolder, host: str, command: Sequence[str]) -> int:
    """Run a command, without input, as the script of a host that is a container would start it.

    Docker starts it apart from this process: its input carries the signals that it would get otherwise. Returns its
    exit code as a shell's; raises `DataError` or `ContainerError` if the command cannot start.
    """
    argv = ["python3", *enter.entering_arguments("--tied", f"SM_CURRENT_HOST={host}"), *command]
    with docker_client.docker_client(f"the command cannot be run on {host}") as client:
        for each in client.api.containers(filters={"label": f"{LABEL}={folder.label}"}):
            if client.api.inspect_container(each["Id"])["Config"]["Hostname"] == host:
                started = client.api.exec_create(each["Id"], argv, stdin=True)
                stream = client.api.exec_start(started, socket=True)
                # The stream is a file over a socket, which stays open after it.
                with closing(getattr(stream, "_sock", stream)), closing(stream), _forwarded_interrupts(stream):
                    for descriptor, output in _frames(stream):
                        _write(descriptor, output)
                return int(client.api.exec_inspect(started)["ExitCode"])
    raise DataError(f"the container of host {host} does not run yet, or any more", advice="see: scriptmode list")


def _frames(stream: Any) -> Iterator[tuple[int, bytes]]:
    from docker.utils.socket import frames_iter

    frames = frames_iter(stream, tty=False)
    while True:
        # A signal that comes just before the system call is handled after it.
        while not select.select([stream], [], [], _POLL_SECONDS)[0]:
            continue
        frame = next(frames, None)
        if frame is None:
            return
        yield frame


@contextmanager
def _forwarded_interrupts(stream: Any) -> Iterator[None]:
    """Write SIGINT to a stream as a byte instead of raising it, where this thread is the one that gets it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    connection = getattr(stream, "_sock", stream)

    def forward(number: int, _frame: object) -> None:
        with suppress(OSError):  # the program has ended
            connection.sendall(bytes([number]))

    before = signal.signal(signal.SIGINT, forward)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
