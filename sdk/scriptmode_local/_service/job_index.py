"""The list of jobs; summaries of ended jobs are cached in one file, so that not every job is read each time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.service_values import ENDED, UNREADABLE, Metric
from scriptmode.errors import JobNotFoundError, ScriptmodeError
from scriptmode_local._data import regular_files
from scriptmode_local._data.durable import replace_file
from scriptmode_local._store.shapes import LAST_SECOND
from scriptmode_local._store.state import STATUS_OF, JobSummary

if TYPE_CHECKING:
    from scriptmode_local._store.job_record import Job, JobFacts
    from scriptmode_local._store.job_store import JobFolder, JobStore

#: How much of the logs is searched for the last value of a metric, and of how many hosts.
_LOG_LINES, _LOG_CHARACTERS, _MOST_LOGS = 200, 8192, 4
#: Number of columns of the version of a job's files, with which a row begins.
_VERSION = 4
#: The columns of the rest of a row, from the second on: another version of this library may have others.
_POSITION = JobSummary._fields.index("position")
_COLUMNS = " ".join(JobSummary._fields[1:_POSITION])


def select_jobs(store: JobStore, select: Callable[[list[JobSummary]], dict[str, Any]]) -> dict[str, Any]:
    """Return the ListTrainingJobsResponse that ``select`` makes of the summaries of all jobs, which have no order.

    While no job is created or deleted, the files of ended jobs are not looked at: nothing writes them any more.
    The status of a job whose files cannot be read is `UNREADABLE`, with the reason as its note.
    """
    store.remove_orphans()
    # Before the names, because a job that comes or goes changes it. The cache's row "" is the version of the directory
    # at which the other rows were all ended jobs.
    directory = [*(store.version() or ())]
    known = _read(store.ended_jobs)
    is_new = known.pop("", []) != directory != []
    trusted = known if directory and not is_new else {}
    kept, others = dict(trusted), []
    for name, version in store.versions(store.names() - trusted.keys()):
        row = known.get(name)
        # The version changes if files of an ended job are damaged, or if another job has got the name.
        if row is not None and row[:_VERSION] == version:
            kept[name] = row
        elif job := _job_summary(store, name):
            if STATUS_OF.get(job.secondary) in ENDED:
                kept[name] = [*version, *job[1:_POSITION]]
                is_new = True
            else:
                others.append(job)
    if any(job.secondary == "Pending" for job in others):
        from scriptmode_local._store.job_queue import JobQueue

        positions = JobQueue(store).positions()
        others = [job._replace(position=positions.get(job.name, job.position)) for job in others]
    if is_new or len(kept) != len(known):
        rows = {"": directory, **kept} if directory else kept
        # Without the cache the next call is only slower.
        with suppress(OSError):
            replace_file(store.ended_jobs, _render(rows), durable=False)
    return select([*others, *(JobSummary._make((name, *row[_VERSION:], 0)) for name, row in kept.items())])


def running_jobs(store: JobStore) -> Iterator[Job]:
    """Yield what was recorded of each job whose end is not recorded; whether their agents live is not asked."""
    known = _read(store.ended_jobs)
    # As in `select_jobs`: else another job may have got a name.
    is_current = known.pop("", []) == [*(store.version() or ())]
    for name, version in store.versions(store.names() - (known.keys() if is_current else set())):
        with suppress(ScriptmodeError, OSError):
            folder = store.find(name)
            if known.get(name, [])[:_VERSION] != version and not folder.read_state().ended:
                yield folder.read_job()


def _job_summary(store: JobStore, name: str) -> JobSummary | None:
    from scriptmode_local._agent import recovery

    folder = store.folder(name)
    try:
        # A damaged request would be met by every verb of the job alone.
        facts = folder.read_facts()
        summary = recovery.reconcile(folder).summary._replace(hosts=facts.hosts, distribution=facts.distribution)
        if summary.secondary == "Training" and not summary.note:
            summary = summary._replace(note=_silence(folder))
        metric = _last_metric(folder, facts) if facts.metrics else None
        return summary._replace(metric_name=metric.name, metric_value=metric.value) if metric else summary
    except JobNotFoundError:  # removed meanwhile
        return None
    except ScriptmodeError as error:
        created, modified = _times(folder.path)
        return JobSummary(name, "", created, modified, UNREADABLE, note=str(error))


def _silence(folder: JobFolder) -> str:
    """Return for how long the first host of a job has printed nothing; "" where another one has."""
    from scriptmode_local._store.host_activity import read_activity

    silences = [activity.silence for activity in read_activity(folder).values()]
    return silences[0] if silences and all(silences) else ""


def _last_metric(folder: JobFolder, facts: JobFacts) -> Metric | None:
    """Return the value that one of the metrics had last in the end of a host's log; None without any."""
    from scriptmode_local._outputs.log_metrics import last_value
    from scriptmode_local._store.host_logs import last_lines

    for host in facts.host_names[:_MOST_LOGS]:
        end = last_lines(folder.log(host), _LOG_LINES, _LOG_CHARACTERS)
        if metric := last_value(end, facts.metrics):
            return metric
    return None


def _times(folder: Path) -> tuple[float, float]:
    """Return when a directory's oldest and newest entries were last changed: about when its job was made and worked."""
    times = []
    for path in (folder, *(folder / name for name in ("job.json", "agent.log", "state.json"))):
        with suppress(OSError):
            times.append(min(max(0.0, path.lstat().st_mtime), LAST_SECOND))
    return min(times, default=0.0), max(times, default=0.0)


def _render(rows: dict[str, list[Any]]) -> bytes:
    """Return the file's content: a line of JSON, and one with its columns and its CRC-32, which reveals damage."""
    content = json.dumps(rows, separators=(",", ":")).encode()
    return b"%s\n%s %08x\n" % (content, _COLUMNS.encode(), zlib.crc32(content))


def _read(path: Path) -> dict[str, list[Any]]:
    """Read the cache; return an empty one for a damaged file or that of another version of this library."""
    rows: dict[str, list[Any]] = {}
    with suppress(OSError, ValueError):
        text, _, end = regular_files.read_bytes(path).rstrip(b"\n").rpartition(b"\n")
        columns, _, checksum = end.rpartition(b" ")
        if columns == _COLUMNS.encode() and int(checksum, 16) == zlib.crc32(text):
            # What this module wrote needs no more checks, which would take longer than all else for thousands of jobs.
            rows = json.loads(text)
    return rows
