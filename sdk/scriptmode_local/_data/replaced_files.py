"""Files that are replaced so often that they never rest: each is complete when its name is another file's."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO


class ReplacedFiles:
    """The files below a directory that replaced others since the look before, open until the next look.

    Those on NFS are not: an open file that is removed stays in its directory there, which a script cannot remove then.

    Args:
        most: The most files that are open at once.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._inodes: dict[str, int] = {}
        self._open: dict[str, BinaryIO] = {}

    def look(self, path: str, inode: int, open_file: Callable[[], BinaryIO]) -> BinaryIO | None:
        """Return the file that had a name at the look before, if another one replaced it; its caller closes it."""
        file, before = self._open.pop(path, None), self._inodes.get(path, inode)
        self._inodes[path] = inode
        if before != inode and len(self._open) < self._most:
            with suppress(OSError):
                opened = open_file()
                if _is_on_nfs(os.fstat(opened.fileno()).st_dev):
                    opened.close()
                else:
                    self._open[path] = opened
        # A file that was renamed has its new name here.
        if file is None or Path(f"/proc/self/fd/{file.fileno()}").readlink().name == f"{Path(path).name} (deleted)":
            return file
        file.close()
        return None

    def keep(self, paths: Collection[str]) -> None:
        """Forget all files but these."""
        for path in self._inodes.keys() - paths:
            del self._inodes[path]
            if path in self._open:
                self._open.pop(path).close()


@cache
def _is_on_nfs(device: int) -> bool:
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines())
    return any(fields[2] == number and fields[fields.index("-") + 1].startswith("nfs") for fields in mounts)
