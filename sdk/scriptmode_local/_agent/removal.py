"""Deletion of a job: end the processes that write to its directory, rename the directory, then remove it."""

from __future__ import annotations

import errno
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from scriptmode._core.machine import drafts
from scriptmode.errors import DISK_ERRORS, FAILED_DISK, DataError, ScriptmodeError, UnreadableJobError
from scriptmode_local._agent import lost_agent
from scriptmode_local._data import mounts
from scriptmode_local._hosts.agent_control import AgentSignal
from scriptmode_local._hosts.engine import absent_engine, find_control
from scriptmode_local._store.job_store import ENGINE_RECORD, JobFolder
from scriptmode_local._system.directory_lock import locked_directory
from scriptmode_runtime._files import directory_tree
from scriptmode_runtime._processes import proc, process_tree

#: A directory with none of them is the user's.
_FILES = frozenset(("agent.lock", "state.json", "job.json", "processes.json", ENGINE_RECORD))
#: Seconds in which an agent that was killed, or whose directory was renamed, has to end.
_ENDING_SECONDS = 30.0
#: Seconds in which processes that look whether a job has an agent, and hold its lock for that, release the lock.
_LOOKING_SECONDS = 1.0
#: Seconds in which killed processes finish the writes that the kernel does for them.
_WRITING_SECONDS = 5.0
_POLL_SECONDS = 0.05
#: An agent that was killed is gone in milliseconds.
_KILLED_POLL_SECONDS = 0.002


def delete_job(folder: JobFolder) -> None:
    """Remove a job's directory, and what it has elsewhere; raise `DataError` for what cannot be removed.

    The agent and everything that writes to the directory are killed before a file is removed. An agent whose process is
    unknown, because processes.json is damaged, ends itself as soon as the directory has another name.
    """
    _check_is_job(folder)
    with suppress(UnreadableJobError):
        if not folder.read_state().ended and (absent := absent_engine(folder)):
            raise DataError(f"training job {folder.name} has not ended, and {absent}, which ends all that the job has")
    if folder.has_agent():
        with suppress(ScriptmodeError):
            if find_control(folder).signal(folder, AgentSignal.KILL):
                process_tree.wait_until(lambda: not folder.has_agent(), _ENDING_SECONDS, _KILLED_POLL_SECONDS)
    left = None
    with ExitStack() as held:
        if not folder.has_agent():
            # No process that follows the job may record that its agent died.
            with suppress(ScriptmodeError):
                held.enter_context(folder.try_lock())
            with suppress(DataError):
                problem = lost_agent.end_orphans(folder)
                left = None if absent_engine(folder) else problem
        with _jobs_locked(folder):
            moved = _rename(folder)
    if not process_tree.wait_until(lambda: not moved.has_agent(), _ENDING_SECONDS):
        raise DataError(
            f"the agent of training job {folder.name} does not end, so {moved.path} remains",
            advice=f"stop its process, which is listed by fuser {moved.lock_file}, then remove that directory",
        )
    _remove_moved(folder, moved)
    if left:
        raise DataError(f"training job {folder.name} is deleted, but {left}")


def _check_is_job(folder: JobFolder) -> None:
    """Raise `DataError` for what a user put in the place of a job."""
    # A directory that may not be listed may be another user's job.
    with suppress(OSError):
        names = {path.name for path in folder.path.iterdir()}
        if folder.path.is_symlink() or (names and _FILES.isdisjoint(names)):
            raise DataError(f"{folder.path} is a link, or has no file of a job, so it is kept", "move it elsewhere")


def is_lost(folder: JobFolder) -> bool:
    """Return whether a job's files are damaged, not only out of reach, and nothing runs it."""
    # A directory without a lock may be the user's.
    if not folder.lock_file.exists() or (folder.path / ENGINE_RECORD).exists() or folder.has_agent():
        return False
    try:
        folder.read_facts()
        folder.read_state()
    except UnreadableJobError as error:
        is_out_of_reach = isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError)
        return not (is_out_of_reach or any(map(proc.is_running, folder.read_processes().values())))
    return False


def delete_ended_job(folder: JobFolder) -> bool:
    """Remove a job's directory if the job has ended and no agent holds its lock; return whether it was removed.

    A job that another process started under the same name in the meantime is left as it is. Raises `JobNotFoundError`,
    and `DataError` where the directory cannot be read or removed.
    """
    _check_is_job(folder)
    deadline = time.monotonic() + _LOOKING_SECONDS
    while (moved := _rename_ended(folder)) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    _remove_moved(folder, moved)
    return True


def _rename_ended(folder: JobFolder) -> JobFolder | None:
    """Rename the directory of a job that has ended; return the renamed directory, None where its lock is held."""
    # The path leads to the locked job: only a deletion could change that, and it waits for the lock of all jobs.
    with _jobs_locked(folder), folder.try_lock() as (is_locked, _):
        return _rename(folder) if is_locked and folder.read_state().ended else None


@contextmanager
def _jobs_locked(folder: JobFolder) -> Iterator[None]:
    """Hold the lock that every deletion takes while it gives a job's directory another name."""
    try:
        with locked_directory(folder.path.parent):
            yield
    except OSError as error:
        raise DataError(f"training job {folder.name} cannot be deleted: {error}", _step(folder, error)) from error


def _remove_moved(folder: JobFolder, moved: JobFolder) -> None:
    """Remove a job's directory under its new name, and what interrupted removals left."""
    mounts.detach(moved.hosts)
    deadline = time.monotonic() + _WRITING_SECONDS
    while error := _try_remove(moved.path.parent):
        # Killed processes may still finish their writes.
        if error.errno != errno.ENOTEMPTY or time.monotonic() > deadline:
            raise DataError(
                f"training job {folder.name} is deleted, but not all of its files: {error}",
                advice=f"remove {moved.path.parent} as the user who owns what is left in it",
            ) from error
        time.sleep(_POLL_SECONDS)
    for left in folder.path.parent.glob(f"{drafts.REMOVED}*"):
        with suppress(OSError):
            if _was_interrupted(left):
                directory_tree.remove_tree(left)


def _try_remove(path: Path) -> OSError | None:
    try:
        directory_tree.remove_tree(path)
    except OSError as error:
        return None if isinstance(error, FileNotFoundError) else error
    return None


def _was_interrupted(left: Path) -> bool:
    """Return whether the removal of a directory was interrupted: no agent is in it, and no job is being moved there."""
    jobs = [JobFolder(path) for path in left.iterdir()]
    if not jobs:
        return time.time() - left.stat().st_mtime > _ENDING_SECONDS
    return not any(job.has_agent() for job in jobs)


def rename_for_removal(path: Path) -> Path:
    """Move a file or directory into a new directory beside it, a draft, and return its path there.

    Raises ``OSError``.
    """
    target = Path(tempfile.mkdtemp(prefix=drafts.REMOVED, dir=path.parent)) / path.name
    try:
        return path.rename(target)
    except OSError:
        with suppress(OSError):
            target.parent.rmdir()
        raise


def _rename(folder: JobFolder) -> JobFolder:
    """Rename a job's directory, so that no job has its name; return the renamed directory. Raises ``OSError``."""
    try:
        return JobFolder(rename_for_removal(folder.path))
    except FileNotFoundError as error:
        raise folder.gone() from error


def _step(folder: JobFolder, error: OSError) -> str:
    if error.errno in DISK_ERRORS:
        return FAILED_DISK
    if error.errno == errno.EROFS:
        return "delete it where that file system can be written"
    return f"delete it as a user who may write in {folder.path.parent}"
