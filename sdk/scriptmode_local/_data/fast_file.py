"""FastFile mode: a channel's objects as files of a read-only mount, whose bytes are downloaded when they are read.

The mount speaks the kernel's FUSE protocol itself (`fuse_protocol` has the reason), so that nothing has to be installed
where root runs the job; other users need the setuid helper of Debian's fuse3.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Callable

from scriptmode_local._data.file_prefetch import PrefetchedFile, Prefetcher
from scriptmode_local._data.fuse_protocol import Name, Node
from scriptmode_local._data.layout import Layout

if TYPE_CHECKING:
    from scriptmode_local._data.object_store import ObjectStore, StoredObject

FILE_MODE = stat.S_IFREG | 0o444
DIRECTORY_MODE = stat.S_IFDIR | 0o555


class ObjectTree:
    """A channel's objects by their paths, never changing. Directories have odd numbers and objects even ones.

    ``entries`` are the objects with their paths below the channel; directories list them in that order. Raises
    `DataError` for paths that exclude each other. The server of the mount calls it from one thread; a reader gets its
    ``OSError``, or EIO for a `DataError`.
    """

    def __init__(self, entries: Iterable[tuple[StoredObject, str]], store_of: Callable[[str], ObjectStore]) -> None:
        self._prefetcher = Prefetcher(store_of)
        self._layout = Layout()
        # Objects' own times would cost a request each where a listing has none.
        self._listed_ns = time.time_ns()
        self._uid, self._gid = os.geteuid(), os.getegid()
        deque(self._layout.fill(entries), maxlen=0)

    def lookup(self, directory: int, name: bytes) -> Node | None:
        """Return the node of that name in a directory."""
        number = self._layout.directory(directory).get(name)
        return None if number is None else self.node(number)

    def node(self, number: int) -> Node:
        """Return a file's or directory's status."""
        if number % 2:
            return Node(number, DIRECTORY_MODE, 0, self._listed_ns, self._uid, self._gid, links=2)
        return Node(number, FILE_MODE, self._layout.item(number).size, self._listed_ns, self._uid, self._gid)

    def names(self, directory: int) -> Sequence[Name]:
        """Return a directory's entries in the order of the listing."""
        own = self._layout.directory(directory)
        names = [Name(b".", directory, DIRECTORY_MODE), Name(b"..", self._layout.parent(directory), DIRECTORY_MODE)]
        names += [Name(name, number, DIRECTORY_MODE if number % 2 else FILE_MODE) for name, number in own.items()]
        return names

    def open(self, number: int) -> PrefetchedFile:
        """Open an object."""
        return self._prefetcher.open(self._layout.item(number))

    def count(self) -> int:
        """Return the number of objects."""
        return len(self._layout)
