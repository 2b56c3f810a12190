"""Files and directories of this machine as a store of objects, named by ``file://`` URIs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from scriptmode._core.machine import drafts
from scriptmode.errors import DataAccessError, DataError, DataNotFoundError
from scriptmode_local._data import file_uris
from scriptmode_local._data.object_store import Buffer, StoredObject

#: Files whose status is read together, as in a page of an S3 listing.
PAGE = 1000
_LEAVE_ALONE = "do not change a job's input until the job has ended"


class FileStore:
    """An `ObjectStore` of files.

    A URI that `StoredObject` holds names its file as it is written; `file_uris` parses those that users write.

    A file's version is its identity: device, inode, size and time of change.
    """

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the file of that URI, or every file below the directory, in the order of an S3 listing, links followed.

        A directory that two names lead to is listed by both; only a link to one of its own parents is skipped.
        """
        path = str(file_uris.file_path(prefix))
        with translated(prefix, path):
            is_folder = S_ISDIR(Path(path).stat().st_mode)
        if is_folder:
            yield from _below(path)
        else:
            yield _stored(path)[1]

    def find(self, uri: str) -> StoredObject:
        """Return the file of that URI; raise `DataNotFoundError` where there is none, or a directory."""
        path = str(file_uris.file_path(uri))
        mode, item = _stored(path)
        if S_ISDIR(mode):
            raise DataNotFoundError(f"{uri}: {path!r} is a directory, not a file", "name a file, such as a manifest")
        return item

    def read(self, item: StoredObject, start: int, end: int) -> Sequence[Buffer]:
        """Return all bytes from ``start`` up to ``end``; raise `DataError` where the file was changed meanwhile."""
        content: list[Buffer] = []
        with translated(item.uri, path_of(item)), open_unchanged(item) as file:
            # Nearly always all of them come at once.
            while start < end and (more := os.pread(file, end - start, start)):
                content.append(more)
                start += len(more)
        if start < end:
            raise DataError(f"{item.uri}: the file ended at byte {start} while the job read it", advice=_LEAVE_ALONE)
        return content


def path_of(item: StoredObject) -> str:
    """Return the path of a file that was listed."""
    return item.uri[len(file_uris.SCHEME) :]


@contextmanager
def open_unchanged(item: StoredObject) -> Iterator[int]:
    """Open ``item`` for reading; raise `DataError` afterwards if the file was changed."""
    path = path_of(item)
    with translated(item.uri, path):
        # Without blocking: a FIFO that replaced the file would wait for its writer.
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError as error:
            what = f"{item.uri}: the file was deleted while the job read its channel"
            raise DataNotFoundError(what, _LEAVE_ALONE) from error
    try:
        yield file
        if item.version not in ("", _identity(os.fstat(file))):
            raise DataError(f"{item.uri}: the file was changed while the job read it", advice=_LEAVE_ALONE)
    finally:
        os.close(file)


def _below(folder: str) -> Iterator[StoredObject]:
    """Yield the files below a directory, with the names of only one directory a level in memory."""
    levels = [(_folder(folder), _entries(folder))]
    while levels:
        entry = next(levels[-1][1], None)
        if entry is None:
            levels.pop()
        elif isinstance(entry, StoredObject):
            yield entry
        # A draft is skipped, and a link to one of its own parents.
        elif f"/{drafts.PREFIX}" not in entry[len(folder) :] and (identity := _folder(entry)) not in dict(levels):
            levels.append((identity, _entries(entry)))


def _folder(path: str) -> tuple[int, int]:
    """Return a directory's device and inode, whatever links lead to it."""
    with translated(f"{file_uris.SCHEME}{path}", path):
        status = Path(path).stat()
    return status.st_dev, status.st_ino


def _entries(folder: str) -> Iterator[StoredObject | str]:
    """Yield a directory's files and the paths of its directories, in the order of an S3 listing."""
    with translated(f"{file_uris.SCHEME}{folder}", folder), os.scandir(folder) as entries:
        # S3 compares whole keys: a directory's files are where its name with a slash is. Data is a file, or a link to
        # one or (an error when it is read) to nothing.
        names = sorted(
            (os.fsencode(entry.name + "/" * entry.is_dir()), entry.is_file() or entry.is_symlink()) for entry in entries
        )
    for start in range(0, len(names), PAGE):
        page = [(f"{folder.rstrip('/')}/{os.fsdecode(name)}", is_data) for name, is_data in names[start : start + PAGE]]
        files = {path: _stored(path)[1] for path, is_data in page if is_data and not path.endswith("/")}
        for path, _ in page:
            if path.endswith("/"):
                yield path[:-1]
            elif path in files:
                yield files[path]


def _stored(path: str) -> tuple[int, StoredObject]:
    """Return the mode of a path, and its object if it is a file."""
    uri = f"{file_uris.SCHEME}{path}"
    with translated(uri, path):
        status = Path(path).stat()
    if not (S_ISREG(status.st_mode) or S_ISDIR(status.st_mode)):
        raise DataError(f"{uri}: {path!r} is neither a file nor a directory", advice="remove it from the input")
    return status.st_mode, StoredObject(uri, status.st_size, _identity(status))


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev}-{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"


@contextmanager
def translated(uri: str, path: str) -> Iterator[None]:
    """Raise `DataError` and its subclasses for ``OSError``: which file cannot be read, and why."""
    try:
        yield
    except FileNotFoundError as error:
        missing = "there is no such file"
        if Path(path).is_symlink():
            missing = f"the link leads to {str(Path(path).readlink())!r}, which does not exist"
        raise DataNotFoundError(f"{uri}: {missing}", advice="correct the URI") from error
    except PermissionError as error:
        what = f"{uri}: access denied ({error.strerror})"
        raise DataAccessError(what, "the job's user must be able to read it") from error
    except OSError as error:
        raise DataError(f"{uri}: it cannot be read: {error}", advice="check its disk") from error
