"""A folder of this machine as the tree of a read-only mount: a file system that may be read and not written."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Callable

from scriptmode.data import fuse_protocol
from scriptmode.data.fuse_protocol import Name, Node
from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from scriptmode.data.fuse_server import Content, OpenFile

READERS = 16


class FolderTree:
    """What is below ``folder``, as it is: changes show within a second. Raise `DataError` when it is no folder."""

    seconds = 1.0

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise DataError(f"{str(folder)!r} is no folder; name one, or use input mode File")
        self._readers = ThreadPoolExecutor(READERS, "read")
        self._paths = {fuse_protocol.ROOT: os.fsencode(folder)}
        self._numbers = {self._paths[fuse_protocol.ROOT]: fuse_protocol.ROOT}
        self._counts: dict[int, int] = {}
        self._last = fuse_protocol.ROOT

    def lookup(self, folder: int, name: bytes) -> Node | None:
        """Give what has that name in a folder."""
        path = self._path(folder) + b"/" + name
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return None
        number = self._numbers.get(path)
        if number is None:
            number = self._last = self._last + 1
            self._paths[number], self._numbers[path] = path, number
        self._counts[number] = self._counts.get(number, 0) + 1
        return _node(number, status)

    def node(self, number: int) -> Node:
        """Give the status of what was looked up."""
        return _node(number, os.lstat(self._path(number)))

    def names(self, folder: int) -> Sequence[Name]:
        """Give a folder's entries in their names' order."""
        with os.scandir(self._path(folder)) as entries:
            found = sorted(Name(os.fsencode(entry.name), entry.inode(), _kind(entry)) for entry in entries)
        # The kernel knows the numbers of these two better.
        return [Name(name, folder, stat.S_IFDIR) for name in (b".", b"..")] + found

    def link(self, number: int) -> bytes:
        """Give where a symbolic link leads."""
        return os.readlink(self._path(number))  # noqa: PTH115 - bytes

    def open(self, number: int) -> OpenFile:
        """Open a file."""
        # What was replaced by a link or a pipe since it was looked up is not followed and not waited for.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        return _File(os.open(self._path(number), flags), self._readers)

    def forget(self, number: int, count: int) -> None:
        """Take back look-ups; a node without any is gone."""
        left = self._counts.get(number, 0) - count
        if left > 0:
            self._counts[number] = left
        elif number != fuse_protocol.ROOT:
            self._counts.pop(number, None)
            self._numbers.pop(self._paths.pop(number, b""), None)

    def count(self) -> int:
        """Give the number of files known by now: nobody else counts them."""
        return len(self._paths)

    def _path(self, number: int) -> bytes:
        try:
            return self._paths[number]
        except KeyError:
            raise OSError(errno.ESTALE, f"node {number} was forgotten") from None


class _File:
    """An open file; it stays open until its last read is answered."""

    def __init__(self, descriptor: int, readers: ThreadPoolExecutor) -> None:
        self._descriptor = descriptor
        self._readers = readers
        self._last: set[Future[None]] = set()

    def read(self, start: int, size: int, answer: Callable[[Content], None]) -> None:
        """Answer with the bytes from ``start`` on, once they were read."""

        def work() -> None:
            try:
                content: Content = (os.pread(self._descriptor, size, start),)
            except Exception as error:  # noqa: BLE001 - told to the reader, who waits
                content = error
            answer(content)

        future = self._readers.submit(work)
        self._last.add(future)
        future.add_done_callback(self._last.discard)

    def close(self) -> None:
        """Close the file after the reads that are under way."""
        for future in list(self._last):
            if not future.done():
                future.add_done_callback(lambda _: self.close())
                return
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def _node(number: int, status: os.stat_result) -> Node:
    return Node(
        number,
        status.st_mode,
        status.st_size,
        status.st_mtime_ns,
        status.st_uid,
        status.st_gid,
        status.st_nlink,
        status.st_rdev if status.st_rdev < 1 << 32 else 0,
    )


def _kind(entry: os.DirEntry[bytes]) -> int:
    if entry.is_symlink():
        return stat.S_IFLNK
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    return stat.S_IFREG if entry.is_file(follow_symlinks=False) else 0
