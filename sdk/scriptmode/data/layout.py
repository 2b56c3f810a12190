"""Which object becomes which file of a channel's folder: the one rule for copies and for mounts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scriptmode.data.object_store import StoredObject
from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The folder itself.
TOP = 1


class Layout:
    """Objects by their paths. Folders have odd numbers and objects even ones, both in the order they came.

    Small: a channel may have millions.
    """

    def __init__(self) -> None:
        #: In one piece each.
        self._items: list[bytes] = []
        self._folders: list[dict[bytes, int]] = [{}]
        self._parents = [TOP]

    def fill(self, entries: Iterable[tuple[StoredObject, str]]) -> Iterator[tuple[StoredObject, str]]:
        """Take objects with their paths and yield them; one that comes again under its path is left out.

        A manifest may name an object twice, and a folder cannot. Raises `DataError` naming the object whose path
        another one has, or is a folder, or cannot be a path.
        """
        numbers = {"": TOP}
        for item, path in entries:
            if self._add(item, path, numbers):
                yield item, path

    def item(self, number: int) -> StoredObject:
        """Give an object."""
        size, _, rest = self._items[number // 2 - 1].partition(b" ")
        version, _, uri = rest.partition(b"\0")
        return StoredObject(os.fsdecode(uri), int(size), os.fsdecode(version))

    def folder(self, number: int) -> dict[bytes, int]:
        """Give what is in a folder."""
        return self._folders[number // 2]

    def parent(self, number: int) -> int:
        """Give the folder that a folder is in."""
        return self._parents[number // 2]

    def __len__(self) -> int:
        """Give the number of objects."""
        return len(self._items)

    def _add(self, item: StoredObject, path: str, numbers: dict[str, int]) -> bool:
        above, _, name = path.rpartition("/")
        folder = self.folder(self._folder_number(item, above, numbers))
        encoded = _encoded(item, name)
        number = folder.get(encoded)
        if number is not None and number % 2 == 0 and self.item(number).uri == item.uri:
            return False
        if number is not None:
            raise DataError(f"{item.uri}: two objects would both become {path!r}; rename one of them")
        self._items.append(os.fsencode(f"{item.size} {item.version}\0{item.uri}"))
        folder[encoded] = 2 * len(self._items)
        return True

    def _folder_number(self, item: StoredObject, path: str, numbers: dict[str, int]) -> int:
        """Give a folder's number; it and the folders above it are made if need be."""
        number = numbers.get(path)
        if number is not None:
            return number
        above, _, name = path.rpartition("/")
        parent = self._folder_number(item, above, numbers)
        encoded = _encoded(item, name)
        if encoded in self.folder(parent):
            raise DataError(f"{item.uri}: {path!r} would be a file and a folder; rename one of the objects")
        number = numbers[path] = self.folder(parent)[encoded] = 2 * len(self._folders) + 1
        self._folders.append({})
        self._parents.append(parent)
        return number


def _encoded(item: StoredObject, name: str) -> bytes:
    if name in ("", ".", "..") or "\0" in name:
        raise DataError(f"{item.uri}: its name cannot be a file's path; rename the object")
    return os.fsencode(name)
