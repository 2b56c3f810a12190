"""Files that are replaced so often that they never rest: each is complete when its name is another file's."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

#: The most files that are open at once.
_MOST = 64


class ReplacedFiles:
    """The files below a directory that replaced others since the look before, open until the next look."""

    def __init__(self) -> None:
        self._inodes: dict[str, int] = {}
        self._open: dict[str, BinaryIO] = {}

    def look(self, path: str, inode: int, open_file: Callable[[], BinaryIO]) -> BinaryIO | None:
        """Return the file that had a name at the look before, if another one replaced it; its caller closes it."""
        file, before = self._open.pop(path, None), self._inodes.get(path, inode)
        self._inodes[path] = inode
        if before != inode and len(self._open) < _MOST:
            with suppress(OSError):
                self._open[path] = open_file()
        if file is None or _was_replaced(file, path):
            return file
        file.close()
        return None

    def keep(self, paths: Collection[str]) -> None:
        """Forget all files but these."""
        for path in self._inodes.keys() - paths:
            del self._inodes[path]
            if path in self._open:
                self._open.pop(path).close()


def _was_replaced(file: BinaryIO, path: str) -> bool:
    # A file that was renamed has its new name here. NFS renames an open file that is removed.
    name = Path(f"/proc/self/fd/{file.fileno()}").readlink().name
    return name == f"{Path(path).name} (deleted)" or name.startswith(".nfs")
