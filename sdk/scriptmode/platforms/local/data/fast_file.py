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
from typing import TYPE_CHECKING, Callable

from scriptmode.errors import DataError
from scriptmode.platforms.local.data import fuse
from scriptmode.platforms.local.data.fuse import Name, Node
from scriptmode.platforms.local.data.fuse_server import Server
from scriptmode.platforms.local.data.objects import Stored
from scriptmode.platforms.local.data.reading import Shelf
from scriptmode.platforms.local.hosts import mounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from scriptmode.platforms.local.data.fuse_server import Opened, Tree
    from scriptmode.platforms.local.data.objects import Store

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

    def __init__(self, entries: Iterable[tuple[Stored, str]], store_of: Callable[[str], Store]) -> None:
        self._shelf = Shelf(store_of)
        #: In one piece each: a channel may have millions.
        self._items: list[bytes] = []
        self._folders: list[dict[bytes, int]] = [{}]
        self._parents = [fuse.ROOT]
        # Objects' own times would cost a request each where a list does not tell them.
        self._listed_ns = time.time_ns()
        self._uid, self._gid = os.geteuid(), os.getegid()
        numbers = {"": fuse.ROOT}
        for item, path in entries:
            self._add(item, path, numbers)

    def lookup(self, folder: int, name: bytes) -> Node | None:
        """Give what has that name in a folder."""
        number = self._folder(folder).get(name)
        return None if number is None else self.node(number)

    def node(self, number: int) -> Node:
        """Give a file's or folder's status."""
        if number % 2:
            return Node(number, FOLDER_MODE, 0, self._listed_ns, self._uid, self._gid, links=2)
        return Node(number, FILE_MODE, self._item(number).size, self._listed_ns, self._uid, self._gid)

    def names(self, folder: int) -> Sequence[Name]:
        """Give a folder's entries as they were listed."""
        own = self._folder(folder)
        found = [Name(b".", folder, FOLDER_MODE), Name(b"..", self._parents[folder // 2], FOLDER_MODE)]
        found += [Name(name, number, FOLDER_MODE if number % 2 else FILE_MODE) for name, number in own.items()]
        return found

    def link(self, number: int) -> bytes:
        """Refuse: there are no links."""
        raise OSError(errno.EINVAL, f"node {number} is no link")

    def open(self, number: int) -> Opened:
        """Open an object."""
        return self._shelf.open(self._item(number))

    def forget(self, number: int, count: int) -> None:
        """Do nothing: numbers stay as they are."""

    def count(self) -> int:
        """Give the number of objects."""
        return len(self._items)

    def _item(self, number: int) -> Stored:
        size, _, rest = self._items[number // 2 - 1].partition(b" ")
        version, _, uri = rest.partition(b"\0")
        return Stored(os.fsdecode(uri), int(size), os.fsdecode(version))

    def _folder(self, number: int) -> dict[bytes, int]:
        return self._folders[number // 2]

    def _add(self, item: Stored, path: str, numbers: dict[str, int]) -> None:
        above, _, name = path.rpartition("/")
        folder = self._folder(self._folder_number(item, above, numbers))
        encoded = _encoded(item, name)
        number = folder.get(encoded)
        if number is not None and number % 2 == 0 and self._item(number).uri == item.uri:
            # A manifest may name an object twice; a folder cannot.
            return
        if number is not None:
            raise DataError(f"{item.uri}: two objects would both become {path!r}; rename one of them")
        self._items.append(os.fsencode(f"{item.size} {item.version}\0{item.uri}"))
        folder[encoded] = 2 * len(self._items)

    def _folder_number(self, item: Stored, path: str, numbers: dict[str, int]) -> int:
        """Give a folder's number; it and the folders above it are made if need be."""
        number = numbers.get(path)
        if number is not None:
            return number
        above, _, name = path.rpartition("/")
        parent = self._folder_number(item, above, numbers)
        encoded = _encoded(item, name)
        if encoded in self._folder(parent):
            raise DataError(f"{item.uri}: {path!r} would be a file and a folder; rename one of the objects")
        number = numbers[path] = self._folder(parent)[encoded] = 2 * len(self._folders) + 1
        self._folders.append({})
        self._parents.append(parent)
        return number


def mount(tree: Tree, place: Path, report: Callable[[str], None], ready: Callable[[], None]) -> None:
    """Mount ``tree`` at an empty folder and serve it until it is unmounted, on the threads of this process.

    ``ready`` is called once the mount is there; ``report`` gets a sentence for each thing that could not be read.
    Raise `DataError` when there is no mount to be had.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    device = mounts.attach(place)
    ready()
    Server(device, tree, report).serve()


def _encoded(item: Stored, name: str) -> bytes:
    if name in ("", ".", "..") or "\0" in name:
        raise DataError(f"{item.uri}: its name cannot be a file's path; rename the object")
    return os.fsencode(name)
