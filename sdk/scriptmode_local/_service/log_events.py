"""The log of a job as it is written: the lines of its hosts, and its state whenever that changes."""

from __future__ import annotations

import heapq
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from operator import attrgetter
from typing import TYPE_CHECKING

from scriptmode._core.machine.clock import SYSTEM
from scriptmode._core.spec.service_values import ENDED, LogEvent
from scriptmode.errors import TrainingJobError, UnreadableJobError
from scriptmode_local._agent import recovery
from scriptmode_local._store.host_logs import LogReader
from scriptmode_local._store.job_response import describe
from scriptmode_local._store.log_times import LogTimes
from scriptmode_local._store.state import STATUS_OF, JobState
from scriptmode_local._system.file_owner import find_other_owner

if TYPE_CHECKING:
    from scriptmode._core.spec.job_description import JobDescription
    from scriptmode_local._store.job_store import JobFolder

_MOST_RESTS = 100


def read_log_events(
    folder: JobFolder, *, follow: bool, on_description: Callable[[JobDescription], None] | None, poll_seconds: float
) -> Iterator[LogEvent]:
    """Yield the lines of every host's log, with ``follow`` until the job ended, as `LocalPlatform.log_events` does."""
    request = folder.read_job().request
    watched = recovery.ReconciledJob(folder)
    logs = {host: folder.log(host) for host in request.resources.hosts}
    readers = [(host, LogReader(log), LogTimes(log)) for host, log in logs.items()]
    shown, rests = None, 0
    try:
        while True:
            # Before the logs are read, so that all lines written before the end are read in the same turn.
            state = watched.reconcile()
            ended, is_lost = state.ended, state.is_unrecorded
            is_idle, of_hosts = True, (_of_host(folder, *reader, final=ended or is_lost) for reader in readers)
            lines: Iterator[LogEvent] = heapq.merge(*of_hosts, key=attrgetter("time"))
            if on_description is not None and state != shown:
                told = len(shown.transitions) if shown else 0
                lines = _with_statuses(lines, state, told, lambda state: on_description(describe(request, state)))
                shown = state
            for event in lines:
                is_idle = False
                yield event
            if ended or not follow:
                return
            if is_lost:
                raise TrainingJobError(f"training job {folder.name}: {state.note}", describe(request, state).response)
            rests = rests + 1 if is_idle else 0
            if is_idle:
                # After some seconds more rarely: training has the processors.
                SYSTEM.sleep(poll_seconds * (4 if rests > _MOST_RESTS else 1))
    finally:
        for _, reader, _ in readers:
            reader.close()


def _with_statuses(
    lines: Iterator[LogEvent], state: JobState, told: int, on_state: Callable[[JobState], None]
) -> Iterator[LogEvent]:
    """Yield lines; call ``on_state`` with the job as it was, beyond ``told`` statuses, before the lines that follow.

    Those after the hosts' end come last, whatever the clock of their machines is.
    """
    starts = [transition.started for transition in state.transitions]
    for transition in reversed(state.transitions):
        if STATUS_OF[transition.status] not in ENDED and transition.status != "Uploading":
            break
        starts.pop()
    for line in lines:
        # The time of a line is a whole millisecond.
        passed = bisect(starts, line.time.timestamp() + 0.001) if line.time else 0
        if passed > told:
            told = passed
            on_state(replace(state, transitions=state.transitions[:told]))
        yield line
    on_state(state)


def _of_host(folder: JobFolder, host: str, reader: LogReader, times: LogTimes, *, final: bool) -> Iterator[LogEvent]:
    last = 0
    try:
        for line, continues in reader.lines(final=final):
            if not last:
                times.read()
                # Of lines without a recorded time, those of an earlier version and the newest ones.
                last = reader.modified
            moment = datetime.fromtimestamp(times.time_of(reader.position, last) / 1000, timezone.utc)
            yield LogEvent(host, line, continues, moment)
    except OSError as error:
        owner = find_other_owner(folder.path)
        raise UnreadableJobError(folder.name, folder.log(host), error, is_log=True, owner=owner) from error
