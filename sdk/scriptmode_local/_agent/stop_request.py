"""A user's request that a job stop, whatever its agent does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode.errors import DataError, UnreadableJobError
from scriptmode_local._agent.recovery import reconcile
from scriptmode_local._hosts.agent_control import AgentSignal, Presence
from scriptmode_local._hosts.engine import absent_engine, find_control, find_kind

if TYPE_CHECKING:
    from scriptmode_local._store.job_store import JobFolder


def request_stop(folder: JobFolder, *, now: bool = False) -> None:
    """Request that a job stop, and end it where its agent does not answer; raise what `reconcile` raises."""
    try:
        if not folder.read_state().ended and not folder.has_agent() and not find_kind(folder).pending_message:
            # Before the job is found, and started again.
            folder.request_stop()
        state = reconcile(folder)
    except UnreadableJobError as error:
        if not error.is_running:
            raise
        # Its agent has the request and the state in memory.
        folder.request_stop(now=now)
        return
    if not state.ended and (absent := absent_engine(folder)) and not folder.has_agent():
        raise DataError(f"training job {folder.name} cannot be stopped: its agent died, and {absent}, which ends it")
    is_silent = not state.ended and folder.silent_since() is not None
    if state.stoppable or is_silent or (now and state.secondary == "Stopping"):
        folder.request_stop(now=now)
        control = find_control(folder)
        if control.locate(folder, folder.read_state()).presence is Presence.WAITING:
            control.signal(folder, AgentSignal.WITHDRAW)
    if is_silent:
        reconcile(folder)
