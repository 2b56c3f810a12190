"""Whether a folder can hold jobs: found out by doing there what the job store does."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.errors import DataError, JobNotFoundError, UnreadableJobError
from scriptmode.platforms.local.store.job_store import JobStore
from scriptmode.platforms.local.system.durable import replace_file
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from scriptmode.platforms.local.store.job_store import JobFolder

_FIFO_MODE = 0o600


def probe_writable(data_dir: Path) -> float:
    """Write, rename, lock and make a FIFO in the data directory, which is there; leave nothing behind.

    Give the seconds by which the file system's clock is ahead of this machine's. Raises ``OSError``.
    """
    draft = Path(tempfile.mkdtemp(prefix=".new-", dir=data_dir))
    try:
        file = draft / "state.json"
        replace_file(file, b"{}")
        ahead = file.stat().st_mtime - time.time()
        folder = draft / "job"
        folder.mkdir()
        folder.rename(draft / "renamed")
        _lock(draft / "agent.lock")
        os.mkfifo(draft / "pipe", _FIFO_MODE)
        return ahead
    finally:
        with suppress(OSError):
            beneath.remove_tree(draft)


def existing_folder(data_dir: Path) -> Path:
    """Give the data directory, or the folder that it would be made in; raises ``NotADirectoryError``."""
    place = next(folder for folder in (data_dir, *data_dir.parents) if folder.exists())
    if not place.is_dir():
        message = "it is no folder" if place == data_dir else f"{place} is no folder"
        raise NotADirectoryError(message)
    return place


def _lock(path: Path) -> None:
    """Take a lock that a second one must not be given: some network file systems give it to everybody."""
    first, second = (os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for _ in range(2))
    try:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(BlockingIOError):
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            message = "two locks on one file at once: flock does not work there"
            raise OSError(message)
    finally:
        os.close(first)
        os.close(second)


@dataclass
class UnhealthyJobs:
    """The names of jobs that something is wrong with: nothing of it is changed by looking."""

    #: What cannot be read of each, by the job's name.
    unreadable: dict[str, str] = field(default_factory=dict)
    #: Not ended, though their agents died.
    orphaned: list[str] = field(default_factory=list)
    #: Their agents live and do not answer.
    silent: list[str] = field(default_factory=list)


def find_unhealthy_jobs(data_dir: Path) -> UnhealthyJobs:
    """Return which jobs of a data directory something is wrong with; reads the files of all, changes nothing."""
    store = JobStore(data_dir)
    names: list[str] = []
    # What is no folder has no jobs; that it is none is told elsewhere.
    with suppress(DataError):
        names = sorted(name for name, _ in store.versions())
    found = UnhealthyJobs()
    for name in names:
        # Removed meanwhile.
        with suppress(JobNotFoundError):
            try:
                _look(store.folder(name), found)
            except UnreadableJobError as error:
                found.unreadable[name] = str(error)
    return found


def _look(folder: JobFolder, found: UnhealthyJobs) -> None:
    folder.read_job()
    if folder.read_state().ended:
        return
    with folder.try_lock() as is_locked:
        is_orphaned = is_locked is not False and not folder.read_state().ended
    if is_orphaned:
        found.orphaned.append(folder.name)
    elif folder.silent_since() is not None:
        found.silent.append(folder.name)
