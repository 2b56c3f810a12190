"""File mode: download objects to files, in parallel chunks, each file verified before it is complete."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Callable, NamedTuple, cast

from scriptmode._core.text.messages import Problem, format_bytes
from scriptmode.errors import DataError
from scriptmode_local._data import file_uris
from scriptmode_local._data.file_copy import READ_BYTES, copy_descriptor
from scriptmode_local._data.file_store import open_unchanged, path_of, translated
from scriptmode_local._data.layout import Layout
from scriptmode_local._data.object_store import CHUNK_BYTES, StoredObject
from scriptmode_local._data.prefetch import ordered_prefetch
from scriptmode_local._data.stores import Stores

if TYPE_CHECKING:
    from scriptmode_local._data.object_store import Buffer
    from scriptmode_local._data.s3_store import S3Store

READ_ONLY = 0o444
REPORT_SECONDS = 0.5
#: Chunks that may be written before one that was listed earlier.
CHUNKS = 1024


@dataclass(frozen=True)
class StagingArea:
    """Where a machine's inputs are staged, and how its hosts see them.

    Attributes:
        folder: The directory, which no other agent uses.
        links_files: Whether those of ``file://`` URIs are linked, not copied.
        mount_obstacle: Why the hosts do not see mounts that the agent makes in their sandboxes; None where they do.
        mounts_file_systems: Whether the hosts mount the directories of file systems by themselves.
    """

    folder: Path
    links_files: bool = False
    mount_obstacle: Problem | None = None
    mounts_file_systems: bool = False


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
    done, reported = 0, time.monotonic()

    def report_progress() -> None:
        nonlocal reported
        if time.monotonic() - reported >= REPORT_SECONDS:
            report(done, total)
            reported = time.monotonic()

    write = partial(_write, stores or Stores(), folder)
    written = ordered_prefetch(_chunks_of(wanted, folder), write, budget=CHUNKS, waiting=report_progress)
    with closing(written):
        for size in written:
            done += size
            report_progress()
    report(total, total)
    return [name for _, name in wanted]


def link(entries: Iterable[tuple[StoredObject, str]], folder: Path) -> list[str]:
    """Create a symbolic link to each file by its name below ``folder``; return the names in order."""
    make_directory = cache(partial(Path.mkdir, parents=True, exist_ok=True))
    names = []
    for item, name in Layout().fill(entries):
        target = folder / name
        make_directory(target.parent)
        target.symlink_to(path_of(item))
        names.append(name)
    return names


def _check_space(items: Sequence[StoredObject], folder: Path) -> None:
    disk = os.statvfs(folder)
    block = disk.f_frsize
    needed = sum(-(-item.size // block) * block for item in items)
    free = disk.f_bavail * block
    if needed > free:
        raise DataError(
            f"{len(items):,} objects of {format_bytes(needed)} do not fit on the disk of {str(folder)!r}, which has "
            f"{format_bytes(free)} free",
            advice="free some space, set SCRIPTMODE_DATA_DIR to a directory on a larger disk, "
            "or use input mode Pipe or FastFile",
        )


@dataclass
class _File:
    """A file that is written in chunks, by several threads."""

    item: StoredObject
    path: Path
    #: The number of chunks that are not written yet.
    left: int
    changing: Lock = field(default_factory=Lock)


class _Chunk(NamedTuple):
    """A range of a file."""

    file: _File
    start: int
    end: int


def _chunks_of(wanted: Sequence[tuple[StoredObject, str]], folder: Path) -> Iterator[_Chunk]:
    created = {folder}
    for item, name in wanted:
        path = folder / name
        # The kernel copies a file as a whole.
        size = item.size if file_uris.is_file(item.uri) else CHUNK_BYTES
        starts = range(0, item.size, size) if item.size else range(1)
        if path.parent not in created:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _cannot_store(error, item, folder) from error
            created.add(path.parent)
        file = _File(item, path, len(starts))
        for start in starts:
            yield _Chunk(file, start, min(start + size, item.size))


def _write(stores: Stores, folder: Path, chunk: _Chunk) -> int:
    """Write a chunk to its file, which is complete and read-only after the last one; return the number of bytes."""
    try:
        descriptor = os.open(chunk.file.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            _fill(stores, chunk, descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _cannot_store(error, chunk.file.item, folder) from error
    return chunk.end - chunk.start


def _fill(stores: Stores, chunk: _Chunk, descriptor: int) -> None:
    file, start, end = chunk
    item = file.item
    if file_uris.is_file(item.uri):
        with open_unchanged(item) as source:
            copy_descriptor(source, descriptor, partial(translated, item.uri, path_of(item)))
    elif item.size:
        store = cast("S3Store", stores.store_of(item.uri))
        _download(store, item, descriptor, start, end)
        with file.changing:
            file.left -= 1
            if file.left:
                return

        def read_again() -> None:
            for start in range(0, item.size, CHUNK_BYTES):
                _download(store, item, descriptor, start, min(start + CHUNK_BYTES, item.size))

        store.check(item, lambda: _content(descriptor), read_again)
    os.fchmod(descriptor, READ_ONLY)


def _download(store: S3Store, item: StoredObject, descriptor: int, start: int, end: int) -> None:
    def write(offset: int, data: Buffer) -> None:
        left = memoryview(data)
        while left:
            written = os.pwrite(descriptor, left, offset)
            offset, left = offset + written, left[written:]

    # Each part is written when it has come: its memory is used again before it has left the processor's caches.
    store.read_unverified(item, start, end, write)


def _cannot_store(error: OSError, item: StoredObject, folder: Path) -> DataError:
    """Return the error of an object that cannot be written to a file, with what helps."""
    advice = "set SCRIPTMODE_DATA_DIR to a directory where the data fits"
    if error.errno == errno.ENAMETOOLONG:
        advice = "rename the object, or use input mode Pipe, which needs no files"
    elif error.errno == errno.ENOSPC:
        disk = os.statvfs(folder)
        left = f"{format_bytes(disk.f_bavail * disk.f_frsize)} and {disk.f_favail:,} inodes"
        advice = f"{left} are free; delete some files, or {advice}"
    elif error.errno not in (errno.EDQUOT, errno.EFBIG):
        advice = "check that directory's disk, or set SCRIPTMODE_DATA_DIR to another directory"
    return DataError(f"{item.uri}: it cannot be stored in {str(folder)!r}: {error.strerror or error}", advice=advice)


def _content(descriptor: int) -> Iterator[bytes]:
    start = 0
    while data := os.pread(descriptor, READ_BYTES, start):
        yield data
        start += len(data)
