"""``file://`` URIs: the local platform's spelling of an input or output place."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEME = "file://"
#: The kernel copies this much before it looks whether the process was killed.
COPY_CHUNK = 16 * 1024 * 1024
READ_BYTES = 1024 * 1024


def is_file(uri: str) -> bool:
    """Say whether a URI names a place of this machine."""
    return uri.startswith(SCHEME)


def file_path(uri: str) -> Path:
    """Give the path a ``file://`` URI names; raise ``ValueError`` unless it is absolute.

    The path is taken as it is written, spaces and all. Percent-decoding (as ``Path.as_uri`` needs it) is applied only
    where the decoded path leads deeper into what exists.
    """
    rest = uri[len(SCHEME) :]
    rest = rest[len("localhost") :] if rest.startswith("localhost/") else rest
    if not rest.startswith("/"):
        raise ValueError(f"{uri!r} holds no absolute path; write {SCHEME}/ and the path from the root")
    written, decoded = Path(rest), Path(unquote(rest))
    return decoded if _existing_depth(decoded) > _existing_depth(written) else written


def exists(path: Path) -> bool:
    """Say whether there is something; no for a path that is too long or may not be asked about."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises for those


def copy(path: Path, folder: Path) -> list[Path]:
    """Copy a file, or all files below a folder, into ``folder``; return the files written. Raises `DataError`."""
    if not exists(path):
        raise DataError(
            f"there is no file or folder {str(path)!r}, or no longer; see which jobs are left: scriptmode list"
        )
    sources = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    written = []
    try:
        for source in sources:
            target = folder / (source.name if source == path else source.relative_to(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            written.append(target)
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be copied to {str(folder)!r}: {error}; name another folder") from error
    return written


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's bytes; file systems that can share blocks do."""
    with source.open("rb") as reader, target.open("wb") as writer:
        copy_open(reader.fileno(), writer.fileno(), lambda start: os.pread(reader.fileno(), READ_BYTES, start))


def copy_open(source: int, target: int, read: Callable[[int], bytes]) -> None:
    """Copy an open file's bytes; ``read`` gives some of them from a place on, where the kernel does not copy."""
    done = 0
    with suppress(AttributeError, OSError):
        while copied := os.copy_file_range(source, target, COPY_CHUNK, done, done):
            done += copied
    while rest := read(done):
        done += os.pwrite(target, rest, done)


def _existing_depth(path: Path) -> int:
    return next((len(place.parts) for place in (path, *path.parents) if exists(place)), 0)
