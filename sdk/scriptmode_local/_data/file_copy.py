"""Copy files and directories that others wrote, by the kernel where it can.

Links that lead out of a copied directory are refused, and no FIFO is waited for.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from scriptmode.errors import DataError, DataNotFoundError
from scriptmode_local._data import file_uris, regular_files
from scriptmode_runtime._files import beneath, directory_tree

#: Bytes that the kernel copies before it checks whether the process was killed.
COPY_CHUNK = 16 * 1024 * 1024
READ_BYTES = 1024 * 1024


def copy_path(path: Path, folder: Path) -> list[Path]:
    """Copy a file, or all files below a directory, into ``folder``; return the files written. Raises `DataError`.

    Links to files become files. One that leads out of the directory is refused: a container may have left it there.
    """
    if not file_uris.exists(path):
        raise DataNotFoundError(f"there is no file or directory {str(path)!r}, or no longer", advice="correct the path")
    try:
        if path.is_dir():
            return list(_copied(path, folder))
        _require_regular(path)
        folder.mkdir(parents=True, exist_ok=True)
        copy_regular_file(path, folder / path.name)
    except beneath.EscapeError as error:
        what = f"{str(path)!r} has a link that leads out of it: {error.filename!r}"
        raise DataError(what, advice="put the file there that it names") from error
    except OSError as error:
        raise DataError(
            f"{str(path)!r} cannot be copied to {str(folder)!r}: {error}", advice="name another directory"
        ) from error
    return [folder / path.name]


def _require_regular(path: Path) -> None:
    try:
        regular_files.open_regular(path).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{str(path)!r} cannot be read: {reason}", "put a file there that can be read") from error


def _copied(path: Path, folder: Path) -> Iterator[Path]:
    """Copy all files below a directory and yield them, without links to nothing and whatever else is not a file."""
    with beneath.Directory(path, seen_as=str(path.absolute())) as directory:
        for name in sorted(entry.path for entry in directory_tree.walk(directory) if not entry.is_directory):
            try:
                source = os.fdopen(directory.open_file(name), "rb")
            except beneath.EscapeError as error:
                # Links to directories are left out wherever they lead.
                if not os.path.isfile(path / name):  # noqa: PTH113 - Path.is_file raises for a path that is too long
                    continue
                error.filename = name
                raise
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.EINVAL):
                    continue
                raise
            target = folder / name
            with source:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as writer:
                    copy_descriptor(source.fileno(), writer.fileno())
            yield target


def copy_regular_file(source: Path, target: Path) -> None:
    """Copy a regular file's bytes; file systems that can share blocks do. Raise ``OSError`` for a FIFO or a device."""
    with regular_files.open_regular(source) as reader, target.open("wb") as writer:
        copy_descriptor(reader.fileno(), writer.fileno())


def copy_descriptor(
    source: int, target: int, translated: Callable[[], AbstractContextManager[None]] = nullcontext
) -> None:
    """Copy an open file's bytes; ``translated`` translates the errors of reading where the kernel does not copy."""
    done = 0
    with suppress(AttributeError, OSError):
        while copied := os.copy_file_range(source, target, COPY_CHUNK, done, done):
            done += copied
    while True:
        with translated():
            rest = os.pread(source, READ_BYTES, done)
        if not rest:
            return
        done += os.pwrite(target, rest, done)
