"""What jobs are listed as. Ended ones are kept in one file, so that a list of thousands does not read every job."""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scriptmode.data import regular_files
from scriptmode.errors import DataError, JobNotFoundError
from scriptmode.platforms.local.agent import recovery
from scriptmode.platforms.local.store.shapes import LAST_SECOND, is_time
from scriptmode.platforms.local.store.state import ENDED, STATUS_OF, UNREADABLE, JobSummary
from scriptmode.platforms.local.system.durable import replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from scriptmode.platforms.local.store.job_store import JobStore

_TIME = {int, float}
#: Numbers of the version of a job's files that a row begins with.
_VERSION = 4
#: Types of a row: the version, then a summary without its name.
_COLUMNS: tuple[set[type], ...] = ({int}, {int}, {int}, {int}, {str}, _TIME, _TIME, {str}, {*_TIME, type(None)})
_FIRST_TIME, _STATUS = _VERSION + 1, _VERSION + 3


def job_summaries(store: JobStore) -> list[JobSummary]:
    """Give every job of a store, in no order; what was read of jobs that ended is kept for the next time.

    One whose files cannot be read is `UNREADABLE`, with the reason as its note.
    """
    known = _read(store.ended_jobs)
    kept: dict[str, list[Any]] = {}
    found: list[JobSummary] = []
    is_new = False
    for name, version in store.versions():
        row = known.get(name)
        # Files of a job that ended change no more, unless they are damaged; another job of that name has others.
        if row is not None and row[:_VERSION] == version:
            found.append(JobSummary(name, *row[_VERSION:]))
            kept[name] = row
            continue
        job = _job_summary(store, name)
        if job is not None:
            found.append(job)
            if STATUS_OF.get(job.secondary) in ENDED:
                kept[name] = [*version, *job[1:-1]]
                is_new = True
    if is_new or len(kept) != len(known):
        # Nothing but time is lost where it cannot be written.
        with suppress(OSError):
            replace_file(store.ended_jobs, _render(kept), durable=False)
    return found


def _job_summary(store: JobStore, name: str) -> JobSummary | None:
    folder = store.folder(name)
    try:
        # A damaged request would be met by every verb of the job alone.
        folder.read_job()
        return recovery.reconcile(folder).summary
    except JobNotFoundError:  # removed meanwhile
        return None
    except DataError as error:
        created, modified = _times(folder.path)
        return JobSummary(name, "", created, modified, UNREADABLE, note=str(error))


def _times(folder: Path) -> tuple[float, float]:
    """Return when a folder's oldest and newest entries were last changed: about when its job was made and worked."""
    times = []
    for path in (folder, *(folder / name for name in ("job.json", "agent.log", "state.json"))):
        with suppress(OSError):
            times.append(min(max(0.0, path.lstat().st_mtime), LAST_SECOND))
    return min(times, default=0.0), max(times, default=0.0)


def _render(rows: dict[str, list[Any]]) -> bytes:
    """Return the file's content: one line of JSON, and one with its CRC-32, as a changed digit is still JSON."""
    content = json.dumps(rows, separators=(",", ":")).encode()
    return b"%s\n%08x\n" % (content, zlib.crc32(content))


def _read(path: Path) -> dict[str, list[Any]]:
    """Read what was kept; what another version of this library kept, or a broken file, is nothing."""
    try:
        text, _, checksum = regular_files.read_bytes(path).rstrip(b"\n").rpartition(b"\n")
        if int(checksum, 16) != zlib.crc32(text):
            return {}
        content = regular_files.parse_json(text)
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    rows = list(content.values())
    if not all(isinstance(row, list) and len(row) == len(_COLUMNS) for row in rows):
        return {}
    # By columns: of thousands of jobs that takes a third of the time.
    is_sound = all({*map(type, column)} <= types for column, types in zip(zip(*rows), _COLUMNS))
    if not all(is_time(moment) for row in rows for moment in row[_FIRST_TIME:] if isinstance(moment, (int, float))):
        return {}
    return content if is_sound and {row[_STATUS] for row in rows} <= STATUS_OF.keys() else {}
