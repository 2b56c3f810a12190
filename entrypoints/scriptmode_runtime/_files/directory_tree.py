"""Walk and remove everything beneath a directory. Links are not followed; the rules of `beneath` hold."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from scriptmode_runtime._files.beneath import At, Directory, MovedError, Position

Failed = Callable[[str, OSError], None]


class Entry(NamedTuple):
    """Something that `walk` found; ``at`` and ``path`` are valid until the next step of the walk."""

    at: At
    #: Of a link itself.
    status: os.stat_result
    above: Sequence[str]

    @property
    def path(self) -> str:
        """Return the path from the root."""
        return "/".join((*self.above, self.at.name))

    @property
    def is_directory(self) -> bool:
        """Return whether it is a directory and no link to one."""
        return stat.S_ISDIR(self.status.st_mode)


def walk(directory: Directory, failed: Failed | None = None) -> Iterator[Entry]:
    """Yield everything below a directory, each directory before what is in it.

    Entries that disappear meanwhile are left out. ``failed`` gets errors of listing; without it they are raised.
    """
    with directory.position() as position:
        yield from _walked(position, failed or _raise)


def remove_beneath(directory: Directory, path: str, failed: Failed | None = None) -> None:
    """Remove a file, a link itself, or a directory with everything in it; a missing one is ignored.

    Everything that can be removed is removed. ``failed`` is called for the rest, or else the first error is raised.
    Links in the parent directories are an error. Other file systems mounted below are not entered.
    """
    errors: list[OSError] = []
    report = failed or (lambda _, error: errors.append(error))
    with contextlib.suppress(FileNotFoundError), directory.at(path, links=False) as at:
        try:
            _remove(at, report)
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                report(path, error)
    if errors:
        raise errors[0]


def remove_tree(path: str | os.PathLike[str], failed: Failed | None = None) -> None:
    """Remove a file, a link itself, or a directory, as `remove_beneath` does; its parent directory is trusted."""
    parent, name = os.path.split(os.path.abspath(path))
    try:
        directory = Directory(parent)
    except FileNotFoundError:
        return
    with directory:
        remove_beneath(directory, name, failed)


def _walked(position: Position, failed: Failed) -> Iterator[Entry]:
    levels = [_entries(position, failed)]
    while levels:
        entries = levels[-1]
        if not entries:
            levels.pop()
            if levels:
                position.leave()
            continue
        name, status = entries.pop()
        entry = Entry(At(name, position.here), status, position.names)
        yield entry
        if not entry.is_directory:
            continue
        try:
            position.enter(name)
        except OSError as error:
            # Removed, or replaced by a link.
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                failed(entry.path, error)
        else:
            levels.append(_entries(position, failed))


def _entries(position: Position, failed: Failed) -> list[tuple[str, os.stat_result]]:
    try:
        return position.entries()
    except OSError as error:
        failed("/".join(position.names), error)
        return []


def _remove(at: At, failed: Failed) -> None:
    above = at.path.rpartition("/")[0]

    def report(path: str, error: OSError) -> None:
        failed(f"{above}/{path}" if above else path, error)

    root = os.stat(at.name, dir_fd=at.dir_fd, follow_symlinks=False)
    with contextlib.closing(Position(at.dir_fd)) as position:
        # The open directories, with what is left in each.
        levels = [("", [(at.name, root)])]
        while levels:
            _remove_next(position, levels, root.st_dev, report)


def _remove_next(
    position: Position, levels: list[tuple[str, list[tuple[str, os.stat_result]]]], device: int, failed: Failed
) -> None:
    """Remove one entry of the last level, or enter it; leave and remove the level where it is empty."""
    name, entries = levels[-1]
    try:
        if entries:
            below, status = entries.pop()
            if not stat.S_ISDIR(status.st_mode):
                os.unlink(below, dir_fd=position.here)
            elif status.st_dev != device:
                mounted = OSError(errno.EXDEV, "another file system is mounted there", below)
                failed("/".join((*position.names, below)), mounted)
            else:
                position.enter(below)
                levels.append((below, _entries(position, failed)))
        else:
            levels.pop()
            if levels:
                position.leave()
                os.rmdir(name, dir_fd=position.here)
    except FileNotFoundError:
        return
    except MovedError:
        raise
    except OSError as error:
        failed("/".join((*position.names, error.filename or "")), error)


def _raise(_: str, error: OSError) -> None:
    raise error
