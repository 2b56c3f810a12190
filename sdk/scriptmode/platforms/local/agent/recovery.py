"""Reconciling the recorded state of a job whose agent died or does not answer.

The agent holds the job's lock while it lives, so every process that reads a state first tries to get that lock.

- The lock is free and the state is not final: the agent died. The process that got the lock ends the job's remaining
  processes, mounts and containers, and records the job as Failed (`_mark_agent_lost`). It holds the lock meanwhile,
  so only one process does so.
- The lock is free and the folder cannot be written: nothing is changed; the state gets a note.
- The lock is held and the heartbeat is older than `heartbeat.SILENT_SECONDS`: the agent is stopped or hangs. It is
  ended only if it should have ended the job by now: after a request to stop or MaxRuntimeInSeconds. It gets SIGCONT and
  `_WAKING_SECONDS` to work again, then SIGKILL; after that the first case applies. Otherwise the state gets a note.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from scriptmode.errors import ContainerError, DataError
from scriptmode.failure import Failure
from scriptmode.messages import Problem
from scriptmode.platforms.local.agent import cleanup
from scriptmode.platforms.local.agent.supervision import Outcome
from scriptmode.platforms.local.hosts.engine import find_engine
from scriptmode.platforms.local.store import heartbeat
from scriptmode_runtime.contract import BASE_DIR_VARIABLE

if TYPE_CHECKING:
    from scriptmode.platforms.local.store.job_store import JobFolder
    from scriptmode.platforms.local.store.state import JobState
    from scriptmode_runtime.processes.process_tree import ProcessIdentity


#: Interval of checking whether the agent of a followed job lives.
_AGENT_SECONDS = 0.5
#: Seconds in which an agent that got SIGCONT has to work again.
_WAKING_SECONDS = 10.0
_UNRECORDED = (
    "its agent died in {secondary}; this folder cannot be written, so nothing was stopped or recorded: describe the "
    "job on a machine that can write it"
)


def reconcile(folder: JobFolder) -> JobState:
    """Return the current state of a job; a job whose agent died is recorded as Failed first.

    The same happens to a job whose agent does not answer and should have ended it: because a stop was requested, or
    because its time limit passed. Where the folder cannot be written, nothing is ended and the state has a note.
    """
    state = folder.read_state()
    if state.ended:
        return state
    with folder.try_lock() as is_locked:
        if is_locked:
            state = folder.read_state()
            return state if state.ended else _mark_agent_lost(folder, state)
    state = with_stop_request(folder, folder.read_state())
    if is_locked is None and not state.ended:
        return replace(state, note=_UNRECORDED.format(secondary=state.secondary))
    since = None if state.ended else folder.silent_since()
    return state if since is None else _handle_silent_agent(folder, state, since)


def is_agent_lost(state: JobState) -> bool:
    """Return whether a job's agent died and the folder cannot be written, so that the job never ends."""
    return not state.ended and state.note == _UNRECORDED.format(secondary=state.secondary)


def _handle_silent_agent(folder: JobFolder, state: JobState, since: float) -> JobState:
    """Return the state of a job whose agent does not answer; end an agent that should have ended the job by now."""
    agent = folder.read_processes().get("agent")
    process = f" (process {agent.pid})" if agent else ""
    silence = f"the job's agent{process} has not answered since {_clock(since)}"
    overdue = _find_overdue(folder, state)
    if agent and overdue:
        if _answers_when_woken(folder, agent):
            return with_stop_request(folder, folder.read_state())
        if _kill_agent(folder, agent):
            with folder.try_lock() as is_locked:
                state = folder.read_state()
                if is_locked and not state.ended:
                    return _mark_agent_lost(folder, state, f"{silence} and was killed, as {overdue}")
            return folder.read_state()
        return replace(state, note=f"{silence}; it cannot be ended: kill process {agent.pid} as its user or as root")
    return replace(state, note=f"{silence}: it is stopped or hangs; end the job: scriptmode stop {folder.name}")


