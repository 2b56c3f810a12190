"""Removal of what a data directory does not need any more: old jobs that ended, their sources, cached files.

Tuning jobs are jobs here, too: their records are removed when they ended long ago, and need their source until then.

Other processes may start, end and delete jobs at the same time. A job is removed under its own lock (`_agent.removal`).
A source is removed under the lock of the directory of sources, under which `LocalPlatform.put_source` marks the source
of a job that is about to be created as used.
"""

from __future__ import annotations

import operator
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode._core.machine import drafts
from scriptmode._core.machine.data_dir import FETCHED, TUNING
from scriptmode._core.spec.service_values import ENDED, UNREADABLE
from scriptmode._core.text.messages import Problem, problem_of
from scriptmode.errors import DataError, JobNotFoundError
from scriptmode_local._agent import removal
from scriptmode_local._data import regular_files
from scriptmode_local._system.directory_lock import locked_directory
from scriptmode_local._system.full_disk import disk_usage
from scriptmode_runtime._files import directory_tree

if TYPE_CHECKING:
    from scriptmode_local._store.job_store import JobFolder, JobStore

    Summaries = list[dict[str, Any]]

#: Seconds from the last use of a source to its removal, at least: a client that stored it may be creating its job.
_STARTING_SECONDS = 3600.0
#: The names of sources and of cached downloads, and what these hold beside drafts: other entries may be the user's.
_SOURCE, _DOWNLOAD = re.compile("[0-9a-f]{64}"), re.compile(".+-[0-9a-f]{12}")
_ARTIFACTS = {"checkpoints", "data", "model", "tensorboard"}


class Removed(NamedTuple):
    """A job, a source, or a cached download that was removed, and the bytes that it had on disk."""

    kind: str
    name: str
    bytes: int


@dataclass
class PruneReport:
    """What was removed, or would be, and why anything else could not be."""

    removed: list[Removed] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """The bytes of everything removed."""
        return sum(item.bytes for item in self.removed)


def prune(store: JobStore, jobs: Summaries, older_than: float, *, dry_run: bool) -> PruneReport:
    """Remove which ``jobs`` ended, and what was last used, ``older_than`` seconds ago; ``dry_run`` only finds it."""
    report = PruneReport()
    before = time.time() - older_than
    _prune_jobs(store, jobs, before, report, dry_run=dry_run)
    removed = {item.name for item in report.removed}
    if not dry_run:
        store.remove_orphans()
        _remove_interrupted(store.sources, store.data_dir / FETCHED, store.data_dir / TUNING)
    _prune_tuning_jobs(store.data_dir / TUNING, before, report, dry_run=dry_run)
    try:
        _prune_sources(store, min(before, time.time() - _STARTING_SECONDS), removed, report, dry_run=dry_run)
        for path in _older(store.data_dir / FETCHED, before):
            names = {entry.name for entry in path.glob("[!.]*")} if path.is_dir() else {""}
            if _DOWNLOAD.fullmatch(path.name) and names <= _ARTIFACTS:
                _remove("cached download", path, report, dry_run=dry_run)
    except OSError as error:
        report.problems.append(Problem(f"sources and cached downloads are kept: {error}", "correct that file"))
    return report


def _prune_jobs(store: JobStore, jobs: Summaries, before: float, report: PruneReport, *, dry_run: bool) -> None:
    for job in sorted(jobs, key=operator.itemgetter("LastModifiedTime")):
        name, status, modified = job["TrainingJobName"], job["TrainingJobStatus"], job["LastModifiedTime"].timestamp()
        folder = store.folder(name)
        is_lost = status == UNREADABLE and modified <= before and removal.is_lost(folder)
        if status == UNREADABLE and not is_lost and folder.lock_file.exists():
            report.problems.append(Problem(job["StatusMessage"]))
        if not is_lost and (status not in ENDED or modified > before):
            continue
        _prune_job(folder, report, is_lost=is_lost, dry_run=dry_run)


def _prune_job(folder: JobFolder, report: PruneReport, *, is_lost: bool, dry_run: bool) -> None:
    size = disk_usage(folder.path)
    try:
        if is_lost and not dry_run:
            removal.delete_job(folder)
        if dry_run or is_lost or removal.delete_ended_job(folder):
            report.removed.append(Removed("job", folder.name, size))
        else:
            what = f"training job {folder.name} is kept: its agent has not ended yet"
            report.problems.append(Problem(what, "try again later"))
    except JobNotFoundError:  # another process deleted it
        return
    except DataError as error:
        report.problems.append(problem_of(error))


def _prune_tuning_jobs(folder: Path, before: float, report: PruneReport, *, dry_run: bool) -> None:
    for path in _older(folder, before):
        # One that cannot be read is kept: whether it ended is unknown.
        with suppress(OSError, ValueError, TypeError, LookupError):
            state = regular_files.read_json(path / "state.json")
            if state["HyperParameterTuningJobStatus"] in ENDED and state["HyperParameterTuningEndTime"] <= before:
                _remove("tuning job", path, report, dry_run=dry_run)


def _prune_sources(store: JobStore, before: float, removed: set[str], report: PruneReport, *, dry_run: bool) -> None:
    needed = _needed_sources(store, removed)
    for path in _older(store.sources, before):
        if path.name in needed or not _SOURCE.fullmatch(path.name):
            continue
        with locked_directory(store.sources):
            # It may have been used since.
            if _last_use(path) <= before:
                _remove("source", path, report, dry_run=dry_run)


def _needed_sources(store: JobStore, removed_jobs: set[str]) -> set[str]:
    """Return the names in the directory of sources that occur in the request of any job; raise ``OSError``.

    A tuning job that was interrupted needs its source when it continues.
    """
    pattern = re.compile(rb"/%s/([^/\"\\]+)" % re.escape(store.sources.name.encode()))
    needed: set[str] = set()
    records = [store.folder(name).path / "job.json" for name in store.names() - removed_jobs]
    records += (store.data_dir / TUNING).glob("[!.]*/request.json")
    for record in records:
        with suppress(FileNotFoundError, NotADirectoryError):
            content = regular_files.read_bytes(record)
            needed.update(os.fsdecode(name) for name in pattern.findall(content))
    return needed


def _older(folder: Path, before: float) -> Iterator[Path]:
    """Yield the entries of a directory that were last used before a time; nothing for one that does not exist."""
    with suppress(FileNotFoundError):
        yield from sorted(path for path in folder.iterdir() if path.name[0] != "." and _last_use(path) <= before)


def _remove_interrupted(*folders: Path) -> None:
    """Remove what interrupted removals left; a removal that still runs is younger."""
    for left in (path for folder in folders for path in folder.glob(f"{drafts.REMOVED}*")):
        with suppress(OSError):
            if _last_use(left) <= time.time() - _STARTING_SECONDS:
                directory_tree.remove_tree(left)


def _last_use(path: Path) -> float:
    with suppress(FileNotFoundError):
        return path.lstat().st_mtime
    return time.time()


def _remove(kind: str, path: Path, report: PruneReport, *, dry_run: bool) -> None:
    """Remove a directory whole or not at all: it is renamed first."""
    size = disk_usage(path)
    if not dry_run:
        try:
            directory_tree.remove_tree(removal.rename_for_removal(path).parent)
        except FileNotFoundError:  # another process removed it
            return
        except OSError as error:
            report.problems.append(Problem(f"{path} cannot be removed: {error}", "remove it as its owner"))
            return
    report.removed.append(Removed(kind, path.name, size))
