"""The queue of a data directory: which jobs run, and which wait for them to end.

``<data dir>/queue/`` has one file for each job whose agent has not ended; its name begins with the time of the job's
creation, so that the order of the names is that of the jobs, and its content says whether the job runs or waits. Every
reader and writer holds the lock of the directory. A file whose job has no agent any more, because it crashed or was
killed, counts for nothing and is removed by the next writer.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode.data.durable import ChangedDirectories, replace_file
from scriptmode.platforms.local.system.directory_lock import locked_directory

if TYPE_CHECKING:
    from pathlib import Path

    from scriptmode.platforms.local.store.job_store import JobStore

_RUNS, _WAITS = b"runs", b"waits"
_NANOSECONDS = 10**9


class JobQueue:
    """The queue of a job store."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._folder = store.data_dir / "queue"

    def enter(self, job: str, created: float) -> None:
        """Record a job that runs without waiting for others; raise ``OSError``."""
        self._make()
        with locked_directory(self._folder):
            self._write(job, created, _RUNS)

    def try_start(self, job: str, created: float, most: int) -> bool:
        """Record that a job runs if fewer than ``most`` jobs run and no earlier one waits, else that it waits.

        Returns whether it runs. Raises ``OSError``.
        """
        self._make()
        with locked_directory(self._folder):
            self._write(job, created, _WAITS)
            jobs = self._jobs(remove=True)
            # The job itself is missing where it was deleted in this moment.
            is_first = next((name for name, is_running in jobs if not is_running), "") == job
            if not is_first or sum(is_running for _, is_running in jobs) >= most:
                return False
            self._write(job, created, _RUNS)
            return True

    def leave(self, job: str) -> None:
        """Remove a job that ended."""
        with suppress(OSError), locked_directory(self._folder):
            self._remove(job)

    def positions(self) -> dict[str, int]:
        """Return the position of each job that waits, from 1 on; nothing where the queue cannot be read."""
        with suppress(OSError), locked_directory(self._folder, shared=True):
            waiting = [name for name, is_running in self._jobs(remove=False) if not is_running]
            return {name: number for number, name in enumerate(waiting, 1)}
        return {}

    def _make(self) -> None:
        if not self._folder.is_dir():
            ChangedDirectories().make_directory(self._folder, mode=0o700)

    def _write(self, job: str, created: float, content: bytes) -> None:
        path = self._folder / f"{int(created * _NANOSECONDS):020d}-{job}"
        self._remove(job, keep=path)
        if not path.exists() or path.read_bytes() != content:
            replace_file(path, content, durable=False)

    def _remove(self, job: str, keep: Path | None = None) -> None:
        """Remove the files of a job, also those that a deleted job of the same name left."""
        for path in self._files():
            if path.name.partition("-")[2] == job and path != keep:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if path.name[0] != ".")

    def _jobs(self, *, remove: bool) -> list[tuple[str, bool]]:
        """Return the jobs that have an agent, in the order of their creation, and whether each runs."""
        found = []
        for path in self._files():
            name = path.name.partition("-")[2]
            if self._store.exists(name) and self._store.folder(name).has_agent():
                found.append((name, path.read_bytes() == _RUNS))
            elif remove:
                path.unlink(missing_ok=True)
        return found
