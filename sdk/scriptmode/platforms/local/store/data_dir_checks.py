"""Tests of a data directory: whether it can hold jobs, and which of its jobs are damaged, orphaned or silent."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scriptmode.core.machine import drafts
from scriptmode.data.durable import replace_file
from scriptmode.errors import DataError, JobNotFoundError, UnreadableJobError
from scriptmode.platforms.local.store.engine_record import read_engine_record
from scriptmode.platforms.local.store.job_store import JobStore

if TYPE_CHECKING:
    from pathlib import Path

    from scriptmode.platforms.local.store.job_store import JobFolder

_FIFO_MODE = 0o600


def probe_writable(data_dir: Path) -> None:
    """Write, rename, lock and create a FIFO in an existing data directory, as the store does; raise ``OSError``."""
    with drafts.new_directory(data_dir) as draft:
        replace_file(draft / "state.json", b"{}")
        folder = draft / "job"
        folder.mkdir()
        folder.rename(draft / "renamed")
        _lock(draft / "agent.lock")
        os.mkfifo(draft / "pipe", _FIFO_MODE)


def existing_folder(data_dir: Path) -> Path:
    """Return the data directory, or the nearest existing directory above it; raise ``NotADirectoryError``."""
    nearest = next(folder for folder in (data_dir, *data_dir.parents) if folder.exists())
    if not nearest.is_dir():
        message = "it is not a directory" if nearest == data_dir else f"{nearest} is not a directory"
        raise NotADirectoryError(message)
    return nearest


def _lock(path: Path) -> None:
    """Lock a file twice and raise ``OSError`` if both succeed, as on network file systems without working locks."""
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
    """Names of jobs with a problem."""

    #: The error of reading each, by the job's name.
    unreadable: dict[str, UnreadableJobError] = field(default_factory=dict)
    #: Jobs that have not ended, though their agents died.
    orphaned: list[str] = field(default_factory=list)
    #: Jobs whose agents are alive and have no heartbeat.
    silent: list[str] = field(default_factory=list)


def find_unhealthy_jobs(data_dir: Path) -> UnhealthyJobs:
    """Return the jobs of a data directory that have a problem; reads the files of all jobs, changes nothing."""
    store = JobStore(data_dir)
    names: list[str] = []
    # A path that is not a directory has no jobs; another check reports it.
    with suppress(DataError):
        names = sorted(name for name, _ in store.versions())
    unhealthy = UnhealthyJobs()
    for name in names:
        # The job was removed in the meantime.
        with suppress(JobNotFoundError):
            try:
                _look(store.folder(name), unhealthy)
            except UnreadableJobError as error:
                unhealthy.unreadable[name] = error
    return unhealthy


def _look(folder: JobFolder, found: UnhealthyJobs) -> None:
    folder.read_job()
    if folder.read_state().ended or read_engine_record(folder):
        # A scheduler has the agent: a free lock means nothing.
        return
    with folder.try_lock() as is_locked:
        is_orphaned = is_locked is not False and not folder.read_state().ended
    if is_orphaned:
        found.orphaned.append(folder.name)
    elif folder.silent_since() is not None:
        found.silent.append(folder.name)
