"""Drafts: files and directories that get their final name once they are complete.

A process that is killed leaves its drafts. Each has a lock that ends with its process, so that a later one can tell
those without an owner, and removes them. Between its creation and its lock a draft has none: its process holds a shared
lock of the directory meanwhile, and one that looks for orphans has the directory's exclusive lock.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

#: A user has no file or directory of such a name: those in the input of a job are left out of it.
PREFIX = ".scriptmode-new-"
#: Of the directory that a job, or a source, is moved to while it is removed; such names are neither.
REMOVED = ".scriptmode-removed-"
#: Seconds for which a new draft waits for a process that removes orphans.
_LOCKING_SECONDS, _POLL_SECONDS = 2.0, 0.01


def lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock a draft, or with ``LOCK_SH`` its directory, until it is closed; return False where another process has it.

    Not every file system has locks: without them nothing is taken for an orphan.
    """
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        return kind == fcntl.LOCK_SH and not isinstance(error, BlockingIOError)
    return True


@contextmanager
def creating(parent: Path) -> Iterator[None]:
    """Hold the lock of a directory while a draft is created in it and locked."""
    with ExitStack() as stack:
        # Another user's directory may be closed for reading.
        with suppress(OSError):
            descriptor = stack.enter_context(_opened(f"{parent}/."))
            deadline = time.monotonic() + _LOCKING_SECONDS
            while not lock(descriptor, fcntl.LOCK_SH) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
        yield


def new_file(parent: Path) -> tuple[int, str]:
    """Create a draft that is a file; return its descriptor, with which its lock ends, and its path."""
    with creating(parent):
        descriptor, name = tempfile.mkstemp(prefix=PREFIX, dir=parent)
        lock(descriptor)
    return descriptor, name


@contextmanager
def new_directory(parent: Path) -> Iterator[Path]:
    """Create a draft that is a directory, and hold its lock; what still has its name at the end is removed."""
    with ExitStack() as stack:
        with creating(parent):
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            # Shared, because drafts are created in it.
            lock(stack.enter_context(_opened(path)), fcntl.LOCK_SH)
        try:
            yield path
        finally:
            if os.path.lexists(path):
                _remove(path)


def remove_orphans(folder: Path) -> None:
    """Remove the drafts in a directory whose processes have ended."""
    with suppress(OSError):
        paths = [folder / name for name in os.listdir(folder) if name.startswith(PREFIX)]  # noqa: PTH208 - thousands
        if not paths:
            return
        with _opened(f"{folder}/.") as directory:
            # While another process has the directory, a draft may not be locked yet.
            for path in paths if lock(directory) else ():
                _remove_orphan(path)


def _remove_orphan(path: Path) -> None:
    with suppress(OSError), _opened(path) as draft:
        if stat.S_IFMT(os.fstat(draft).st_mode) in (stat.S_IFDIR, stat.S_IFREG) and lock(draft):
            _remove(path)


def _remove(path: Path) -> None:
    from scriptmode_runtime._files import directory_tree

    with suppress(OSError):
        directory_tree.remove_tree(path)


@contextmanager
def _opened(path: str | Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
