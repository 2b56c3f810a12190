"""File system channels: an EFS or FSx for Lustre file system is a folder of this machine that the user names.

The service mounts the file system on every host; here a channel that may be written is a link to the folder, and one
that may not is a read-only mount over it where one can be had, else a link and a word about it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from scriptmode.errors import DataError, SpecError

if TYPE_CHECKING:
    from scriptmode.data.fuse_server import Tree

#: ``fs-0123=/mnt/data,fs-9=/x``, or the same as a JSON object where a folder's name holds what looks like an entry.
FILE_SYSTEMS_VARIABLE = "SCRIPTMODE_FILE_SYSTEMS"
#: An entry that was begun and not ended.
_BARE = re.compile(r",(fs-[A-Za-z0-9-]+)(?=,|$)")
#: A comma belongs to the folder's name unless another entry follows it.
_BETWEEN = re.compile(r",(?=fs-[A-Za-z0-9-]+=)")


def parse_file_systems(
    given: Mapping[str, str | os.PathLike[str]] | None, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the folder of each file system by its id; raise `SpecError` naming a wrong entry.

    ``given`` takes precedence over the variable in ``environ``.
    """
    text = environ.get(FILE_SYSTEMS_VARIABLE, "").strip()
    if given is not None and not isinstance(given, Mapping):
        raise SpecError(f"file_systems is {given!r}; give a dict of ids to folders: {{'fs-0123': '/mnt/data'}}")
    found = {name: _checked(f"{FILE_SYSTEMS_VARIABLE}: {name!r}", name, folder) for name, folder in _entries(text)}
    for name, folder in (given or {}).items():
        found[name] = _checked(f"file_systems[{name!r}]", name, folder)
    return found


def find_folder(source: Mapping[str, Any], folders: Mapping[str, str]) -> Path:
    """Give the folder of this machine that a FileSystemDataSource names; raise `DataError` when there is none."""
    name, inside = source["FileSystemId"], source["DirectoryPath"]
    if name not in folders:
        known = f" (known: {', '.join(sorted(folders))})" if folders else ""
        raise DataError(
            f"file system {name!r} has no folder on this machine{known}; say which with "
            f"LocalPlatform(file_systems={{{name!r}: '/folder'}}) or {FILE_SYSTEMS_VARIABLE}={name}=/folder"
        )
    if ".." in inside.split("/"):
        raise DataError(f"file system {name!r}: DirectoryPath {inside!r} leads upwards; leave '..' out")
    root = Path(folders[name])
    found = root / str(inside).strip("/")
    if not root.is_dir():
        raise DataError(
            f"file system {name!r}: its folder {str(root)!r} is not on this machine; make or mount it, or say another"
        )
    if not found.is_dir():
        raise DataError(
            f"file system {name!r}: DirectoryPath {inside!r} is {str(found)!r} on this machine, which is no folder; "
            f"make it or correct the path"
        )
    return found


def is_read_only(source: Mapping[str, Any]) -> bool:
    """Say whether a FileSystemDataSource is to be mounted read-only, as the service does unless told otherwise."""
    return bool(source.get("FileSystemAccessMode", "ro") != "rw")


def tree_factory(source: Mapping[str, Any], folders: Mapping[str, str]) -> Callable[[], Tree]:
    """Give what a `View` of a read-only channel is made with; raise `DataError` as `folder` does."""
    # What serves mounts is no business of whoever only asks for a folder.
    from scriptmode.data.folder_tree import FolderTree

    return partial(FolderTree, find_folder(source, folders))


def link_folder(source: Mapping[str, Any], folders: Mapping[str, str], place: Path, why_not: str = "") -> str:
    """Make the channel's folder ``place`` a link to the file system's folder; give a sentence for the job's log or "".

    ``why_not`` is why there is no read-only mount for a channel that asked for one. An empty folder at ``place`` gives
    way to the link. Raise `DataError` as `folder` does.
    """
    target = find_folder(source, folders)
    try:
        if place.is_dir() and not place.is_symlink():
            place.rmdir()
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target, target_is_directory=True)
    except OSError as error:
        raise DataError(
            f"file system {source['FileSystemId']!r}: {str(place)!r} cannot be made: {error}; correct its "
            "DirectoryPath, or say another folder"
        ) from error
    if not is_read_only(source):
        return ""
    return (
        f"channel {place.name!r} is file system {source['FileSystemId']!r}, read-only, but nothing keeps the script "
        f"from writing to {str(target)!r}, for no file system can be mounted here: {why_not or 'nobody tried'}"
    )


def _entries(text: str) -> list[tuple[str, Any]]:
    if text.startswith("{"):
        try:
            return list(json.loads(text).items())
        except ValueError as error:
            raise SpecError(
                f"{FILE_SYSTEMS_VARIABLE} is no JSON object: {error}; correct {text!r}, or write fs-0123=/folder"
            ) from error
    entries = []
    for entry in filter(None, _BETWEEN.split(text)):
        name, separator, path = entry.partition("=")
        if not separator:
            raise SpecError(f"{FILE_SYSTEMS_VARIABLE}: {entry!r} is not of the form fs-0123=/folder; correct the entry")
        if bare := _BARE.search(path):
            raise SpecError(
                f"{FILE_SYSTEMS_VARIABLE}: the folder of {name!r} is {path!r}; the part {bare[1]!r} names no folder: "
                f"say {bare[1]}=/folder, or give a JSON object if it is part of the name"
            )
        entries.append((name.strip(), path))
    return entries


def _checked(where: str, name: object, path: object) -> str:
    if not isinstance(name, str) or not name.startswith("fs-"):
        raise SpecError(f"{where} is no file system's id; give one such as 'fs-0123456789abcdef0'")
    if not isinstance(path, (str, os.PathLike)) or not Path(path).is_absolute():
        raise SpecError(f"{where} is {path!r}; give the whole path of a folder, such as '/mnt/data'")
    return os.fspath(path)
