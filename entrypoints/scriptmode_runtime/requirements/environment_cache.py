"""The cache of environments: each is installed once, used by many jobs of this machine, and removed when unused.

``<data dir>/environments/``, or a directory that the containers of one image share
  ``KEY.lock``    held (flock) by the process that installs, replaces or removes an environment of this key
  ``KEY.json``    names the complete environment of this key, and has its digests; replaced by rename
  ``KEY-NONCE/``  an environment, read-only once it is complete. ``in_use`` in it is held (flock, shared) by the
                  launcher of each host that uses it; its modification time is that of the last use

A directory that no ``KEY.json`` names is being installed, was left by a killed installation, or was replaced while a
job used it. It is removed by the next process that gets the key's lock, once no host uses it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import stat
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode_runtime.files import beneath
from scriptmode_runtime.processes import namespace
from scriptmode_runtime.requirements import LINK, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: Environments that no job has used for this long are removed by the next installation.
UNUSED_SECONDS = 30 * 24 * 3600.0
#: The size of all environments above which the least recently used are removed by the next installation.
MOST_BYTES = 20 * 10**9
#: Seconds to wait for another process that installs the same environment; an installer may hang.
WAIT_SECONDS = 600.0
#: Seconds for a launcher to hold an environment that was just given to it.
_HANDOVER_SECONDS = 60.0
#: Between two attempts to get a lock, which the kernel waits for without a deadline.
_POLL_SECONDS = 0.05
_IN_USE = "in_use"
_NAME = re.compile(r"(?P<key>[0-9a-f]{20})-[0-9a-f]{8}")


class CachedEnvironment(NamedTuple):
    """One environment of the cache; times are seconds since the epoch."""

    key: str
    path: str
    size: int
    made: float
    used: float
    #: Whether later jobs use it; else it is incomplete or was replaced.
    is_published: bool


class InstallationError(Exception):
    """The installation of an environment failed with this exit code."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


