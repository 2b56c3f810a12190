"""File system channels: a directory of this machine stands for each EFS or FSx for Lustre file system.

The service mounts the file system on every host. Here a writable channel is a link to the directory. A read-only
channel is a read-only mount of it, which needs root; for other users it is a link, with a line in the log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.machine.data_dir import FILE_SYSTEMS_VARIABLE
from scriptmode.errors import DataError, SpecError, invalid

if TYPE_CHECKING:
    from scriptmode._core.spec.inputs import FileSystemInput

#: A comma that separates entries; any other comma is part of a directory's name.
_BETWEEN = re.compile(r",(?=fs-[A-Za-z0-9-]+=)")


def parse_file_systems(
    given: Mapping[str, str | os.PathLike[str]] | None, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the directory of each file system by its id; raise `SpecError` naming a wrong entry.

    ``given`` takes precedence over the variable in ``environ``.
    """
    text = environ.get(FILE_SYSTEMS_VARIABLE, "").strip()
    if given is not None and not isinstance(given, Mapping):
        advice = "give a dict of ids to directories: {'fs-0123': '/mnt/data'}"
        raise invalid("file_systems", f"is {given!r}", advice)
    entries = parse_entries(FILE_SYSTEMS_VARIABLE, _BETWEEN.split(text), "fs-0123=/folder")
    folders = {name: _checked(f"{FILE_SYSTEMS_VARIABLE}: {name!r}", name, folder) for name, folder in entries}
    for name, folder in (given or {}).items():
        folders[name] = _checked(f"file_systems[{name!r}]", name, folder)
    return folders


def find_folder(source: FileSystemInput, folders: Mapping[str, str]) -> Path:
    """Return the directory of this machine for a file system's directory; raise `DataError` if there is none."""
    name, inside = source.file_system_id, source.directory_path
    if name not in folders:
        known = f" (known: {', '.join(sorted(folders))})" if folders else ""
        raise DataError(
            f"file system {name!r} has no directory on this machine{known}",
            advice="name one with "
            f"LocalPlatform(file_systems={{{name!r}: '/folder'}}) or {FILE_SYSTEMS_VARIABLE}={name}=/folder",
        )
    if ".." in inside.split("/"):
        raise DataError(f"file system {name!r}: DirectoryPath {inside!r} contains '..'", advice="leave it out")
    root = Path(folders[name])
    folder = root / inside.strip("/")
    if not root.is_dir():
        what = f"file system {name!r}: its directory {str(root)!r} does not exist on this machine"
        raise DataError(what, advice="mount it, create it, or name another")
    if not folder.is_dir():
        raise DataError(
            f"file system {name!r}: DirectoryPath {inside!r} is {str(folder)!r} on this machine, "
            "which is not a directory",
            advice="create it or correct the path",
        )
    return folder


def is_read_only(source: FileSystemInput) -> bool:
    """Return whether a file system is read-only, which is the service's default, too."""
    return source.file_system_access_mode != "rw"


def provide_folder(source: FileSystemInput, folders: Mapping[str, str], channel: Path) -> str:
    """Mount the file system's directory at ``channel`` if it is read-only, else link it; return a log line or "".

    An empty directory at ``channel`` is replaced by a link. Raises `DataError` as `find_folder` does.
    """
    target = find_folder(source, folders)
    if not is_read_only(source):
        _link(source, target, channel)
        return ""
    # Imported here, because callers that only need a directory have no use for the code that mounts.
    from scriptmode_local._data import mounts

    try:
        channel.mkdir(parents=True, exist_ok=True)
        mounts.bind_read_only(target, channel)
    except (OSError, DataError) as error:
        _link(source, target, channel)
        return (
            f"warning: channel {channel.name!r} is file system {source.file_system_id!r}, read-only, but nothing "
            f"keeps the script from writing to it: {error}"
        )
    return ""


def _link(source: FileSystemInput, target: Path, channel: Path) -> None:
    try:
        if channel.is_dir() and not channel.is_symlink():
            channel.rmdir()
        channel.parent.mkdir(parents=True, exist_ok=True)
        channel.symlink_to(target, target_is_directory=True)
    except OSError as error:
        what = f"file system {source.file_system_id!r}: the link {str(channel)!r} cannot be created: {error}"
        raise DataError(what, advice="correct its DirectoryPath, or name another directory") from error


def parse_entries(variable: str, entries: Sequence[str], form: str) -> list[tuple[str, str]]:
    """Return the names and values of a variable's entries; raise `SpecError` for one that is not of the ``form``."""
    for entry in filter(None, entries):
        if "=" not in entry:
            raise SpecError(f"{variable}: {entry!r} is not of the form {form}", advice="correct the entry")
    pairs = (entry.partition("=") for entry in filter(None, entries))
    return [(name.strip(), value) for name, _, value in pairs]


def _checked(where: str, name: object, path: object) -> str:
    if not isinstance(name, str) or not name.startswith("fs-"):
        what = f"{where} is not the ID of a file system"
        raise SpecError(what, argument="file_systems", advice="give one such as 'fs-0123456789abcdef0'")
    if not isinstance(path, (str, os.PathLike)) or not Path(path).is_absolute():
        step = "give the absolute path of a directory, such as '/mnt/data'"
        raise SpecError(f"{where} is {path!r}", step, argument="file_systems")
    return os.fspath(path)
