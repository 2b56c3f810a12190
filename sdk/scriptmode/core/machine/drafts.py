"""Drafts: files and directories that get their final name once they are complete.

A process that is killed leaves its drafts. Each has a lock that ends with its process, so that a later one can tell
those without an owner, and removes them. A draft that is a file is locked itself, a directory too or by ``agent.lock``
in it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = ".new-"
#: Seconds in which a process has locked the draft that it created.
_LOCKING_SECONDS = 2.0
_LOCK_FILE = "agent.lock"
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def lock(descriptor: int) -> bool:
    """Lock a draft until its descriptor is closed; return False where another process has it, or locks are missing."""
    # Not every file system has locks.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@contextmanager
def locked(directory: str) -> Iterator[Path]:
    """Hold the lock of a draft that is a directory."""
    descriptor = os.open(directory, _FLAGS)
    lock(descriptor)
    try:
        yield Path(directory)
    finally:
        os.close(descriptor)


def remove_orphans(folder: Path, prefix: str = PREFIX, *, locking_seconds: float = _LOCKING_SECONDS) -> None:
    """Remove the drafts in a directory, by their names' beginning, whose processes have ended.

    ``locking_seconds``: the age from which a draft would be locked; 0 where no process creates drafts any more.
    """
    with suppress(OSError):
        for path in [path for path in folder.iterdir() if path.name.startswith(prefix)]:
            with suppress(OSError):
                _remove_orphan(path, locking_seconds)


def _remove_orphan(path: Path, locking_seconds: float) -> None:
    status = path.lstat()
    is_directory = stat.S_ISDIR(status.st_mode)
    if not is_directory and not stat.S_ISREG(status.st_mode):
        return
    # A file without content, or a directory, may not be locked yet.
    if (is_directory or not status.st_size) and time.time() - status.st_mtime < locking_seconds:
        return
    locks = [path, path / _LOCK_FILE] if is_directory else [path]
    descriptors = []
    try:
        for each in locks:
            with suppress(FileNotFoundError):
                descriptors.append(os.open(each, _FLAGS))
        if all(map(lock, descriptors)):
            beneath.remove_tree(path)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