class EnvironmentCache:
    """The environments in one directory, for jobs of this user on this machine, or of the containers of one image."""

    def __init__(self, folder: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock

    def obtain(
        self,
        key: str,
        is_usable: Callable[[CachedEnvironment], bool],
        install: Callable[[str], None],
        on_wait: Callable[[], None],
    ) -> CachedEnvironment:
        """Return the environment of a key, which is installed first where none is usable.

        ``install`` raises `InstallationError`. Raises ``TimeoutError`` where another process installs it for longer
        than `WAIT_SECONDS`, another ``OSError`` where the cache cannot be written.
        """
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            lock = self._lock(key, on_wait)
        except OSError:
            found = self._published(key)
            if found and is_usable(found):
                return found
            raise
        try:
            found = self._published(key)
            if found is None or not is_usable(found):
                found = self._install(key, install)
            with contextlib.suppress(OSError):
                os.utime(os.path.join(found.path, _IN_USE))
            return found
        finally:
            if self._published(key) is None:
                self._remove_lock(key)
            os.close(lock)

    def is_unchanged(self, found: CachedEnvironment) -> bool:
        """Return whether an environment is as it was installed. The caller has the key's lock if the cache is writable.

        The mode bits of its files and a read-only mount keep programs from changing it, but not those of root.
        """
        record = self._record(found.key)
        try:
            status = fingerprint.status_digest(found.path, without=_IN_USE)
            if status == record.get("status"):
                return True
            if fingerprint.content_digest(found.path, without=_IN_USE) != record.get("content"):
                return False
        except OSError:  # an entry that was removed meanwhile, or may not be read any more
            return False
        with contextlib.suppress(OSError):
            self._publish(found.key, {**record, "status": status})
        return True

    def environments(self) -> list[CachedEnvironment]:
        """Return all environments, the least recently used first, with those that are incomplete."""
        found = []
        with contextlib.suppress(OSError):
            for name in os.listdir(self._folder):
                if match := _NAME.fullmatch(name):
                    with contextlib.suppress(OSError):
                        found.append(self._environment(match["key"], os.path.join(self._folder, name)))
        return sorted(found, key=lambda each: each.used)

    def remove_unused(
        self, unused_seconds: float = UNUSED_SECONDS, most_bytes: int | None = MOST_BYTES, *, dry_run: bool = False
    ) -> list[CachedEnvironment]:
        """Remove environments that no job has used for ``unused_seconds``, and what killed installations left.

        Of the others the least recently used are removed until all together have ``most_bytes`` at most. An environment
        that a running job uses, or that is being installed, is never removed. ``dry_run`` removes nothing. This is the
        function for a command that frees space: ``EnvironmentCache(str(data_dir / "environments"))``.

        Returns:
            What was removed; the sum of ``size`` is what it freed, in bytes.
        """
        environments, removed = self.environments(), []
        left = sum(each.size for each in environments)
        for each in environments:
            is_old = time.time() - each.used >= unused_seconds
            is_too_much = most_bytes is not None and left > most_bytes
            if (is_old or is_too_much or not each.is_published) and self._remove(each, dry_run=dry_run):
                removed.append(each)
                left -= each.size
        return removed

    def _install(self, key: str, install: Callable[[str], None]) -> CachedEnvironment:
        """Install an environment and publish it; the caller has the key's lock."""
        path = os.path.join(self._folder, f"{key}-{os.urandom(4).hex()}")
        try:
            install(path)
            size = _make_read_only(path)
            os.close(_open_for_all_users(os.path.join(path, _IN_USE)))
            os.chmod(path, 0o555)  # noqa: S103 - read-only for the users of all containers
            content = fingerprint.content_digest(path, without=_IN_USE)
            status = fingerprint.status_digest(path, without=_IN_USE)
            digests = {"content": content, "status": status}
            self._publish(key, {"directory": os.path.basename(path), "made": time.time(), "bytes": size, **digests})
        except BaseException:
            _remove_tree(path)
            raise
        for each in self.environments():
            if each.key == key and each.path != path and not _is_in_use(each):
                _remove_tree(each.path)
        self.remove_unused()
        return self._environment(key, path)

    def _publish(self, key: str, record: dict[str, object]) -> None:
        path = os.path.join(self._folder, f"{key}.json")
        draft = f"{path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)  # of a killed process, perhaps of another user
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)

    def _record(self, key: str) -> Mapping[str, Any]:
        """Return what is recorded of a key's environment; {} where there is none, or the file is damaged."""
        try:
            with open(os.path.join(self._folder, f"{key}.json"), encoding="utf-8") as file:
                record = json.load(file)
        except (OSError, ValueError):
            return {}
        is_valid = isinstance(record, dict) and _NAME.fullmatch(str(record.get("directory")))
        return (
            record if is_valid and all(isinstance(record.get(name), (int, float)) for name in ("made", "bytes")) else {}
        )

    def _published(self, key: str) -> CachedEnvironment | None:
        record = self._record(key)
        path = os.path.join(self._folder, str(record.get("directory")))
        if not record or not os.path.exists(os.path.join(path, "bin", "python")):
            return None
        return self._environment(key, path)

    def _environment(self, key: str, path: str) -> CachedEnvironment:
        record = self._record(key)
        is_published = record.get("directory") == os.path.basename(path)
        changed = os.stat(path).st_mtime
        with contextlib.suppress(FileNotFoundError):
            changed = os.stat(os.path.join(path, _IN_USE)).st_mtime
        if is_published:
            return CachedEnvironment(key, path, int(record["bytes"]), float(record["made"]), changed, is_published)
        size = sum(status.st_size for _, status in _entries(path))
        return CachedEnvironment(key, path, size, changed, changed, is_published)

    def _remove(self, found: CachedEnvironment, *, dry_run: bool) -> bool:
        """Remove an environment; return False where a process uses it, or installs one of this key."""
        try:
            lock = self._lock(found.key)
        except OSError:
            return False
        try:
            # It may have been used since it was listed.
            current = self._environment(found.key, found.path)
            if current.used != found.used or _is_in_use(current):
                return False
            if dry_run:
                return True
            if current.is_published:
                os.unlink(os.path.join(self._folder, f"{found.key}.json"))
            _remove_tree(found.path)
            if self._published(found.key) is None:
                self._remove_lock(found.key)
        except OSError:
            return False
        finally:
            os.close(lock)
        return True

    def _remove_lock(self, key: str) -> None:
        """Remove the file of a lock that this process has; processes that wait for it create it again."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._folder, f"{key}.lock"))

    def _lock(self, key: str, on_wait: Callable[[], None] | None = None) -> int:
        """Lock a key; without ``on_wait`` raise ``BlockingIOError`` where another process has it locked."""
        path = os.path.join(self._folder, f"{key}.lock")
        deadline = self._clock() + WAIT_SECONDS
        is_logged = False
        while True:
            with contextlib.ExitStack() as opened:
                descriptor = _open_for_all_users(path)
                opened.callback(os.close, descriptor)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    if on_wait is None:
                        raise
                    if not is_logged:
                        on_wait()
                        is_logged = True
                    if self._clock() >= deadline:
                        raise TimeoutError(errno.ETIMEDOUT, "another process is still installing") from error
                    time.sleep(_POLL_SECONDS)
                    continue
                # The process that had it may have removed the file.
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                        opened.pop_all()
                        return descriptor


def _open_for_all_users(path: str) -> int:
    """Open a file for locks: the directory decides who may use it, the containers of an image as different users."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    with contextlib.suppress(PermissionError):  # of another user, who has done so
        os.fchmod(descriptor, 0o666)
    return descriptor


def hold(overlay: str) -> None:
    """Keep the environment that a host's overlay uses from removal, until this process ends."""
    # The descriptor stays open.
    with contextlib.suppress(OSError):
        descriptor = os.open(os.path.join(overlay, LINK, _IN_USE), os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def protect(folder: str, base_dir: str) -> None:
    """Protect the directory of all environments from this process, which has no threads, and its descendants.

    On a host without a namespace of its own, to which the machine refuses one, nothing changes.
    """
    if namespace.is_base_dir(base_dir):
        namespace.make_read_only(folder)


def _is_in_use(found: CachedEnvironment) -> bool:
    """Return whether a launcher uses an environment, or may be about to."""
    try:
        descriptor = os.open(os.path.join(found.path, _IN_USE), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return 0 <= time.time() - found.used < _HANDOVER_SECONDS


def _entries(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each directory and file of a tree, links themselves, with its status; files before their directory."""
    for folder, folders, files in os.walk(path, topdown=False):
        for name in (*files, *folders):
            with contextlib.suppress(FileNotFoundError):
                entry = os.path.join(folder, name)
                yield entry, os.lstat(entry)


def _make_read_only(path: str) -> int:
    """Remove the right to write from everything in an environment but itself; return its size in bytes."""
    size = 0
    for entry, status in _entries(path):
        size += status.st_size
        if not stat.S_ISLNK(status.st_mode):
            os.chmod(entry, stat.S_IMODE(status.st_mode) & ~0o222)
    return size


def _remove_tree(path: str) -> None:
    """Remove as much of an environment as possible."""
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
        for entry, status in _entries(path):
            if stat.S_ISDIR(status.st_mode):
                os.chmod(entry, 0o700)
    with contextlib.suppress(OSError):
        beneath.remove_tree(path, failed=lambda *_: None)
