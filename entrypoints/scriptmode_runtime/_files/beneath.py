"""Open and create what is beneath a directory, and nothing else; `directory_tree` walks and removes it.

Paths and symbolic links in untrusted data (archives, containers, checkpoints) are never passed to the operating
system as a whole, nor resolved first. A path is walked one component at a time from an open directory:

* a directory is entered with ``O_NOFOLLOW`` relative to the descriptor of the one above it, so that a directory that is
  replaced by a link at the same time is not entered;
* a symbolic link is read, and its target is walked in the same way; 40 links are followed, as Linux does;
* ``..`` opens the parent, which must be the directory that was left before, by device and inode: one that was moved
  meanwhile leads nowhere.

Few descriptors are open and nothing is recursive: neither the depth of a tree nor the length of a path (``PATH_MAX``)
has a limit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

#: The number of symbolic links that Linux follows in one path. (path_resolution(7))
MOST_LINKS = 40
# A descriptor of O_PATH, which macOS lacks, needs no permission to read the directory.
_PATH = getattr(os, "O_PATH", 0)
_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | _SAFE
_ENTER = _PATH | _LIST
#: For files: neither a link is followed nor a reader of a FIFO waited for.
_FILE = _SAFE | os.O_NONBLOCK | os.O_NOCTTY


class EscapeError(OSError):
    """A path, or a symbolic link in it, leads out of the directory."""


class MovedError(OSError):
    """A directory was moved or removed while this process was in it."""


class At(NamedTuple):
    """Where something is, for the functions of `os`: ``os.unlink(at.name, dir_fd=at.dir_fd)``."""

    name: str
    dir_fd: int
    #: From the root, without links; only `Directory.at` sets it.
    path: str = ""


class Directory:
    """An open directory. Every path is relative to it and may not leave it; `EscapeError` is raised for one that does.

    Args:
        path: The directory itself, which is trusted: links on the way to it are followed. Or an open descriptor of it.
        seen_as: The absolute paths of this directory for the programs that wrote its links (``/opt/ml``). An absolute
            link below one of them is followed beneath this directory; every other absolute link leads out.

    """

    def __init__(self, path: str | os.PathLike[str] | int, *, seen_as: str | Sequence[str] = ()) -> None:
        paths = (seen_as,) if isinstance(seen_as, str) else seen_as
        self._seen_as = [path.rstrip("/") for path in paths if path.strip("/")]
        self._root = os.dup(path) if isinstance(path, int) else os.open(path, _ENTER & ~os.O_NOFOLLOW)

    def __enter__(self) -> Directory:  # noqa: PYI034 - Self is not in Python 3.9's typing
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory."""
        _close(self._root)
        self._root = -1

    def position(self) -> contextlib.closing[Position]:
        """Return a position at this directory, which the context closes."""
        return contextlib.closing(Position(self._root))

    @contextlib.contextmanager
    def at(self, path: str, *, follow: bool = False, links: bool = True) -> Iterator[At]:
        """Yield where ``path`` is, which need not exist; its parent directory must.

        Args:
            path: A relative path; the directory itself is ``""``.
            follow: Follow the last component too where it is a link.
            links: Follow links in the parent directories; without, they are an error (``ENOTDIR``).

        """
        with self.position() as position:
            name = self._resolve(position, components(path), follow=follow, links=links)
            yield At(name, position.here, "/".join((*position.names, *(() if name == "." else (name,)))))

    def stat(self, path: str) -> os.stat_result:
        """Return the status of a file or directory; links are followed beneath this directory."""
        with self.at(path, follow=True) as at:
            status = os.stat(at.name, dir_fd=at.dir_fd, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):  # put there since the links were followed
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return status

    def open_file(self, path: str) -> int:
        """Open a regular file for reading and return the descriptor; links are followed beneath this directory.

        Nothing else is opened, not even for a moment: to open a device has effects, and to open a FIFO waits.
        """
        with self.at(path, follow=True) as at:
            return _opened_file(at)

    def below(self, path: str) -> Directory:
        """Open a directory beneath this one; links on the way to it are an error (``ENOTDIR``)."""
        with self.position() as position:
            for part in components(checked(path)):
                position.enter(part)
            return Directory(position.here)

    def _resolve(self, position: Position, parts: Sequence[str], *, follow: bool, links: bool) -> str:
        """Move ``position`` to the parent of the last of ``parts``; return the name in it, "." for the root itself."""
        pending = list(reversed(parts))
        left = MOST_LINKS if links else 0
        while pending:
            part = pending.pop()
            if part == "..":
                position.leave()
                continue
            if not pending and not follow:
                return part
            try:
                target = position.step(part, is_last=not pending)
            except FileNotFoundError:
                if not pending:
                    return part
                _check_depth(len(position.names), [part, *reversed(pending)])
                raise
            if target is not None:
                if not left:
                    number = errno.ELOOP if links else errno.ENOTDIR
                    raise OSError(number, os.strerror(number), "/".join(parts))
                left -= 1
                pending += reversed(self._target(position, target))
            elif not pending:
                return part
        return "."

    def _target(self, position: Position, target: str) -> list[str]:
        """Return the components of a link's target; an absolute one starts at the root again."""
        if not target.startswith("/"):
            return components(target)
        for path in self._seen_as:
            if (target + "/").startswith(path + "/"):
                position.restart(self._root)
                return components(target[len(path) :].lstrip("/"))
        raise EscapeError(errno.EXDEV, "the link leads out of the directory", target)


