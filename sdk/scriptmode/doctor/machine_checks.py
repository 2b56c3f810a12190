"""Checks of what local hosts need of this machine: Docker, FUSE mounts, ports, memory and the data directory."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from scriptmode.core.machine.data_dir import DATA_DIR_VARIABLE, default_data_dir
from scriptmode.core.text.messages import format_bytes
from scriptmode.doctor.check import Check, ok, problem, warning
from scriptmode.errors import ContainerError, DataError, SpecError
from scriptmode.platforms.local.system.memory import Memory, read_memory

#: Bytes of memory that TensorFlow itself needs on each host.
_LEAST_MEMORY = 1024**3
#: More than Docker's default of /dev/shm; the buffers of NCCL and Open MPI for ranks on one host are there.
_LEAST_SHARED_MEMORY = 64 * 1024**2 + 1
#: Bytes: the model, staged input and logs of a small job need less.
_LOW_BYTES = 2 * 10**9
_NAMES_SHOWN = 5
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def docker() -> Iterator[Check]:
    """Query Docker's daemon for its version and for this project's images."""
    from scriptmode.containers import TENSORFLOW_VERSIONS, default_image, docker_client

    needed = "instance_type='local' needs it"
    try:
        with docker_client.docker_client("Docker") as client:
            version = str(client.version().get("Version", ""))
        images = {default_image(each): docker_client.has_image(default_image(each)) for each in TENSORFLOW_VERSIONS}
    except (ContainerError, SpecError) as error:
        yield warning(f"{error.message}; {needed}", error.advice or "see what is wrong with Docker: docker info")
        return
    built = [image for image, is_there in images.items() if is_there]
    if not built:
        what = f"{version} answers, but has none of this project's images; instance_type='local' without image_uri"
        yield warning(f"{what} needs one", "scriptmode image build")
        return
    yield ok(f"{version} answers, with {' and '.join(built)}")


def fuse() -> Iterator[Check]:
    """Mount and unmount a file system: only that shows whether this user may."""
    from scriptmode.data import mounts

    if why := mounts.mount_obstacle():
        # Only a warning: without mounts the data is copied.
        yield warning(f"{why.text}; input_mode='FastFile' streams through a mount", why.advice)
    else:
        yield ok("a file system can be mounted, which input_mode='FastFile' streams through")


def namespaces() -> Iterator[Check]:
    """Try every step of the namespace of a host that is a process, as a job does."""
    from scriptmode.platforms.local.hosts import host_identity

    if why := host_identity.find_refusal():
        yield warning(why.text, why.advice, prevents=False)
    else:
        yield ok("own /opt/ml: yes, for each host that is a process")


def ports() -> Iterator[Check]:
    """Reserve one host's block of ports as a job does, and connect to this machine by loopback."""
    from scriptmode.platforms.local.system.ports import Ports

    with tempfile.TemporaryDirectory(prefix="ports-") as spare:
        # A data directory that cannot be used is reported by the check `disk`.
        shared = Path(spare)
        with suppress(DataError):
            shared = default_data_dir() / "ports"
        reserved = Ports(shared if shared.is_dir() and os.access(shared, os.W_OK) else Path(spare))
        try:
            block = reserved.reserve(["a host"])["a host"]
            with socket.create_server(("127.0.0.1", 0)) as server:
                socket.create_connection(server.getsockname(), timeout=2).close()
        except OSError as error:
            what = f"no connection to this machine by 127.0.0.1: {error.strerror or error}"
            yield problem(what, "see that the loopback interface is up: ip link set lo up")
        else:
            yield ok(f"{min(block.values())} to {max(block.values())} are free for a host, 127.0.0.1 connects")
        finally:
            reserved.release()


def memory() -> Iterator[Check]:
    """Check the available memory, the limit of this control group, and the shared memory."""
    sizes = read_memory() or Memory(0, 0, 0)
    cores = os.cpu_count()
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    free = sizes.free
    found = f"{format_bytes(free)} of {format_bytes(sizes.total)} are free, for {cores} cores"
    if sizes.limit:
        found += f"; {format_bytes(sizes.limit)} is the limit of this container or session"
    shared = 0
    with suppress(OSError):
        shared = shutil.disk_usage("/dev/shm").free  # noqa: S108 - the place itself is what is looked at
        found += f"; /dev/shm has {format_bytes(shared)} free"
    if free < _LEAST_MEMORY:
        yield warning(found, "end other programs; a host with TensorFlow needs about 1 GB")
    elif shared < _LEAST_SHARED_MEMORY:
        advice = "ranks of one host share memory there: docker run --shm-size 1g, or mount -o remount,size=1g /dev/shm"
        yield warning(found, advice)
    else:
        yield ok(found)


def disk() -> Iterator[Check]:
    """Write, rename and lock a file in the data directory if it exists, and check the free space."""
    from scriptmode.platforms.local.store import data_dir_checks
    from scriptmode.platforms.local.system import full_disk

    folder = default_data_dir()
    another = f"free it, or name another directory in {DATA_DIR_VARIABLE}"
    try:
        place = data_dir_checks.existing_folder(folder)
        if is_there := place == folder:
            data_dir_checks.probe_writable(folder)
        elif not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, f"it cannot be made, as {place} cannot be written")
        free = shutil.disk_usage(place).free
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _NOT_WRITABLE:
            another = f"make it writable, or name another directory in {DATA_DIR_VARIABLE}"
        yield problem(f"jobs cannot be kept in the data directory {folder}: {why}", another)
        return
    found = f"{format_bytes(free)} free in the data directory {folder}"
    if free < full_disk.JOB_BYTES:
        yield problem(f"{found}; no job can begin, its own files take {format_bytes(full_disk.JOB_BYTES)}", another)
    elif free < _LOW_BYTES:
        yield warning(f"{found}; inputs and models are kept there", another, prevents=False)
    else:
        yield ok(f"{found}, which " + ("can be written and locked" if is_there else "the first job will make"))


def jobs() -> Iterator[Check]:
    """Check for jobs that cannot be read, and for running jobs whose agents died or do not answer."""
    from scriptmode.platforms.local.store import data_dir_checks

    try:
        folder = default_data_dir()
    except DataError:
        yield warning("unknown, because there is no data directory", "see disk", prevents=False)
        return
    found = data_dir_checks.find_unhealthy_jobs(folder)
    if found.unreadable:
        error = next(iter(found.unreadable.values()))
        what = f"{len(found.unreadable)} cannot be read: {_names([*found.unreadable])}; {error.message}"
        yield problem(what, error.advice or "")
    elif found.orphaned:
        cause = "though the agent died (killed, or the machine was restarted)"
        step = f"scriptmode describe {found.orphaned[0]} ends it and what is left of it; scriptmode list, all"
        yield warning(f"{len(found.orphaned)} not ended, {cause}: {_names(found.orphaned)}", step)
    elif found.silent:
        what = f"{len(found.silent)} whose agent does not answer, stopped or hanging: {_names(found.silent)}"
        yield warning(what, f"end it and what it runs: scriptmode stop {found.silent[0]}")
    else:
        yield ok(f"none in {folder} was left without its agent")


def _names(names: list[str]) -> str:
    return ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
