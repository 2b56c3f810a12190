"""File mode: download objects to files, in parallel chunks, each file verified before it is complete."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Callable, cast

from scriptmode.data import file_uris
from scriptmode.data.file_copy import READ_BYTES, copy_descriptor
from scriptmode.data.file_store import open_unchanged, path_of, translated
from scriptmode.data.layout import Layout
from scriptmode.data.object_store import CHUNK_BYTES
from scriptmode.data.prefetch import share_arena
from scriptmode.data.stores import Stores
from scriptmode.errors import DataError, PlatformError
from scriptmode.messages import format_bytes

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from scriptmode.data.object_store import StoredObject
    from scriptmode.data.s3_store import S3Store

READ_ONLY = 0o444
WORKERS = 16
REPORT_SECONDS = 0.5


def fetch(
    entries: Iterable[tuple[StoredObject, str]],
    folder: Path,
    report: Callable[[int, int], None],
    *,
    stores: Stores | None = None,
) -> list[str]:
    """Write each object to the file of its name below ``folder``; return the names in order.

    The files are read-only. ``report`` gets the bytes written and those of all, twice a second and at the end, in the
    caller's thread. Raises `DataError`, before anything is downloaded where the disk is too small.
    """
    wanted = list(Layout().fill(entries))
    folder.mkdir(parents=True, exist_ok=True)
    total = sum(item.size for item, _ in wanted)
    _check_space([item for item, _ in wanted], folder)
    downloads = _Downloads(wanted, folder, stores or Stores())
    share_arena()
    threads = [Thread(target=downloads.run, name=f"fetch-{number}", daemon=True) for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    try:
        while not downloads.ended.wait(REPORT_SECONDS):
            report(downloads.done, total)
    finally:
        downloads.stop()
        for thread in threads:
            thread.join()
        downloads.close()
    if downloads.error is not None:
        raise downloads.error
    report(total, total)
    return [name for _, name in wanted]


def _check_space(items: Sequence[StoredObject], folder: Path) -> None:
    disk = os.statvfs(folder)
    block = disk.f_frsize
    needed = sum(-(-item.size // block) * block for item in items)
    free = disk.f_bavail * block
    if needed > free and not _share_blocks(items, folder):
        raise DataError(
            f"{len(items):,} objects of {format_bytes(needed)} do not fit on the disk of {str(folder)!r}, which has "
            f"{format_bytes(free)} free; free some space, set SCRIPTMODE_DATA_DIR to a folder on a larger disk, "
            "or use input mode Pipe or FastFile"
        )


def _share_blocks(items: Sequence[StoredObject], folder: Path) -> bool:
    """Return whether all are files that the file system of ``folder`` can copy without using space."""
    import fcntl

    if not all(file_uris.is_file(item.uri) for item in items):
        return False
    clone = 0x40049409  # FICLONE, linux/fs.h
    probe = folder / ".probe"
    # A file's version begins with the device of its file system.
    one_of_each = {item.version.partition("-")[0]: item for item in items}
    try:
        for item in one_of_each.values():
            with Path(path_of(item)).open("rb") as source, probe.open("wb") as target:
                fcntl.ioctl(target.fileno(), clone, source.fileno())
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True


@dataclass
class _File:
    """A file that is being written; ``left`` is the number of its chunks that are not written yet."""

    item: StoredObject
    descriptor: int
    left: int


class _Downloads:
    """What the threads share: the chunks that are left, the bytes that are written, and the first error."""

    def __init__(self, wanted: Sequence[tuple[StoredObject, str]], folder: Path, stores: Stores) -> None:
        self._stores = stores
        self._folder = folder
        self._chunks = _chunks_of(wanted, folder)
        self._open: set[int] = set()
        self._changing = Lock()
        self._running = WORKERS
        self.ended = Event()
        self.done = 0
        self.error: PlatformError | None = None

    def run(self) -> None:
        """Download one chunk after another until there are no more or one failed."""
        try:
            while (chunk := self._next_chunk()) is not None:
                self._fetch(*chunk)
        except PlatformError as error:
            self._fail(error)
        except BaseException as error:
            self._fail(DataError(f"the data cannot be downloaded: {error!r}; start the job again"), error)
            raise
        finally:
            with self._changing:
                self._running -= 1
                if not self._running:
                    self.ended.set()

    def stop(self) -> None:
        """Start no further chunk."""
        with self._changing:
            self._chunks.close()

    def _fail(self, error: PlatformError, cause: BaseException | None = None) -> None:
        if cause is not None:
            error.__cause__ = cause
        with self._changing:
            self.error = self.error or error
            self._chunks.close()

    def close(self) -> None:
        """Close the files that are not complete."""
        for descriptor in self._open:
            os.close(descriptor)

    def _next_chunk(self) -> tuple[_File, int, int] | None:
        with self._changing:
            chunk = next(self._chunks, None)
            if chunk is not None:
                self._open.add(chunk[0].descriptor)
            return chunk

    def _fetch(self, file: _File, start: int, end: int) -> None:
        try:
            self._fill(file, start, end)
        except OSError as error:
            raise _cannot_store(error, file.item, self._folder) from error

    def _fill(self, file: _File, start: int, end: int) -> None:
        if file_uris.is_file(file.item.uri):
            _copy(file)
        elif end > start:
            self._read(file, start, end)
        with self._changing:
            self.done += end - start
            file.left -= 1
            if file.left:
                return
        if file.item.size and not file_uris.is_file(file.item.uri):
            self._s3(file.item).check(file.item, lambda: _content(file.descriptor), partial(self._read_again, file))
        os.fchmod(file.descriptor, READ_ONLY)
        with self._changing:
            self._open.discard(file.descriptor)
        os.close(file.descriptor)

    def _read(self, file: _File, start: int, end: int) -> None:
        for buffer in self._s3(file.item).read_unverified(file.item, start, end):
            left = memoryview(buffer)
            while left:
                written = os.pwrite(file.descriptor, left, start)
                start, left = start + written, left[written:]

    def _read_again(self, file: _File) -> None:
        for start in range(0, file.item.size, CHUNK_BYTES):
            self._read(file, start, min(start + CHUNK_BYTES, file.item.size))

    def _s3(self, item: StoredObject) -> S3Store:
        return cast("S3Store", self._stores.store_of(item.uri))


def _chunks_of(
    wanted: Sequence[tuple[StoredObject, str]], folder: Path
) -> Generator[tuple[_File, int, int], None, None]:
    """Create the files one after another and yield their chunks: file, first byte, end."""
    created = {folder}
    for item, name in wanted:
        path = folder / name
        # The kernel copies a file as a whole.
        size = item.size if file_uris.is_file(item.uri) else CHUNK_BYTES
        starts = range(0, item.size, size) if item.size else range(1)
        try:
            if path.parent not in created:
                path.parent.mkdir(parents=True, exist_ok=True)
                created.add(path.parent)
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _cannot_store(error, item, folder) from error
        file = _File(item, descriptor, len(starts))
        for start in starts:
            yield file, start, min(start + size, item.size)


def _cannot_store(error: OSError, item: StoredObject, folder: Path) -> DataError:
    """Return the error of an object that cannot be written to a file, with what helps."""
    advice = "set SCRIPTMODE_DATA_DIR to a folder where the data fits"
    if error.errno == errno.ENAMETOOLONG:
        advice = "rename the object, or use input mode Pipe, which needs no files"
    elif error.errno == errno.ENOSPC:
        disk = os.statvfs(folder)
        advice = f"{format_bytes(disk.f_bavail * disk.f_frsize)} are free; free some space, or {advice}"
    elif error.errno not in (errno.EDQUOT, errno.EFBIG):
        advice = "check that folder's disk, or set SCRIPTMODE_DATA_DIR to another folder"
    return DataError(f"{item.uri}: it cannot be stored in {str(folder)!r}: {error.strerror or error}; {advice}")


def _copy(file: _File) -> None:
    """Copy a file's bytes; file systems that can share blocks do."""
    with open_unchanged(file.item) as source:
        copy_descriptor(source, file.descriptor, partial(_read, file.item, source))


def _read(item: StoredObject, source: int, start: int) -> bytes:
    with translated(item.uri, path_of(item)):
        return os.pread(source, READ_BYTES, start)


def _content(descriptor: int) -> Iterator[bytes]:
    start = 0
    while data := os.pread(descriptor, READ_BYTES, start):
        yield data
        start += len(data)