class Position:
    """One open directory beneath the root, with the names on the way to it and the identities of those above it."""

    def __init__(self, root: int) -> None:
        self.names: list[str] = []
        self._above: list[tuple[int, int]] = []
        #: The one above, after a step down: from a directory that may not be searched ".." cannot be opened.
        self._open_above = -1
        self.here = os.dup(root)

    def close(self) -> None:
        """Close the directory."""
        _close(self.here, self._open_above)
        self.here = self._open_above = -1

    def step(self, name: str, *, is_last: bool) -> str | None:
        """Enter the directory of that name, or return its target where it is a link; only look at the last one."""
        if is_last:
            return self.link(name)
        try:
            self.enter(name)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            target = self.link(name)
            if target is None:
                raise
            return target
        return None

    def link(self, name: str) -> str | None:
        """Return the target of the link of that name; None for everything else that exists."""
        try:
            return os.readlink(name, dir_fd=self.here)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        os.stat(name, dir_fd=self.here, follow_symlinks=False)
        return None

    def enter(self, name: str) -> None:
        """Enter the directory of that name, which must not be a link."""
        above, identity = self.here, _identity(self.here)
        below = os.open(name, _ENTER, dir_fd=above)
        _close(self._open_above)
        self._open_above, self.here = above, below
        self._above.append(identity)
        self.names.append(name)

    def leave(self) -> None:
        """Return to the directory above, which must be the one that was left before."""
        if not self._above:
            raise EscapeError(errno.EXDEV, "the path leads out of the directory", "..")
        expected, name, below = self._above.pop(), self.names.pop(), self.here
        if self._open_above >= 0:
            self.here, self._open_above = self._open_above, -1
            os.close(below)
        else:
            try:
                self.here = os.open("..", _ENTER, dir_fd=below)
            except OSError as error:
                raise MovedError(
                    error.errno, f"the directory above cannot be opened: {error.strerror}", name
                ) from error
            os.close(below)
            if _identity(self.here) != expected:
                raise MovedError(errno.ESTALE, "it was moved at the same time", name)

    def restart(self, root: int) -> None:
        """Return to the root."""
        self.close()
        self._above.clear()
        self.names.clear()
        self.here = os.dup(root)

    def entries(self) -> list[tuple[str, os.stat_result]]:
        """Return the names in this directory in reverse order, with the status of each."""
        entries = []
        with contextlib.ExitStack() as opened:
            directory = os.open(".", _LIST, dir_fd=self.here)
            opened.callback(os.close, directory)
            for entry in opened.enter_context(os.scandir(directory)):
                with contextlib.suppress(FileNotFoundError):
                    entries.append((entry.name, entry.stat(follow_symlinks=False)))
        return sorted(entries, key=lambda pair: pair[0], reverse=True)


def checked(path: str) -> str:
    """Return a relative path without ``.`` and empty components; raise `EscapeError` for one that could lead out."""
    parts = components(path)
    if ".." in parts:
        raise EscapeError(errno.EXDEV, "the path leads out of the directory", path)
    return "/".join(parts)


def components(path: str) -> list[str]:
    """Return the components of a relative path."""
    if path.startswith("/"):
        raise EscapeError(errno.EXDEV, "the path leads out of the directory", path)
    return [part for part in path.split("/") if part not in ("", ".")]


def _check_depth(depth: int, parts: Sequence[str]) -> None:
    """Raise `EscapeError` for a path that would lead out if what is missing of it were there."""
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            raise EscapeError(errno.EXDEV, "the path leads out of the directory", "/".join(parts))


def _opened_file(at: At) -> int:
    _require_regular(os.stat(at.name, dir_fd=at.dir_fd, follow_symlinks=False), at.name)
    # With O_PATH nothing is opened that replaced the file since.
    first = os.open(at.name, _PATH | _SAFE if _PATH else os.O_RDONLY | _FILE, dir_fd=at.dir_fd)
    try:
        _require_regular(os.fstat(first), at.name)
        # A descriptor of its own either way: the first one is closed.
        return (
            os.open(f"/proc/self/fd/{first}", os.O_RDONLY | (_FILE & ~_SAFE | os.O_CLOEXEC)) if _PATH else os.dup(first)
        )
    finally:
        os.close(first)


def _require_regular(status: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", name)


def _close(*directories: int) -> None:
    for directory in directories:
        if directory >= 0:
            os.close(directory)


def _identity(directory: int) -> tuple[int, int]:
    status = os.fstat(directory)
    return status.st_dev, status.st_ino
