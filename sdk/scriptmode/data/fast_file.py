"""FastFile mode: a channel's objects as files of a read-only mount, whose bytes are fetched when they are read.

The mount speaks the kernel's FUSE protocol itself (see `fuse`), so that nothing has to be installed where root runs
the job; other users need the setuid helper of Debian's fuse3. A binding to libfuse would need that library on every
machine, and hands each request through one more layer.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Callable

from scriptmode.data import fuse_mounts
from scriptmode.data.file_prefetch import Prefetcher
from scriptmode.data.fuse_protocol import Name, Node
from scriptmode.data.fuse_server import Server
from scriptmode.data.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from scriptmode.data.fuse_server import Opened, Tree
    from scriptmode.data.object_store import ObjectStore, StoredObject

FILE_MODE = stat.S_IFREG | 0o444
FOLDER_MODE = stat.S_IFDIR | 0o555
#: What never changes is believed for as long as any job runs.
FOREVER_SECONDS = 10.0 * 365 * 24 * 3600
#: Seconds that a thread keeps Python while another waits: readers wait for the thread that answers the kernel.
SWITCH_SECONDS = 0.0005


class ObjectTree:
    """A channel's objects by their paths: never changes. Folders have odd numbers and objects even ones.

    ``entries`` are the objects with their paths below the channel, and stand in folders in that order. Raise
    `DataError` for paths that cannot be side by side.
    """

    seconds = FOREVER_SECONDS

    def __init__(self, entries: Iterable[tuple[StoredObject, str]], store_of: Callable[[str], ObjectStore]) -> None:
        self._prefetcher = Prefetcher(store_of)
        self._layout = Layout()
        # Objects' own times would cost a request each where a list does not tell them.
        self._listed_ns = time.time_ns()
        self._uid, self._gid = os.geteuid(), os.getegid()
        deque(self._layout.fill(entries), maxlen=0)

    def lookup(self, folder: int, name: bytes) -> Node | None:
        """Give what has that name in a folder."""
        number = self._layout.folder(folder).get(name)
        return None if number is None else self.node(number)

    def node(self, number: int) -> Node:
        """Give a file's or folder's status."""
        if number % 2:
            return Node(number, FOLDER_MODE, 0, self._listed_ns, self._uid, self._gid, links=2)
        return Node(number, FILE_MODE, self._layout.item(number).size, self._listed_ns, self._uid, self._gid)

    def names(self, folder: int) -> Sequence[Name]:
        """Give a folder's entries as they were listed."""
        own = self._layout.folder(folder)
        found = [Name(b".", folder, FOLDER_MODE), Name(b"..", self._layout.parent(folder), FOLDER_MODE)]
        found += [Name(name, number, FOLDER_MODE if number % 2 else FILE_MODE) for name, number in own.items()]
        return found

    def link(self, number: int) -> bytes:
        """Refuse: there are no links."""
        raise OSError(errno.EINVAL, f"node {number} is no link")

    def open(self, number: int) -> Opened:
        """Open an object."""
        return self._prefetcher.open(self._layout.item(number))

    def forget(self, number: int, count: int) -> None:
        """Do nothing: numbers stay as they are."""

    def count(self) -> int:
        """Give the number of objects."""
        return len(self._layout)


def mount(tree: Tree, place: Path, report: Callable[[str], None], ready: Callable[[], None]) -> None:
    """Mount ``tree`` at an empty folder and serve it until it is unmounted, on the threads of this process.

    ``ready`` is called once the mount is there; ``report`` gets a sentence for each thing that could not be read.
    Raise `DataError` when there is no mount to be had.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    device = fuse_mounts.attach(place)
    ready()
    Server(device, tree, report).serve()
