"""The directory tree that a channel's objects are in: the same for copies and for mounts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from scriptmode.errors import DataError
from scriptmode_local._data.object_store import StoredObject

#: The number of the channel's own directory.
TOP = 1


class Layout:
    """A tree of objects by their paths. Directories have odd numbers and objects even ones, both in insertion order.

    Compact: a channel may have millions.
    """

    def __init__(self) -> None:
        #: One byte string each.
        self._items: list[bytes] = []
        self._directories: list[dict[bytes, int]] = [{}]
        self._parents = [TOP]

    def fill(self, entries: Iterable[tuple[StoredObject, str]]) -> Iterator[tuple[StoredObject, str]]:
        """Add objects with their paths and yield them; an object that was added with its path before is skipped.

        A manifest may name an object twice, and a directory cannot. Raises `DataError` naming an object whose path is
        that of another object or of a directory, or cannot be a path.
        """
        numbers = {"": TOP}
        for item, path in entries:
            if self._add(item, path, numbers):
                yield item, path

    def item(self, number: int) -> StoredObject:
        """Return an object."""
        size, _, rest = self._items[number // 2 - 1].partition(b" ")
        version, _, uri = rest.partition(b"\0")
        return StoredObject(os.fsdecode(uri), int(size), os.fsdecode(version))

    def directory(self, number: int) -> dict[bytes, int]:
        """Return the entries of a directory."""
        return self._directories[number // 2]

    def parent(self, number: int) -> int:
        """Return a directory's parent."""
        return self._parents[number // 2]

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._items)

    def _add(self, item: StoredObject, path: str, numbers: dict[str, int]) -> bool:
        above, _, name = path.rpartition("/")
        directory = self.directory(self._directory_number(item, above, numbers))
        encoded = _encoded(item, name)
        number = directory.get(encoded)
        if number is not None and number % 2 == 0 and self.item(number).uri == item.uri:
            return False
        if number is not None:
            raise DataError(f"{item.uri}: two objects would both become {path!r}", advice="rename one of them")
        self._items.append(os.fsencode(f"{item.size} {item.version}\0{item.uri}"))
        directory[encoded] = 2 * len(self._items)
        return True

    def _directory_number(self, item: StoredObject, path: str, numbers: dict[str, int]) -> int:
        """Return a directory's number; it and its parents are added if they are missing."""
        number = numbers.get(path)
        if number is not None:
            return number
        above, _, name = path.rpartition("/")
        parent = self._directory_number(item, above, numbers)
        encoded = _encoded(item, name)
        if encoded in self.directory(parent):
            raise DataError(f"{item.uri}: {path!r} would be a file and a directory", advice="rename one of the objects")
        number = numbers[path] = self.directory(parent)[encoded] = 2 * len(self._directories) + 1
        self._directories.append({})
        self._parents.append(parent)
        return number


def _encoded(item: StoredObject, name: str) -> bytes:
    if name in ("", ".", "..") or "\0" in name:
        raise DataError(f"{item.uri}: its name cannot be a file's path", advice="rename the object")
    return os.fsencode(name)
