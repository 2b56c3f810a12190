"""A FastFile mount by mfusepy, as fast as it can: the kernel caches everything, and reads have threads of their own."""

from __future__ import annotations

import errno
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import mfusepy

from scriptmode.data import fast_file, mounts

if TYPE_CHECKING:
    from pathlib import Path

    from scriptmode.data.fuse_protocol import Node

READS = 64
FOREVER_SECONDS = 10.0 * 365 * 24 * 3600


class Operations(mfusepy.Operations):
    """The calls of libfuse's high-level interface, answered by an `ObjectTree`, which one thread at a time may use."""

    use_ns = True
    flag_nopath = flag_nullpath_ok = True

    def __init__(self, tree: fast_file.ObjectTree) -> None:
        self._tree = tree
        self._mutex = threading.Lock()
        self._files: dict[int, Any] = {}
        self._handles = 0

    def init_with_config(self, conn_info: Any, config_3: Any) -> None:
        config_3.use_ino = config_3.kernel_cache = 1
        config_3.entry_timeout = config_3.attr_timeout = config_3.negative_timeout = FOREVER_SECONDS
        conn_info.max_background = conn_info.congestion_threshold = READS

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        del fh
        node = self._node(path)
        return {
            "st_ino": node.number, "st_mode": node.mode, "st_size": node.size, "st_nlink": node.links,
            "st_uid": node.uid, "st_gid": node.gid, "st_mtime": node.modified_ns,
        }  # fmt: skip

    def opendir(self, path: str) -> int:
        return self._node(path).number

    def readdir(self, path: str, fh: int) -> list[Any]:
        del path
        found = self._tree.names(fh)
        return [(os.fsdecode(name.name), {"st_ino": name.number, "st_mode": name.mode}, 0) for name in found]

    def open(self, path: str, flags: int) -> int:
        del flags
        number = self._node(path).number
        with self._mutex:
            self._handles += 1
            self._files[self._handles] = self._tree.open(number)
            return self._handles

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        del path
        ready, answers = threading.Event(), []

        def answer(content: Any) -> None:
            answers.append(content)
            ready.set()

        with self._mutex:
            self._files[fh].read(offset, size, answer)
        ready.wait()
        if isinstance(answers[0], BaseException):
            raise mfusepy.FuseOSError(errno.EIO)
        return b"".join(answers[0])

    def release(self, path: str, fh: int) -> int:
        del path
        with self._mutex:
            self._files.pop(fh).close()
        return 0

    def _node(self, path: str) -> Node:
        node = self._tree.node(1)
        for name in filter(None, os.fsencode(path).split(b"/")):
            found = self._tree.lookup(node.number, name)
            if found is None:
                raise mfusepy.FuseOSError(errno.ENOENT)
            node = found
        return node


def mount(tree: fast_file.ObjectTree, point: Path) -> None:
    """Serve a tree until its mount is removed."""
    sys.setswitchinterval(fast_file.SWITCH_SECONDS)
    device = mounts.attach(point)
    mfusepy.FUSE(Operations(tree), f"/dev/fd/{device}", foreground=True, max_idle_threads=READS, max_threads=READS)
