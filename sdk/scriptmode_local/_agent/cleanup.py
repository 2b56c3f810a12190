"""Removal of files that a job does not need once it has ended; a failure to do so does not change its state."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode._core.machine import drafts
from scriptmode_local._data import mounts
from scriptmode_runtime import contract
from scriptmode_runtime._files import beneath, directory_tree

if TYPE_CHECKING:
    from scriptmode_local._store.job_store import JobFolder


def remove_unneeded_files(folder: JobFolder, *, failed: bool) -> list[str]:
    """Remove the inputs and FIFOs of a job that ended, and the directories of its hosts unless it failed.

    A link by which a host replaced a directory is not followed. Returns a warning for each directory that stays.
    """
    names: list[str] = []
    warnings = []
    if mounted := mounts.mounted_below(folder.hosts):
        warnings.append(f"warning: nothing below {folder.hosts} is removed: {os.fsdecode(mounted[0])} is still mounted")
    elif failed:
        with suppress(FileNotFoundError):
            hosts = sorted(os.listdir(folder.hosts))  # noqa: PTH208 - only names are needed
            names += [f"{folder.hosts.name}/{host}/{contract.DATA_DIR}" for host in hosts]
    else:
        names.append(folder.hosts.name)
    drafts.remove_orphans(folder.path)
    usage = folder.usage_file("").parent
    if not usage.is_symlink():
        drafts.remove_orphans(usage)
    with beneath.Directory(folder.path) as directory:
        warnings += [warning for name in names for warning in _remove(directory, folder, name)]
        # As long as it is there, the next command tries again.
        return warnings or _remove(directory, folder, folder.channels.name)


def _remove(directory: beneath.Directory, folder: JobFolder, name: str) -> list[str]:
    """Remove a directory; return a warning if a part of it stays."""
    try:
        directory_tree.remove_beneath(directory, name)
    except Exception as error:  # noqa: BLE001 - the job has ended, whatever files its hosts left
        path, problem = folder.path / name, str(error) or type(error).__name__
        return [f"warning: {path} is not needed any more and cannot be removed: {problem}; remove it by hand"]
    return []
