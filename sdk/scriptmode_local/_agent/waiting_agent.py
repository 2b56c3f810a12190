"""The state of a job whose agent waits in its engine's queue."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from scriptmode._core.spec.job_failure import Failure
from scriptmode_local._hosts.agent_control import AgentSignal
from scriptmode_local._store.state import MESSAGES, Outcome

if TYPE_CHECKING:
    from scriptmode_local._hosts.agent_control import AgentControl, AgentLocation
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._store.state import JobState


def with_waiting_agent(folder: JobFolder, state: JobState, control: AgentControl, location: AgentLocation) -> JobState:
    """Return the state of a job whose agent waits in the engine's queue; end a job that would wait for ever."""
    if location.never_starts:
        control.signal(folder, AgentSignal.WITHDRAW)
        from scriptmode_local._agent.lost_agent import record_end

        return record_end(folder, lambda _: Outcome.failed("ClientError", Failure(location.message)))
    if state.status != "InProgress":
        return state
    if not folder.never_had_processes:
        # If its node was lost, the agent could not record that: since its last heartbeat.
        with suppress(OSError):
            state = state.with_status("Interrupted", folder.last_heartbeat(state))
    return replace(with_message(state, location.message), position=location.position)


def with_message(state: JobState, message: str) -> JobState:
    """Return the state with what the engine says of a job that waits or starts, after why it was interrupted."""
    why = state.transitions[-1].message
    if state.secondary == "Interrupted" and why != MESSAGES["Interrupted"]:
        message = f"{why}. {message}"
    return state.with_message(message, state.modified)
