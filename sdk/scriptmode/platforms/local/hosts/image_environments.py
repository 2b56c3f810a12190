"""Cached environments of container images: each image has a directory, which the containers of all its jobs share.

``<data dir>/environments/images/ID/``, where ID is that of the image
  ``in_use``   locked (flock), shared, by the agent of each job that uses the directory; exclusively while its files get
               another owner, or it is removed. Its modification time is that of the last use
  ``shared/``  mounted in the containers; `requirements.environment_cache` of the runtime manages it

A container can write anything into ``shared``, as any user: this machine reads none of its files.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from scriptmode.platforms.local.system.directory_lock import locked_directory, try_lock
from scriptmode.platforms.local.system.full_disk import disk_usage
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Where containers see the directory of their image. Paths in an environment begin with it.
MOUNT_POINT = "/var/cache/scriptmode/environments"
#: Seconds to wait while the files of a directory get another owner.
_WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.05
#: Number of an identifier's digits that name a directory.
_DIGITS = 20
_IN_USE, _SHARED = "in_use", "shared"
_REMOVED = ".removed-"


class ImageEnvironments:
    """The directories of all images below ``environments``, the directory of cached environments."""

    def __init__(self, environments: Path) -> None:
        self._folder = environments / "images"

    def use(self, identifier: str) -> tuple[Path, int]:
        """Return the directory to mount for an image, and the descriptor of its lock; raise ``OSError``.

        The directory is in use until the lock is released. ``identifier`` is Docker's, such as ``sha256:...``.
        """
        for directory in (self._folder.parent, self._folder):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / identifier.rpartition(":")[2][:_DIGITS]
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            with locked_directory(self._folder):
                path.mkdir(mode=0o700, exist_ok=True)
                (path / _SHARED).mkdir(exist_ok=True)
                # The image's user is unknown; the directory above is closed to other users of this machine.
                (path / _SHARED).chmod(0o777)
                lock = _try_lock(path, fcntl.LOCK_SH)
            if lock is not None:
                os.utime(lock)
                return path / _SHARED, lock
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{path} is locked by another process")
            time.sleep(_POLL_SECONDS)

    @contextmanager
    def unused_folders(self) -> Iterator[list[Path]]:
        """Yield the shared directories that no job uses, and keep new jobs waiting for them."""
        with ExitStack() as locks:
            found = []
            for path in self._paths():
                with suppress(OSError):  # another process removes it, or another user owns it
                    lock = _try_lock(path, fcntl.LOCK_EX)
                    if lock is not None:
                        locks.callback(os.close, lock)
                        found.append(path / _SHARED)
            yield [folder for folder in found if folder.is_dir()]

    def remove_unused(self, unused_seconds: float, *, dry_run: bool = False) -> list[tuple[str, int]]:
        """Remove the directories of images that no job has used for ``unused_seconds``, unless ``dry_run``.

        Returns the name of each, and the bytes that it had on disk. Raises ``OSError``.
        """
        before = time.time() - unused_seconds
        found = []
        for left in () if dry_run else sorted(self._folder.glob(f"{_REMOVED}*")):
            with suppress(OSError):  # another process may be removing it
                _remove(left)
        for path in self._paths():
            with locked_directory(self._folder):
                lock = _try_lock(path, fcntl.LOCK_EX) if path.exists() else None
                if lock is None:
                    continue
                try:
                    if os.fstat(lock).st_mtime > before:
                        continue
                    found.append((path.name, disk_usage(path)))
                    # No job ever finds a part of it.
                    moved = path if dry_run else path.rename(f"{self._folder}/{_REMOVED}{os.urandom(4).hex()}")
                finally:
                    os.close(lock)
            if not dry_run:
                _remove(moved)
        return found

    def _paths(self) -> list[Path]:
        with suppress(FileNotFoundError):
            return sorted(path for path in self._folder.iterdir() if path.name[0] != ".")
        return []


def image_of(shared: Path) -> str:
    """Return the identifier of the image whose containers share a directory, as far as its name has it."""
    return f"sha256:{shared.parent.name}"


def release(lock: int) -> None:
    """Release the lock of `ImageEnvironments.use`, which children of this process may have too."""
    with suppress(OSError):
        os.utime(lock)
    fcntl.flock(lock, fcntl.LOCK_UN)
    os.close(lock)


def _try_lock(path: Path, kind: int) -> int | None:
    """Lock the directory of an image; return the descriptor, ``None`` where another process has locked it."""
    descriptor = os.open(path / _IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if try_lock(descriptor, kind):
        return descriptor
    os.close(descriptor)
    return None


def _remove(path: Path) -> None:
    """Remove a directory of an image, whose environments are read-only."""
    with beneath.Directory(path) as directory:
        for entry in directory.walk(failed=lambda *_: None):
            if entry.is_directory and not entry.status.st_mode & 0o200:
                with suppress(OSError):
                    os.chmod(entry.at.name, 0o700, dir_fd=entry.at.dir_fd)
    beneath.remove_tree(path)