def _find_overdue(folder: JobFolder, state: JobState) -> Problem | None:
    """Return why a job should have ended by now; ``None`` while it may continue."""
    if folder.stop_requested() is not None:
        return Problem("the job was asked to stop")
    started = next((each.started for each in state.transitions if each.status == "Training"), None)
    if started is None:
        return None
    job = folder.read_job()
    limit = job.request.limits.max_run
    # A working agent ends the job after the limit and the grace period.
    overdue = time.time() - (started + limit + job.stop_grace)
    return Problem(f"MaxRuntimeInSeconds, {limit} s, had passed") if overdue > heartbeat.SILENT_SECONDS else None


def _answers_when_woken(folder: JobFolder, agent: ProcessIdentity) -> bool:
    """Send SIGCONT to an agent; return whether it works again. It then ends the job by itself."""
    from scriptmode_runtime.processes import process_tree

    process_tree.send_signal(agent, signal.SIGCONT)
    process_tree.wait_until(
        lambda: folder.silent_since() is None or not process_tree.is_running(agent), _WAKING_SECONDS
    )
    return folder.silent_since() is None and process_tree.is_running(agent)


def _kill_agent(folder: JobFolder, agent: ProcessIdentity) -> bool:
    """Kill an agent; return whether no process holds the job's lock any more."""
    from scriptmode_runtime.processes import process_tree

    process_tree.send_signal(agent, signal.SIGKILL)

    def is_free() -> bool:
        with folder.try_lock() as is_locked:
            return is_locked is not False

    return process_tree.wait_until(is_free, process_tree.KILL_SECONDS)


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


def with_stop_request(folder: JobFolder, state: JobState) -> JobState:
    """Return a state that is Stopping since the request; the agent records the same a moment later."""
    asked = folder.stop_requested() if state.stoppable else None
    return state if asked is None else state.with_status("Stopping", asked)


def _mark_agent_lost(folder: JobFolder, state: JobState, cause: str = "") -> JobState:
    """Record a job whose agent died as Failed, after ending its remaining processes; ``cause`` is "" if unknown."""
    problem = end_orphans(folder)
    cause = cause or _cause_of_death(folder, state)
    cause += (
        f"; its processes that were found were ended{f', but {problem}' if problem else ''}; "
        f"its files are in {folder.path}"
    )
    log = folder.agent_log_tail()
    outcome = Outcome.failed(
        "InternalServerError", Failure(cause + ("; agent.log ends with" if log else ""), traceback=log)
    )
    failed = state.with_status("Failed", time.time(), reason=outcome.reason, failure=outcome.failure)
    # On a full disk the caller still gets the state; the next call tries to write it again.
    with suppress(OSError):
        folder.write_state(failed)
    return failed


def _cause_of_death(folder: JobFolder, state: JobState) -> str:
    """Return the cause of an agent's end: it never started, or it was killed or crashed."""
    if state.secondary in ("Pending", "Starting") and folder.never_had_processes:
        return (
            "the job's agent never started, because the process that created the job was killed, or the machine went "
            f"down, in that moment; nothing of the script has run, start it again: scriptmode rerun {folder.name}"
        )
    agent = folder.read_processes().get("agent")
    process = f" (process {agent.pid})" if agent else ""
    return f"the job's agent{process} was killed or crashed in {state.secondary}"


def end_orphans(folder: JobFolder) -> Problem | None:
    """Stop the processes, mounts and containers of a job whose agent is dead; return what failed."""
    from scriptmode.data import mounts
    from scriptmode_runtime.processes import process_tree

    processes = folder.read_processes()

    def orphaned_processes() -> list[int]:
        launchers = [identity.pid for identity in processes.values() if process_tree.is_running(identity)]
        below = [pid for launcher in launchers for pid in process_tree.descendants(launcher)]
        # The base directory is in the environment of a host's processes; those whose parents died are found only by it.
        return list({*launchers, *below, *process_tree.find_by_variable(f"{BASE_DIR_VARIABLE}={folder.hosts}/")})

    with suppress(DataError):
        # First of all: access below a mount whose server is dead fails or hangs.
        mounts.detach(folder.hosts)
    problems = [] if process_tree.kill_until_gone(orphaned_processes) else ["some of them could not be killed"]
    try:
        job = folder.read_job()
        find_engine(job.request.resources.host_kind).remove_outside_folder(folder, job, os.environ)
    except ContainerError as error:
        problems.append(str(error))
    with suppress(OSError):
        cleanup.remove_unneeded_files(folder, failed=True)
    return Problem(", and ".join(problems)) if problems else None


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
