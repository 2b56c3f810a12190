"""Checks of what local hosts need of this machine: Docker, FUSE mounts, memory and the data directory."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress

from scriptmode._core.machine.data_dir import DATA_DIR_VARIABLE, default_data_dir
from scriptmode._core.text.messages import format_bytes
from scriptmode.errors import ContainerError, DataError, PlatformError
from scriptmode_local._system.memory import Memory, read_memory
from scriptmode_runtime._host import machine

#: Bytes of memory that TensorFlow itself needs on each host.
_LEAST_MEMORY = 1024**3
#: More than Docker's default of /dev/shm; the buffers of NCCL and Open MPI for ranks on one host are there.
_LEAST_SHARED_MEMORY = 64 * 1024**2 + 1
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def docker() -> str:
    """Query Docker's daemon for its version and for this project's images."""
    from scriptmode.containers import TENSORFLOW_VERSIONS, _docker_client as docker_client, default_image

    try:
        with docker_client.docker_client("Docker") as client:
            version = str(client.version().get("Version", ""))
        built = [image for image in map(default_image, TENSORFLOW_VERSIONS) if docker_client.has_image(image)]
    except ContainerError as error:
        raise ContainerError(f"{error.message}; instance_type='local' needs it", error.advice) from error
    if not built:
        what = f"{version} answers, but has none of this project's images"
        raise ContainerError(what, "for instance_type='local' without image_uri: scriptmode image build")
    return f"{version} answers, with {' and '.join(built)}"


def fuse() -> str:
    """Mount and unmount a file system: only that shows whether this user may."""
    from scriptmode_local._data import mounts

    if refusal := mounts.mount_obstacle():
        raise PlatformError(f"{refusal.text}; input_mode='FastFile' streams through a mount", refusal.advice)
    return "a file system can be mounted, which input_mode='FastFile' streams through"


def namespaces() -> str:
    """Try every step of the namespace of a host that is a process, as a job does."""
    from scriptmode_local._hosts import host_identity

    if refusal := host_identity.find_refusal():
        raise PlatformError(refusal.text, refusal.advice)
    return "own /opt/ml: yes, for each host that is a process"


def memory() -> str:
    """Check the available memory, the limit of this control group, and the shared memory."""
    sizes = read_memory() or Memory(0, 0, 0)
    what = f"{format_bytes(sizes.free)} of {format_bytes(sizes.total)} are free, for {machine.inspect().cpus} cores"
    if sizes.limit:
        what += f"; {format_bytes(sizes.limit)} is the limit of this container or session"
    shared = 0
    with suppress(OSError):
        shared = shutil.disk_usage("/dev/shm").free  # noqa: S108 - the place itself is what is looked at
        what += f"; /dev/shm has {format_bytes(shared)} free"
    if sizes.free < _LEAST_MEMORY:
        raise PlatformError(what)
    if shared < _LEAST_SHARED_MEMORY:
        advice = "ranks of one host share memory there: docker run --shm-size 1g, or mount -o remount,size=1g /dev/shm"
        raise PlatformError(what, advice)
    return what


def disk() -> str:
    """Write, rename and lock a file in the data directory if it exists, and check the free space."""
    from scriptmode_local._store import data_dir_checks
    from scriptmode_local._system import full_disk

    folder = default_data_dir()
    try:
        place = data_dir_checks.existing_folder(folder)
        if place == folder:
            data_dir_checks.probe_writable(folder)
        elif not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, f"it cannot be made, as {place} cannot be written")
        free = shutil.disk_usage(place).free
    except OSError as error:
        advice = f"make it writable, or name another directory in {DATA_DIR_VARIABLE}"
        what = f"jobs cannot be kept in the data directory {folder}: {error.strerror or error}"
        raise DataError(what, advice if error.errno in _NOT_WRITABLE else None) from error
    room = f"{format_bytes(free)} free in the data directory {folder}"
    if free < full_disk.JOB_BYTES:
        raise DataError(f"{room}; no job can begin, its own files take {format_bytes(full_disk.JOB_BYTES)}")
    return room
