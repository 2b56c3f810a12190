"""The bucket of sessions without AWS credentials: a directory of this machine that is read and written like S3.

`LocalBucket` has the methods of `scriptmode._core.aws.s3.S3`, for the bucket's URIs and for ``file://`` URIs.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from scriptmode._core.aws.s3_uris import LOCAL_BUCKET_URI, is_in_local_bucket
from scriptmode._core.machine import drafts
from scriptmode._core.machine.data_dir import default_data_dir, make_private
from scriptmode.errors import DataError, DataNotFoundError
from scriptmode_runtime._files import beneath, directory_tree

_DIRECTORY = "bucket"
_FILE_SCHEME = "file://"


def bucket_folder() -> Path:
    """Return the bucket's directory below the data directory; raise `DataError` where that cannot be found."""
    return default_data_dir() / _DIRECTORY


def to_file_uri(uri: str) -> str:
    """Return the ``file://`` URI of an object of the bucket."""
    _, root, key = _split(uri)
    return f"{_FILE_SCHEME}{root / key}"


def write_files(uri: str, names: Mapping[str, str], folder: Path, write: Callable[[str, Path], object]) -> list[Path]:
    """Write the objects of ``names``, their names below ``folder`` by URI, and return the files.

    An older file stays until the new one is complete. Raises `DataNotFoundError` without any: ``uri`` is what the
    caller was asked for.
    """
    if not names:
        raise DataNotFoundError(f"{uri}: there is no such object", "correct the URI")
    source, path = uri, folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        drafts.remove_orphans(folder)
        with drafts.new_directory(folder) as directory:
            for source, name in names.items():
                path = folder / beneath.checked(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                write(source, directory / "object")
                (directory / "object").replace(path)
    except OSError as error:
        what = f"{source} cannot be stored as {str(path)!r}: {error}"
        raise DataError(what, "name another directory, or rename the object") from error
    return [folder / name for name in names.values()]


class LocalBucket:
    """Files of this machine as objects: the bucket's, and those of ``file://`` URIs.

    A key is the path below the directory, so it cannot be both a file's and a directory's.
    """

    def uris(self, prefix: str) -> list[str]:
        """Return the URIs of all objects that begin with the URI ``prefix``, in the order of their keys."""
        root_uri, root, key = _split(prefix)
        with _reading(prefix):
            below = key.rpartition("/")[0]
            keys = [f"{below}/{name}".lstrip("/") for name in _files_below(root / below)]
        return sorted(f"{root_uri}{name}" for name in keys if name.startswith(key))

    def read_bytes(self, uri: str) -> bytes:
        """Return an object's bytes."""
        with _reading(uri), _opened(uri) as reader:
            return reader.read()

    def fetch(self, uri: str, folder: Path) -> list[Path]:
        """Copy the object of that key into ``folder``, or else all objects below it; return the files written."""
        _, root, key = _split(uri)
        with _reading(uri):
            names = {f"{uri.rstrip('/')}/{name}": name for name in sorted(_files_below(root / key))}
            names = {uri: Path(key).name} if (root / key).is_file() else names

        def copy(source: str, path: Path) -> None:
            with ExitStack() as stack:
                with _reading(source):
                    reader = stack.enter_context(_opened(source))
                shutil.copyfileobj(reader, stack.enter_context(path.open("wb")))

        return write_files(uri, names, folder, copy)

    def upload_file(
        self,
        path: Path,
        uri: str,
        extra: Mapping[str, object] | None = None,  # noqa: ARG002 - S3's
        callback: Callable[[int], object] | None = None,
    ) -> None:
        """Store a file's bytes at ``uri``; ``extra`` are settings of S3, which a directory does not have.

        ``callback`` is called with the number of bytes.
        """
        with _writing(uri), path.open("rb") as reader:
            _store(uri, reader)
        if callback is not None:
            callback(path.stat().st_size)

    def upload_bytes(self, content: bytes, uri: str, *, kms_key: str | None = None) -> None:  # noqa: ARG002 - S3's
        """Store bytes at ``uri``; a directory has no ``kms_key``."""
        with _writing(uri):
            _store(uri, io.BytesIO(content))


def _split(uri: str) -> tuple[str, Path, str]:
    """Return the URI and the path of the trusted directory that has a URI's object, and the object's key in it."""
    if is_in_local_bucket(uri):
        root_uri, root, key = f"{LOCAL_BUCKET_URI}/", bucket_folder(), uri[len(LOCAL_BUCKET_URI) :].lstrip("/")
    elif (path := uri[len(_FILE_SCHEME) :]).startswith("/"):
        parent, _, key = path.rstrip("/").rpartition("/")
        root_uri, root = f"{_FILE_SCHEME}{parent}/", Path(f"{parent}/")
    else:
        raise DataError(f"{uri!r} has no absolute path", f"write {_FILE_SCHEME}/ and the path from the root")
    try:
        return root_uri, root, beneath.checked(key) + ("/" if key.endswith("/") and key.strip("/") else "")
    except beneath.EscapeError as error:
        raise DataError(f"{uri}: the key leads out of the bucket's directory", "leave '..' out") from error


def _store(uri: str, content: BinaryIO) -> None:
    """Write an object. A link that leads out of the directory, which a container may have made, is an ``OSError``."""
    _, root, key = _split(uri)
    if not key or key.endswith("/"):
        raise DataError(f"{uri}: this is not the key of an object", "end the URI with the object's name")
    if is_in_local_bucket(uri):
        make_private(root, default_data_dir())
    else:
        root.mkdir(parents=True, exist_ok=True)
    # A listing of the bucket, and a job's channel of it, must not have the incomplete file.
    beside = root.parent if is_in_local_bucket(uri) else root
    drafts.remove_orphans(beside)
    with drafts.new_directory(beside) as draft, beneath.Directory(root) as directory:
        with (draft / "object").open("xb") as writer:
            shutil.copyfileobj(content, writer)
        for parent in reversed([*PurePosixPath(key).parents][:-1]):
            with directory.at(str(parent)) as at, suppress(FileExistsError):
                os.mkdir(at.name, dir_fd=at.dir_fd)
        with directory.at(key) as at:
            os.replace(draft / "object", at.name, dst_dir_fd=at.dir_fd)


def _files_below(folder: Path) -> list[str]:
    """Return the relative paths of the regular files below a directory; none where it does not exist."""
    if not folder.is_dir():
        return []
    with beneath.Directory(folder) as directory:
        paths = (entry.path for entry in directory_tree.walk(directory) if not entry.is_directory)
        return [path for path in paths if f"/{drafts.PREFIX}" not in f"/{path}" and (folder / path).is_file()]


@contextmanager
def _opened(uri: str) -> Iterator[BinaryIO]:
    """Open an object for reading; a link that leads out of the directory is an ``OSError``, and a FIFO is too."""
    _, root, key = _split(uri)
    with beneath.Directory(root) as directory, os.fdopen(directory.open_file(key), "rb") as reader:
        yield reader


@contextmanager
def _reading(uri: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise DataNotFoundError(f"{uri}: there is no such object", "correct the URI") from error
    except OSError as error:
        raise DataError(f"{uri} cannot be read: {error}", f"check {str(_split(uri)[1])!r}") from error


@contextmanager
def _writing(uri: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        is_name = isinstance(error, (NotADirectoryError, IsADirectoryError, FileExistsError))
        step = "use another key: a name cannot be both a file and a directory"
        step = step if is_name else f"check {str(_split(uri)[1])!r}"
        raise DataError(f"{uri} cannot be written: {error}", step) from error
