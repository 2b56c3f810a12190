"""Full disks: recognition, error messages, and what a directory uses."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scriptmode._core.machine.data_dir import DATA_DIR_VARIABLE
from scriptmode._core.text.messages import format_bytes
from scriptmode.errors import DataError, ScriptmodeError
from scriptmode_local._data import file_uris
from scriptmode_local._data.durable import RESERVED_BYTES
from scriptmode_runtime._files import beneath, directory_tree

#: Errors for missing space or inodes, and for a used-up quota.
_FULL = (errno.ENOSPC, errno.EDQUOT)
#: Space of a job's files before it runs: the reserve, the request, the state, directories.
JOB_BYTES = 2 * RESERVED_BYTES
#: The unit of ``st_blocks``, in bytes. (stat(2))
_BLOCK = 512


class FullDiskError(DataError):
    """Error for a full disk; its text names the disk."""


def is_full(error: BaseException | None) -> bool:
    """Return whether an error, or one that caused it, says that a disk is full."""
    seen: set[int] = set()
    # `raise error from error` makes an endless chain.
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, FullDiskError) or (isinstance(error, OSError) and error.errno in _FULL):
            return True
        error = error.__cause__ or error.__context__
    return False


def has_space(path: Path) -> bool:
    """Return whether a small file could be written below ``path``; True if that is unknown."""
    with suppress(OSError):
        disk = os.statvfs(path)
        # File systems without a table of inodes report 0 of 0 free.
        return disk.f_bavail * disk.f_frsize >= RESERVED_BYTES and (disk.f_favail > 0 or not disk.f_files)
    return True


def describe_full_disk(path: Path) -> str:
    """Return which disk is full, and what is free, perhaps for root alone."""
    existing = next((parent for parent in (path, *path.parents) if file_uris.exists(parent)), path)
    free = ""
    with suppress(OSError):
        disk = os.statvfs(existing)
        # File systems without a table of inodes report 0 of 0 free.
        inodes = f", {disk.f_favail} inodes" if disk.f_files else ""
        free = f" ({format_bytes(disk.f_bavail * disk.f_frsize)} free{inodes})"
    return f"the disk of {str(path)!r} is full{free}"


def disk_usage(path: Path) -> int:
    """Return the bytes on disk of a file or of everything in a directory; what cannot be read counts as nothing."""
    total = 0
    with suppress(OSError):
        total = path.lstat().st_blocks * _BLOCK
        with beneath.Directory(path) as directory:
            entries = directory_tree.walk(directory, failed=lambda *_: None)
            total += sum(entry.status.st_blocks for entry in entries) * _BLOCK
    return total


@contextmanager
def translate_full_disk_errors(path: Path) -> Iterator[None]:
    """Raise `FullDiskError` instead of an error that a full disk caused; ``path`` is on that disk."""
    try:
        yield
    except (ScriptmodeError, OSError) as error:
        if isinstance(error, FullDiskError) or not is_full(error):
            raise
        raise full_disk_error(error, path) from error


def full_disk_error(error: Exception, path: Path, advice: str = "") -> FullDiskError:
    """Return the `FullDiskError` for an error that a full disk caused; ``path`` is on that disk."""
    if isinstance(error, FullDiskError):
        return error
    advice = advice or f"set {DATA_DIR_VARIABLE} to a directory on another disk"
    # Errors of this library name a next step already.
    step = "" if isinstance(error, ScriptmodeError) else f"; delete some files, or {advice}"
    return FullDiskError(f"{describe_full_disk(path)}: {error}{step}")
