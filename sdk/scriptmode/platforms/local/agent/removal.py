"""Delete a job: end what writes to its folder, take its name away, then remove it."""

from __future__ import annotations

import errno
import os
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.data import fuse_mounts
from scriptmode.errors import DataError, JobNotFoundError
from scriptmode.platforms.local.agent import recovery
from scriptmode.platforms.local.store.job_store import JobFolder
from scriptmode.platforms.local.system import process_tree
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Callable

#: Begins the name of a folder that is being removed, which is no job's any more.
_PREFIX = ".removed-"
#: Seconds in which an agent that was killed, or whose folder was taken away, has to be gone.
_ENDING_SECONDS = 30.0
#: Seconds in which processes that were killed finish what they were writing.
_WRITING_SECONDS = 5.0
_POLL_SECONDS = 0.05


def delete_job(folder: JobFolder) -> None:
    """Remove a job's folder; raise `DataError` where that is not possible.

    The agent is killed and with it everything that writes to the folder, before its files are touched. One that is not
    known, as processes.json is damaged, ends itself as soon as the folder has another name.
    """
    agent = folder.read_processes().get("agent")
    if agent:
        process_tree.send(agent, signal.SIGKILL)
        _wait(lambda: _is_free(folder))
    if _is_free(folder):
        with suppress(DataError):
            # A job whose request cannot be read has no containers that could be found by it.
            recovery.end_orphans(folder)
    moved = _move_away(folder)
    if not _wait(lambda: _is_free(moved)):
        raise DataError(
            f"the agent of training job {folder.name} does not end, so {moved.path} is left; end its process, "
            f"which is named by fuser {moved.lock_file}, then remove that folder"
        )
    fuse_mounts.detach(moved.hosts)
    _remove(folder.name, moved.path)
    for left in folder.path.parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if _was_interrupted(left):
                beneath.remove_tree(left)


def _was_interrupted(left: Path) -> bool:
    """Return whether the removal of a folder was interrupted: no agent is in it, or no job comes into it any more."""
    jobs = [JobFolder(path) for path in left.iterdir()]
    if not jobs:
        return time.time() - left.stat().st_mtime > _ENDING_SECONDS
    return all(map(_is_free, jobs))


def _is_free(folder: JobFolder) -> bool:
    """Return whether no agent holds the job's lock; there is none without a lock file."""
    try:
        with folder.try_lock() as is_locked:
            return is_locked is not False
    except (DataError, JobNotFoundError):
        return True


def _move_away(folder: JobFolder) -> JobFolder:
    """Rename a job's folder, so that there is no job of its name; return the folder under its new name."""
    try:
        place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder.path.parent)) / folder.name
        folder.path.rename(place)
    except OSError as error:
        step = f"delete it as the user who owns {folder.path}"
        if error.errno == errno.EROFS:
            step = "delete it where that file system can be written"
        raise DataError(f"training job {folder.name} cannot be deleted: {error}; {step}") from error
    return JobFolder(place)


def _remove(name: str, path: Path) -> None:
    """Remove the folder at ``path``, and the one that it was moved into; what is still being written is met again."""
    deadline = time.monotonic() + _WRITING_SECONDS
    while error := _refusal(path.parent):
        if error.errno != errno.ENOTEMPTY or time.monotonic() > deadline:
            raise DataError(
                f"training job {name} is deleted, but not all of its files: {error}; remove "
                f"{os.fspath(path.parent)} as the user who owns what is left in it"
            ) from error
        time.sleep(_POLL_SECONDS)


def _refusal(path: Path) -> OSError | None:
    """Remove a folder; return what kept it from being removed."""
    try:
        beneath.remove_tree(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return error
    return None


def _wait(is_so: Callable[[], bool]) -> bool:
    """Wait until something is so, `_ENDING_SECONDS` at most; return whether it is."""
    deadline = time.monotonic() + _ENDING_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
