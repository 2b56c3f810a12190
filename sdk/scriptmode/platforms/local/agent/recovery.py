"""What is done about a job whose agent died without ending it."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from scriptmode.errors import DataError
from scriptmode.platforms import requested_hosts
from scriptmode.platforms.local.agent import cleanup
from scriptmode.platforms.local.store import heartbeat
from scriptmode.platforms.local.store.description import max_runtime
from scriptmode_runtime.contract import BASE_DIR_VARIABLE

if TYPE_CHECKING:
    from scriptmode.platforms.local.store.job_store import JobFolder
    from scriptmode.platforms.local.store.state import JobState
    from scriptmode.platforms.local.system.process_tree import Identity


#: How often a job that is watched is asked whether its agent lives.
_AGENT_SECONDS = 0.5
#: Seconds in which an agent that was continued has to work again.
_WAKING_SECONDS = 10.0
_POLL_SECONDS = 0.05
_UNRECORDED = (
    "its agent died in {secondary}; this folder cannot be written, so nothing was ended or recorded: look at the job "
    "where it can be"
)


def reconcile(folder: JobFolder) -> JobState:
    """Return where a job stands now; one that no agent works on any more is ended first.

    So is one whose agent does not answer and should have ended it: because it was asked to stop, or because its time
    is up. Where the folder cannot be written, nothing is ended and the state's note says what is known.
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
    """Return whether a job's agent died where that cannot be recorded, so that the job never ends."""
    return not state.ended and state.note == _UNRECORDED.format(secondary=state.secondary)


def _handle_silent_agent(folder: JobFolder, state: JobState, since: float) -> JobState:
    """Return the state of a job whose agent does not answer, which is ended if it should have ended the job by now."""
    agent = folder.read_processes().get("agent")
    process = f" (process {agent.pid})" if agent else ""
    silence = f"the job's agent{process} has not answered since {_clock(since)}"
    cause = _why_to_end(folder, state)
    if agent and cause:
        if _answers_when_woken(folder, agent):
            return with_stop_request(folder, folder.read_state())
        if _kill_agent(folder, agent):
            with folder.try_lock() as is_locked:
                state = folder.read_state()
                if is_locked and not state.ended:
                    return _mark_agent_lost(folder, state, f"{silence} and was killed, as {cause}")
            return folder.read_state()
        return replace(state, note=f"{silence}; it cannot be ended: kill process {agent.pid} as its user or as root")
    return replace(state, note=f"{silence}: it is stopped or hangs; end the job: scriptmode stop {folder.name}")


def _why_to_end(folder: JobFolder, state: JobState) -> str:
    """Return why a job should have ended; "" while it may go on."""
    if folder.stop_requested() is not None:
        return "the job was asked to stop"
    started = next((each.started for each in state.transitions if each.status == "Training"), None)
    if started is None:
        return ""
    job = folder.read_job()
    limit = max_runtime(job.request)
    # An agent that works ends it after the limit and the grace.
    overdue = time.time() - (started + limit + job.stop_grace)
    return f"MaxRuntimeInSeconds, {limit} s, had passed" if overdue > heartbeat.SILENT_SECONDS else ""


def _answers_when_woken(folder: JobFolder, agent: Identity) -> bool:
    """Continue a stopped agent; return whether it works again. It finds by itself why its job is to end."""
    from scriptmode.platforms.local.system import process_tree

    process_tree.send(agent, signal.SIGCONT)
    deadline = time.monotonic() + _WAKING_SECONDS
    while folder.silent_since() is not None and process_tree.running(agent):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return process_tree.running(agent)


def _kill_agent(folder: JobFolder, agent: Identity) -> bool:
    """Kill an agent; return whether nothing holds the job's lock any more."""
    from scriptmode.platforms.local.system import process_tree

    process_tree.send(agent, signal.SIGKILL)
    deadline = time.monotonic() + process_tree.VANISHING_SECONDS
    while True:
        with folder.try_lock() as is_locked:
            if is_locked is not False:
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)


