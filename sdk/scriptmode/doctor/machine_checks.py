"""Checks of what local hosts need of this machine: Docker, FUSE mounts, ports and memory."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.doctor.check import Check, ok, problem, problem_from_error, warning
from scriptmode.errors import ContainerError, DataError, SpecError
from scriptmode.messages import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCKER, FUSE, PORTS, MEMORY = "Docker", "FUSE", "ports", "memory"
#: Bytes of memory that TensorFlow itself needs on each host.
_LEAST_MEMORY = 1024**3
#: More than Docker's default of /dev/shm; the buffers of NCCL and Open MPI for ranks on one host are there.
_LEAST_SHARED_MEMORY = 64 * 1024**2 + 1
_CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")


def docker() -> Iterator[Check]:
    """Query Docker's daemon for its version and for this project's images."""
    from scriptmode.containers import TENSORFLOW_VERSIONS, default_image, docker_client

    needed = "instance_type='local' needs it"
    try:
        with docker_client.docker_client("Docker") as client:
            version = str(client.version().get("Version", ""))
        images = {default_image(each): docker_client.has_image(default_image(each)) for each in TENSORFLOW_VERSIONS}
    except (ContainerError, SpecError) as error:
        found = problem_from_error(DOCKER, error)
        yield warning(DOCKER, f"{found.found}; {needed}", found.advice)
        return
    built = [image for image, is_there in images.items() if is_there]
    if not built:
        what = f"{version} answers, but has none of this project's images; instance_type='local' without image_uri"
        yield warning(DOCKER, f"{what} needs one", "scriptmode image build")
        return
    yield ok(DOCKER, f"{version} answers, with {' and '.join(built)}")


def fuse() -> Iterator[Check]:
    """Mount and unmount a file system: only that shows whether this user may."""
    from scriptmode.data import mounts

    if why := mounts.mount_obstacle():
        # Only a warning: without mounts the data is copied.
        yield warning(FUSE, f"{why.text}; input_mode='FastFile' streams through a mount", why.advice)
    else:
        yield ok(FUSE, "a file system can be mounted, which input_mode='FastFile' streams through")


def ports() -> Iterator[Check]:
    """Reserve one host's block of ports as a job does, and connect to this machine by loopback."""
    from scriptmode.data_dir import default_data_dir
    from scriptmode.platforms.local.system.ports import Ports

    with tempfile.TemporaryDirectory(prefix="ports-") as spare:
        shared = default_data_dir() / "ports"
        # A directory that is not writable is reported by the check of the data directory.
        reserved = Ports(shared if shared.is_dir() and os.access(shared, os.W_OK) else Path(spare))
        try:
            block = reserved.reserve(["a host"])["a host"]
            _connect()
        except DataError as error:
            yield problem_from_error(PORTS, error)
        except OSError as error:
            what = f"no connection to this machine by 127.0.0.1: {error.strerror or error}"
            yield problem(PORTS, what, "see that the loopback interface is up: ip link set lo up")
        else:
            yield ok(PORTS, f"{min(block.values())} to {max(block.values())} are free for a host, 127.0.0.1 connects")
        finally:
            reserved.release()


def _connect() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(2)
        with socket.create_connection(server.getsockname(), timeout=2):
            server.accept()[0].close()


def memory() -> Iterator[Check]:
    """Check the available memory, the limit of this control group, and the shared memory."""
    sizes = _memory()
    cores = os.cpu_count()
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    free = sizes.get("MemAvailable", 0)
    found = f"{format_bytes(free)} of {format_bytes(sizes.get('MemTotal', 0))} are free, for {cores} cores"
    with suppress(OSError, ValueError):
        limit = int(_CONTROL_GROUP.read_text())
        found += f", and this container or session may use {format_bytes(limit)}"
        free = min(free, limit)
    shared = 0
    with suppress(OSError):
        shared = shutil.disk_usage("/dev/shm").free  # noqa: S108 - the place itself is what is looked at
        found += f"; /dev/shm has {format_bytes(shared)} free"
    if free < _LEAST_MEMORY:
        advice = "end other programs; a host with TensorFlow needs about 1 GB"
        yield warning(MEMORY, found, advice)
    elif shared < _LEAST_SHARED_MEMORY:
        advice = "ranks of one host share memory there: docker run --shm-size 1g, or mount -o remount,size=1g /dev/shm"
        yield warning(MEMORY, found, advice)
    else:
        yield ok(MEMORY, found)


def _memory() -> dict[str, int]:
    """Read the memory from /proc/meminfo (proc(5)), in bytes."""
    found = {}
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, _, size = line.partition(":")
            found[name] = int(size.split()[0]) * 1024
    return found
