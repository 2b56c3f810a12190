"""Open the store of a URI: files or S3."""

from __future__ import annotations

from contextlib import suppress
from ctypes import CDLL
from threading import Lock
from typing import TYPE_CHECKING, cast

from scriptmode.errors import PlatformError
from scriptmode_local._data import file_uris

if TYPE_CHECKING:
    from scriptmode_local._data.object_store import ObjectStore
    from scriptmode_local._data.s3_store import S3Store


class Stores:
    """The stores of one process, each opened with its first URI; safe to share between threads.

    A store keeps connections: after a fork the child opens its own. One that was only prepared has none yet.
    """

    def __init__(self) -> None:
        _share_arena()
        self._opened: dict[bool, ObjectStore] = {}
        self._opening = Lock()

    def store_of(self, uri: str) -> ObjectStore:
        """Return the store of a ``file://`` or ``s3://`` URI."""
        is_file = file_uris.is_file(uri)
        with self._opening:
            if is_file not in self._opened:
                # Imported on use: a job without S3 loads no S3 client.
                if is_file:
                    from scriptmode_local._data.file_store import FileStore

                    self._opened[is_file] = FileStore()
                else:
                    from scriptmode_local._data.s3_store import S3Store

                    self._opened[is_file] = S3Store()
            return self._opened[is_file]

    def prepare(self, uri: str) -> None:
        """Load the client of a URI's store for children that are forked afterwards; they raise its errors."""
        if not file_uris.is_file(uri):
            with suppress(PlatformError):
                cast("S3Store", self.store_of(uri)).prepare(uri)


def _share_arena() -> None:
    """Allocate in all threads from one arena of glibc, so that one reuses what another has freed.

    With an arena for each thread 128 MiB of chunks took up to 400 MiB, and as much CPU time.
    """
    m_arena_max = -8  # malloc.h
    # Other C libraries have no such function.
    with suppress(AttributeError):
        CDLL(None).mallopt(m_arena_max, 1)
