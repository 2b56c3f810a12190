"""Checks of the data directory: whether jobs can be stored there, and jobs that lost their agents."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

from scriptmode.data_dir import DATA_DIR_VARIABLE, default_data_dir
from scriptmode.doctor.check import Check, ok, problem, warning
from scriptmode.messages import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

DISK, JOBS = "disk", "jobs"
#: Bytes: the model, staged input and logs of a small job need less.
_LOW_BYTES = 2 * 10**9
_NAMES_SHOWN = 5
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def disk() -> Iterator[Check]:
    """Write, rename and lock a file in the data directory if it exists, and check the free space."""
    from scriptmode.platforms.local.store import probe
    from scriptmode.platforms.local.system import full_disk

    folder = default_data_dir()
    another = f"free it, or name another folder in {DATA_DIR_VARIABLE}"
    try:
        place = probe.existing_folder(folder)
        if is_there := place == folder:
            probe.probe_writable(folder)
        elif not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, f"it cannot be made, as {place} cannot be written")
        free = shutil.disk_usage(place).free
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _NOT_WRITABLE:
            another = f"make it writable, or name another folder in {DATA_DIR_VARIABLE}"
        yield problem(DISK, f"jobs cannot be kept in the data directory {folder}: {why}", another)
        return
    found = f"{format_bytes(free)} free in the data directory {folder}"
    if free < full_disk.JOB_BYTES:
        yield problem(
            DISK, f"{found}; no job can begin, its own files take {format_bytes(full_disk.JOB_BYTES)}", another
        )
    elif free < _LOW_BYTES:
        yield warning(DISK, f"{found}; inputs and models are kept there", another)
    else:
        yield ok(DISK, f"{found}, which " + ("can be written and locked" if is_there else "the first job will make"))


def jobs() -> Iterator[Check]:
    """Check for jobs that cannot be read, and for running jobs whose agents died or do not answer."""
    from scriptmode.platforms.local.store import probe

    folder = default_data_dir()
    found = probe.find_unhealthy_jobs(folder)
    if found.unreadable:
        error = next(iter(found.unreadable.values()))
        what = f"{len(found.unreadable)} cannot be read: {_names([*found.unreadable])}; {error.message}"
        yield problem(JOBS, what, error.advice or "")
    elif found.orphaned:
        what = (
            f"{len(found.orphaned)} not ended, though the agent died (killed, or the machine was restarted): "
            f"{_names(found.orphaned)}"
        )
        step = f"scriptmode describe {found.orphaned[0]} ends it and what is left of it; scriptmode list, all"
        yield warning(JOBS, what, step)
    elif found.silent:
        what = f"{len(found.silent)} whose agent does not answer, stopped or hanging: {_names(found.silent)}"
        yield warning(JOBS, what, f"end it and what it runs: scriptmode stop {found.silent[0]}")
    else:
        yield ok(JOBS, f"none in {folder} was left without its agent")


def _names(names: list[str]) -> str:
    return ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
