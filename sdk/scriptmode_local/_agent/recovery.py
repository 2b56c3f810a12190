"""Reconciling the recorded state of a job with where its agent is, as the job's engine knows (`AgentControl.locate`).

An agent of this machine holds the job's lock while it lives; a cluster's scheduler is asked for one elsewhere.

- The agent is gone and the state is not final. The process that gets the job's lock ends the job's remaining processes,
  mounts and containers. A job that may run again (`interruption.why_not_again`) is Interrupted, and gets another agent,
  which inherits the lock (`lost_agent`). Of any other job the process records how it ended: as the engine says, else
  as Failed. It holds the lock meanwhile, so only one process does so.
- The agent is gone and the folder cannot be written: nothing is changed; the state gets a note.
- The agent waits in the engine's queue: the state gets the engine's message, and is Interrupted if the job trained
  before. A job that would wait for ever is withdrawn and recorded as Failed.
- The engine does not answer: the state gets a note.
- The agent is alive and the heartbeat is older than `heartbeat.SILENT_SECONDS`: it is stopped or hangs. It is
  ended only if it should have ended the job by now: after a request to stop or MaxRuntimeInSeconds. It gets SIGCONT and
  some seconds to work again, then SIGKILL; after that the first case applies. Otherwise the state gets a note.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from scriptmode.errors import PlatformError
from scriptmode_local._hosts.agent_control import AgentControl, AgentLocation, Presence
from scriptmode_local._hosts.engine import find_control
from scriptmode_runtime._processes import proc

if TYPE_CHECKING:
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._store.state import JobState

#: Interval of checking whether the agent of a followed job lives.
_AGENT_SECONDS = 0.5


def reconcile(folder: JobFolder) -> JobState:
    """Return the current state of a job; a job whose agent died is started again or recorded as Failed first.

    The same happens to a job whose agent does not answer and should have ended it: because a stop was requested, or
    because its time limit passed. Where the folder cannot be written, nothing is ended and the state has a note.
    Raises `JobNotFoundError` for a job that is deleted meanwhile, wherever that is noticed.
    """
    try:
        return _reconcile(folder)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise folder.missing(folder.path, error) from error


def _reconcile(folder: JobFolder) -> JobState:
    state = folder.read_state()
    if state.ended:
        _remove_rest(folder, state)
        return state
    control = find_control(folder)
    location = control.locate(folder, state)
    if location.presence is Presence.GONE:
        from scriptmode_local._agent.lost_agent import end_rest, record_end

        return record_end(folder, lambda state: end_rest(folder, state, location.termination), is_gone=True)
    state = folder.with_stop_request(folder.read_state())
    return state if state.ended else _with_location(folder, state, control, location)


def _remove_rest(folder: JobFolder, state: JobState) -> None:
    """Remove the files of an ended job that its agent did not come to remove, because it was killed."""
    if not folder.channels.exists():
        return
    # What cannot be removed does not change the state; an agent that still removes files holds the lock.
    with suppress(OSError, PlatformError), folder.try_lock() as (is_locked, _):
        if is_locked:
            from scriptmode_local._agent import cleanup

            cleanup.remove_unneeded_files(folder, failed=state.status == "Failed")


def _with_location(folder: JobFolder, state: JobState, control: AgentControl, location: AgentLocation) -> JobState:
    """Return the state of a job whose agent is not gone, as far as its engine knows."""
    if location.presence is Presence.WAITING:
        from scriptmode_local._agent.lost_agent import with_waiting_agent

        return with_waiting_agent(folder, state, control, location)
    if location.presence is Presence.UNKNOWN:
        return replace(state, note=location.message)
    if location.message and state.secondary in ("Pending", "Interrupted"):
        from scriptmode_local._agent.lost_agent import with_message

        # The agent of this run has not begun: there is no heartbeat of it.
        return with_message(state, location.message)
    since = folder.silent_since()
    if since is None:
        return _with_stopped_host(folder, state)
    from scriptmode_local._agent.lost_agent import handle_silent_agent

    return handle_silent_agent(folder, state, since)


def _with_stopped_host(folder: JobFolder, state: JobState) -> JobState:
    """Return the state with a note where the agent or the launcher of a host on this machine is stopped."""
    for name, identity in folder.read_processes().items():
        if proc.is_stopped(identity):
            from scriptmode_local._agent.lost_agent import STOPPED

            what = f"the {name}" if name.startswith("agent") else f"the launcher of {name}"
            return replace(state, note=f"{what} (process {identity.pid}) {STOPPED.format(pid=identity.pid)}")
    return state


class ReconciledJob:
    """A job that is reconciled many times a second: an unchanged state is not read again for half a second."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._state: JobState | None = None
        self._version: object = None
        self._next = 0.0

    def reconcile(self) -> JobState:
        """Return the result of `reconcile`, which notices an agent's death up to half a second late."""
        # Before the state is read, so that a change in between is noticed by the next call.
        version = self._folder.version()
        if self._state is None or version != self._version or time.monotonic() >= self._next:
            self._state = reconcile(self._folder)
            self._version = version
            self._next = time.monotonic() + _AGENT_SECONDS
        return self._state