class ReconciledJob:
    """A job that is looked at many times a second: what did not change is not read again, a lost agent found soon."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._state: JobState | None = None
        self._version: object = None
        self._next = 0.0

    def reconcile(self) -> JobState:
        """Give what `settled` gives, an agent's death half a second late."""
        # Before the state is read: what is written meanwhile is then seen by the next look.
        version = self._folder.version()
        if self._state is None or version != self._version or time.monotonic() >= self._next:
            self._state = reconcile(self._folder)
            self._version = version
            self._next = time.monotonic() + _AGENT_SECONDS
        return self._state


def with_stop_request(folder: JobFolder, state: JobState) -> JobState:
    """Let a job be Stopping from the moment it was asked to stop; the agent says the same a moment later."""
    asked = folder.stop_requested() if state.stoppable else None
    return state if asked is None else state.with_status("Stopping", asked)


def _mark_agent_lost(folder: JobFolder, state: JobState, cause: str = "") -> JobState:
    """End what is left of a job whose agent died, and record why; ``cause`` is why, where that is known."""
    stays = end_orphans(folder)
    cause = cause or _why_it_died(folder, state)
    reason = (
        f"InternalServerError: {cause}; the processes of it that were found were ended{stays and f', but {stays}'}; "
        f"what they left is in {folder.path}"
    )
    log = folder.agent_log_tail()
    buried = state.with_status("Failed", time.time(), reason=f"{reason}; agent.log ends with\n{log}" if log else reason)
    # A full disk must not hide what happened; the next look tries again.
    with suppress(OSError):
        folder.write_state(buried)
    return buried


def _why_it_died(folder: JobFolder, state: JobState) -> str:
    """Return what is known of an agent's end: one that never came up is told from one that was killed."""
    if state.secondary == "Starting" and folder.never_had_processes:
        return (
            "the job's agent never started, because the process that created the job was killed, or the machine went "
            f"down, in that moment; nothing of the script has run, start it again: scriptmode rerun {folder.name}"
        )
    agent = folder.read_processes().get("agent")
    process = f" (process {agent.pid})" if agent else ""
    return f"the job's agent{process} was killed or crashed in {state.secondary}"


def end_orphans(folder: JobFolder) -> str:
    """End the processes, mounts and containers of a job whose agent is dead; return what could not be done."""
    from scriptmode.data import fuse_mounts
    from scriptmode.platforms.local.system import process_tree

    processes = folder.read_processes()

    def left() -> list[int]:
        launchers = [identity.pid for identity in processes.values() if process_tree.running(identity)]
        below = [pid for launcher in launchers for pid in process_tree.descendants(launcher)]
        # A host's processes carry its base directory; those whose parents died are found by that alone.
        return list({*launchers, *below, *process_tree.with_variable(f"{BASE_DIR_VARIABLE}={folder.hosts}/")})

    with suppress(DataError):
        # What served it is dead: nothing below may be touched before.
        fuse_mounts.detach(folder.hosts)
    problems = [] if process_tree.kill_until_gone(left) else ["some of them would not go"]
    problems += filter(None, [_remove_outside_folder(folder)])
    with suppress(OSError):
        cleanup.remove_unneeded_files(folder, failed=True)
    return ", and ".join(problems)


def _remove_outside_folder(folder: JobFolder) -> str:
    """Remove what the job has outside its folder: launchers' directories, or what Docker has; say what was not done.

    The files of containers become the caller's.
    """
    from scriptmode.platforms.local.hosts import container_fleet, process_fleet

    job = folder.read_job()
    if not requested_hosts.is_in_containers(job.request):
        process_fleet.remove_scratch(job.request, os.environ)
        return ""
    from scriptmode.platforms.local.hosts import job_containers

    if said := job_containers.clear(folder.label, patience=0):
        return f"not all containers: {said}"
    return container_fleet.give_back(folder, job)


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
