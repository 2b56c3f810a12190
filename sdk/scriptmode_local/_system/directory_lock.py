"""Locks of files and of directories that several processes change, and descriptors that an agent inherits."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked_directory(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock of a directory, for a few system calls: its holders are waited for. Raises ``OSError``."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def new_lock(path: Path) -> Iterator[int]:
    """Create the file of an agent's lock, and yield its descriptor, which holds the lock; raise ``OSError``."""
    descriptor = above_streams(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def try_lock(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file, unless another process has locked it; return whether it is locked now."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def above_streams(descriptor: int) -> int:
    """Move a descriptor above 2, which it has where this process was started without a standard stream."""
    if descriptor > 2:  # noqa: PLR2004 - stdin, stdout, stderr
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved
