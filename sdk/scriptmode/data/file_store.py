"""Files and folders of this machine as a store of objects, named by ``file://`` URIs."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING

from scriptmode.data import file_uris
from scriptmode.data.buffers import Buffers
from scriptmode.data.object_store import StoredObject
from scriptmode.errors import DataAccessError, DataError, DataNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator


#: So many files are what they were when the first of them was listed, as in a page of S3's list.
PAGE = 1000
_LEAVE_ALONE = "let nothing change a job's input until the job has ended"


class FileStore:
    """An `ObjectStore` of files.

    A URI that `StoredObject` holds names its file as it is written; `file_uris` parses those that users write.

    A file's version is its identity: device, inode, size and time of change.
    """

    def __init__(self) -> None:
        self._buffers = Buffers()

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the file of that URI, or every file below the folder, in the order S3 would list them, links followed.

        A folder that two names lead to is listed by both; only one that leads back to where it lies in is passed over.
        """
        path = _path(prefix)
        with translated(prefix, path):
            is_folder = S_ISDIR(Path(path).stat().st_mode)
        if is_folder:
            yield from _below(path)
        else:
            yield _stored(path)[1]

    def find(self, uri: str) -> StoredObject:
        """Give the file of that URI; raise `DataNotFoundError` where there is none, or a folder."""
        path = _path(uri)
        mode, found = _stored(path)
        if S_ISDIR(mode):
            raise DataNotFoundError(f"{uri}: {path!r} is a folder, not a file; name a file")
        return found

    def read(self, item: StoredObject, start: int, end: int) -> memoryview:
        """Give all bytes from ``start`` up to ``end``; raise `DataError` when the file is another by now."""
        with translated(item.uri, path_of(item)), open_unchanged(item) as file:
            content, done = self._buffers.of(end - start), 0
            while done < end - start:
                come = os.preadv(file, (content[done:],), start + done)
                if not come:
                    break
                done += come
        if done < end - start:
            raise DataError(f"{item.uri}: the file ended at byte {start + done} while the job read it; {_LEAVE_ALONE}")
        return content


def path_of(item: StoredObject) -> str:
    """Give the path of a file that was listed."""
    return item.uri[len(file_uris.SCHEME) :]


@contextmanager
def open_unchanged(item: StoredObject) -> Iterator[int]:
    """Give a file descriptor to read ``item``; raise `DataError` if the file was another after the reading."""
    path = path_of(item)
    with translated(item.uri, path):
        # What is no file was replaced by something whose opening might wait for ever.
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError as error:
            raise DataNotFoundError(
                f"{item.uri}: the file was deleted while the job read its channel; {_LEAVE_ALONE}"
            ) from error
    try:
        yield file
        if item.version not in ("", _identity(os.fstat(file))):
            raise DataError(f"{item.uri}: the file was changed while the job read it; {_LEAVE_ALONE}")
    finally:
        os.close(file)


def _path(uri: str) -> str:
    try:
        return str(file_uris.file_path(uri))
    except ValueError as error:
        raise DataError(str(error)) from error


def _below(folder: str) -> Iterator[StoredObject]:
    """Yield the files below a folder one folder at a time, so that memory holds the names of one folder a level."""
    levels = [(_folder(folder), _entries(folder))]
    while levels:
        found = next(levels[-1][1], None)
        if found is None:
            levels.pop()
        elif isinstance(found, StoredObject):
            yield found
        # One that leads back to where it lies is passed over.
        elif (identity := _folder(found)) not in [above for above, _ in levels]:
            levels.append((identity, _entries(found)))


def _folder(path: str) -> tuple[int, int]:
    """Return what tells a folder from others, whatever links lead to it."""
    with translated(f"{file_uris.SCHEME}{path}", path):
        status = Path(path).stat()
    return status.st_dev, status.st_ino


def _entries(folder: str) -> Iterator[StoredObject | str]:
    """Yield a folder's files and the paths of its folders, in the order S3 would list what is in them."""
    with translated(f"{file_uris.SCHEME}{folder}", folder), os.scandir(folder) as entries:
        # S3 compares whole keys: a folder's files stand where its name with a slash does.
        found = sorted((os.fsencode(entry.name + "/" * entry.is_dir()), _counts(entry)) for entry in entries)
    for start in range(0, len(found), PAGE):
        page = [(f"{folder.rstrip('/')}/{os.fsdecode(name)}", counts) for name, counts in found[start : start + PAGE]]
        files = {path: _stored(path)[1] for path, counts in page if counts and not path.endswith("/")}
        for path, _ in page:
            if path.endswith("/"):
                yield path[:-1]
            elif path in files:
                yield files[path]


def _counts(entry: os.DirEntry[str]) -> bool:
    """Say whether something is data: a file, or a link that leads to one or (an error when it is read) nowhere."""
    return entry.is_file() or entry.is_symlink()


def _stored(path: str) -> tuple[int, StoredObject]:
    """Give what something is, and the object it is if it is a file."""
    uri = f"{file_uris.SCHEME}{path}"
    with translated(uri, path):
        status = Path(path).stat()
    if not (S_ISREG(status.st_mode) or S_ISDIR(status.st_mode)):
        raise DataError(f"{uri}: {path!r} is neither a file nor a folder; take it out of the input")
    return status.st_mode, StoredObject(uri, status.st_size, _identity(status))


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev}-{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"


@contextmanager
def translated(uri: str, path: str) -> Iterator[None]:
    """Say of a file what cannot be read and why; raises `DataError` and its kinds for ``OSError``."""
    try:
        yield
    except FileNotFoundError as error:
        is_link = Path(path).is_symlink()
        missing = (
            f"the link leads to {str(Path(path).readlink())!r}, which is not there"
            if is_link
            else "there is no such file"
        )
        raise DataNotFoundError(f"{uri}: {missing}; correct the URI") from error
    except PermissionError as error:
        raise DataAccessError(
            f"{uri}: access denied ({error.strerror}); the job's user must be able to read it"
        ) from error
    except OSError as error:
        raise DataError(f"{uri}: it cannot be read: {error}; see that its disk is well") from error
