"""The scratch directory of a launcher, for sockets and session directories; orphaned ones are removed.

The launcher holds a lock on it, which the kernel releases when the process ends in any way. A directory without a
lock is an orphan: the next launcher that needs one, the job's agent and its recovery remove it.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator

from scriptmode_runtime._files import directory_tree
from scriptmode_runtime._values.errors import ClusterError

#: Longest path, for sockets below it: the path of a socket has 107 characters at most (unix(7)).
_LONGEST = 80
_PREFIX = "scriptmode-"
#: The prefix while a directory is created or removed, when it may have no lock.
_DRAFT_PREFIX = f"{_PREFIX}new-"
_NAME = re.compile(_PREFIX + r"(new-)?[0-9a-f]{16}")
_LOCK = ".lock"
#: Seconds without a change after which a directory with that prefix is an orphan; creation takes milliseconds.
_DRAFT_SECONDS = 600.0


def candidate_directories(tmpdir: str) -> tuple[str, ...]:
    """Return the directories that may hold one, the preferred one first; ``tmpdir`` is what TMPDIR is, or ""."""
    return (tmpdir, "/tmp", "/dev/shm", "/run")  # noqa: S108 - a new name, this user's alone


@contextlib.contextmanager
def directory(tmpdir: str) -> Iterator[str]:
    """Create a directory of a short name without blanks, and remove it at the end; raise `ClusterError`.

    Sockets and mpirun take no other name.
    """
    remove_orphans(candidate_directories(tmpdir))
    path, lock = _create(candidate_directories(tmpdir))
    try:
        yield path
    finally:
        _remove(path)
        os.close(lock)


def remove_orphans(directories: Iterable[str]) -> None:
    """Remove the scratch directories that killed launchers of this user left in ``directories``."""
    for parent in filter(os.path.isabs, dict.fromkeys(directories)):
        with contextlib.suppress(OSError), os.scandir(parent) as entries:
            for entry in filter(lambda candidate: _NAME.fullmatch(candidate.name), entries):
                _remove_orphan(entry)


def _create(directories: Iterable[str]) -> tuple[str, int]:
    problem = ""
    for parent in directories:
        name = os.urandom(8).hex()
        path, draft = (os.path.join(parent, f"{prefix}{name}") for prefix in (_PREFIX, _DRAFT_PREFIX))
        if not os.path.isabs(parent) or len(path) > _LONGEST or " " in path:
            continue
        try:
            os.mkdir(draft, mode=0o700)
            lock = _lock(draft, os.O_CREAT)
            # It is renamed once it is locked: a directory with the final name and without a lock is an orphan.
            os.rename(draft, path)
        except OSError as error:
            problem = f"{path} cannot be created: {error.strerror}"
            _remove(draft)
            continue
        return path, lock
    raise ClusterError(f"{problem}; set TMPDIR to a directory this host may write to, with a short name without blanks")


def _remove(path: str) -> None:
    """Remove as much of a directory as possible; a script may have nested directories in it, thousands deep."""
    parent, name = os.path.split(path)
    if not name.startswith(_DRAFT_PREFIX):
        draft = os.path.join(parent, name.replace(_PREFIX, _DRAFT_PREFIX, 1))
        with contextlib.suppress(OSError):
            # If this process is killed after it removed the lock, the rest is found by this name.
            os.rename(path, draft)
            path = draft
    with contextlib.suppress(OSError):
        directory_tree.remove_tree(path, failed=lambda *_: None)


def _remove_orphan(entry: os.DirEntry[str]) -> None:
    # Another launcher may remove it at the same time.
    with contextlib.suppress(OSError):
        is_own = entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        if is_own and _is_orphan(entry.path):
            _remove(entry.path)


def _is_orphan(path: str) -> bool:
    if os.path.basename(path).startswith(_DRAFT_PREFIX):
        return time.time() - os.stat(path).st_mtime > _DRAFT_SECONDS
    try:
        os.close(_lock(path))
    except OSError:  # it is locked, or it does not exist: not a launcher's directory
        return False
    return True


def _lock(path: str, create: int = 0) -> int:
    """Lock a directory; raise ``OSError`` where another process has it locked."""
    import fcntl

    descriptor = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | create, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
