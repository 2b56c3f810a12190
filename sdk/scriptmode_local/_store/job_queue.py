"""The queue of a data directory: which jobs run, and which wait for them to end.

``<data dir>/queue/`` has one file for each job whose agent has not ended; its name begins with the time of the job's
creation, so that the order of the names is that of the jobs, and its content says whether the job runs or waits, and
how many processes it has. Every reader and writer holds the lock of the directory. A file whose job has no agent any
more, because it crashed or was killed, counts for nothing and is removed by the next writer.

A job waits for a number of jobs, or until the machine has processors and memory for its processes beside those that
run (`capacity`). A job that is larger than the machine runs alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scriptmode._core.machine.drafts import PREFIX
from scriptmode_local._data.durable import ChangedDirectories
from scriptmode_local._store.job_record import FITTING
from scriptmode_local._system import capacity
from scriptmode_local._system.directory_lock import locked_directory

if TYPE_CHECKING:
    from scriptmode_local._store.job_store import JobStore

_RUNS, _WAITS = "runs", "waits"
_NANOSECONDS = 10**9
#: Other files are the user's.
_NAME = re.compile(r"\d{20}-.+")


class _Entry(NamedTuple):
    """A job in the queue."""

    name: str
    is_running: bool
    processes: int


class JobQueue:
    """The queue of a job store."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._folder = store.data_dir / "queue"

    def enter(self, job: str, created: float, processes: int) -> None:
        """Record a job that runs without waiting for others; raise ``OSError``."""
        self._make()
        with locked_directory(self._folder):
            self._write(_Entry(job, is_running=True, processes=processes), created)

    def try_start(self, job: str, created: float, processes: int, most: int) -> bool:
        """Record that a job runs if there is room for it and no earlier one waits, else that it waits.

        There is room if fewer than ``most`` jobs run, or for `FITTING` if the machine is large enough for the
        ``processes`` of the job beside those that run. Returns whether the job runs. Raises ``OSError``.
        """
        self._make()
        entry, running, is_first = _Entry(job, is_running=False, processes=processes), [], False
        with locked_directory(self._folder):
            self._write(entry, created)
            for queued in self._entries(remove=True):
                if queued.is_running:
                    running.append(queued.processes)
                elif not (is_first := is_first or queued.name == job):
                    # Hundreds of jobs may wait, of which only the first one looks at all.
                    return False
            # The job itself is missing where it was deleted in this moment.
            if not is_first or not (
                capacity.fits_beside(running, processes) if most == FITTING else len(running) < most
            ):
                return False
            self._write(entry._replace(is_running=True), created)
            return True

    def leave(self, job: str) -> None:
        """Remove a job that ended."""
        with suppress(OSError), locked_directory(self._folder):
            self._remove(job)

    def positions(self) -> dict[str, int]:
        """Return the position of each job that waits, from 1 on; nothing where the queue cannot be read."""
        with suppress(OSError), locked_directory(self._folder, shared=True):
            waiting = [entry.name for entry in self._entries(remove=False) if not entry.is_running]
            return {name: number for number, name in enumerate(waiting, 1)}
        return {}

    def _make(self) -> None:
        if not self._folder.is_dir():
            ChangedDirectories().make_directory(self._folder, mode=0o700)

    def _write(self, entry: _Entry, created: float) -> None:
        path = self._folder / f"{int(created * _NANOSECONDS):020d}-{entry.name}"
        content = f"{_RUNS if entry.is_running else _WAITS} {entry.processes}".encode()
        self._remove(entry.name, keep=path)
        if not path.exists() or path.read_bytes() != content:
            # Without a lock of its own, which would wait for the directory's.
            draft = self._folder / PREFIX
            try:
                draft.write_bytes(content)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)

    def _remove(self, job: str, keep: Path | None = None) -> None:
        """Remove the files of a job, also those that a deleted job of the same name left."""
        for path in self._files():
            if path.name.partition("-")[2] == job and path != keep:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))

    def _entries(self, *, remove: bool) -> Iterator[_Entry]:
        """Yield the jobs that have an agent, in the order of their creation."""
        for path in self._files():
            name = path.name.partition("-")[2]
            if self._store.exists(name) and self._store.folder(name).has_agent():
                word, _, processes = path.read_text("ascii", "replace").partition(" ")
                # A damaged file has anything.
                yield _Entry(name, word == _RUNS, int(processes) if processes.isdecimal() else 1)
            elif remove:
                path.unlink(missing_ok=True)
