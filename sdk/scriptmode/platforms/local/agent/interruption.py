"""Jobs that their engine interrupts: why it told an agent to end, and the run of the next agent in the same folder.

A scheduler preempts a job, or one of its nodes is lost. The hosts end, their last checkpoints are copied, the job is
Interrupted and its agent is queued again; models and other outputs are not delivered. The next agent finds the folder
of the first run: the state, the logs, which it appends to, and perhaps a request to stop, which it obeys. It removes
everything else, and the script continues from its checkpoints, as on Amazon SageMaker.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scriptmode.core.spec.job_failure import Failure
from scriptmode.core.spec.service_values import JobEvent
from scriptmode.data import mounts
from scriptmode.errors import PlatformError
from scriptmode.platforms.local.hosts.agent_control import ENDED_ON_PURPOSE, StopReason, Termination
from scriptmode.platforms.local.hosts.engine import find_agent_control
from scriptmode.platforms.local.store import heartbeat, host_logs
from scriptmode.platforms.local.store.state import Outcome
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from scriptmode.core.spec.job_request import JobRequest
    from scriptmode.platforms.local.store.job_store import JobFolder

#: Exit codes of a host that SIGTERM or SIGKILL ended.
_TERMINATED = (128 + 15, 128 + 9)
#: What a run leaves in the folder and the next one makes again.
_OF_ONE_RUN = ("channels", "hosts", "output", "progress.json", "usage")


def explain_end(folder: JobFolder, request: JobRequest, outcome: Outcome, *, was_signalled: bool) -> Outcome:
    """Return the outcome of a job after asking its engine whether, and why, it ended the hosts or the agent.

    The outcome is Interrupted, with the engine's text as its message, for a job that is to run again.
    """
    if outcome.secondary in ("Completed", "MaxRuntimeExceeded") or folder.stop_requested() is not None:
        return outcome
    code = outcome.failure.exit_code if outcome.failure else None
    is_lost = code is None and outcome.kind == "InternalServerError"
    if not (was_signalled or is_lost or code in _TERMINATED):
        return outcome
    engine = find_agent_control(request.resources.host_kind)
    termination = engine.why_terminated(folder, was_signalled=was_signalled)
    is_known = termination is not None and termination.reason is not StopReason.UNKNOWN
    if outcome.is_machine_lost and outcome.failure and engine.pending_message and not is_known:
        # The hosts notice the loss before the engine does.
        termination = Termination(StopReason.NODE_LOST, outcome.failure.cause)
    if termination is None:
        return outcome
    return _explain(termination, outcome, was_signalled=was_signalled, is_spot=request.limits.use_spot_instances)


def _explain(termination: Termination, outcome: Outcome, *, was_signalled: bool, is_spot: bool) -> Outcome:
    reason, text = termination.reason, termination.text
    if reason in (StopReason.PREEMPTED, StopReason.NODE_LOST, StopReason.REQUEUED):
        if is_spot:
            return Outcome("Interrupted", message=text)
        return _failed(f"{text}; to have such a job queued again, give it use_spot_instances=True and max_wait")
    if reason in ENDED_ON_PURPOSE:
        return Outcome(ENDED_ON_PURPOSE[reason], message=text)
    if reason is StopReason.OUT_OF_MEMORY:
        return Outcome.failed("ClientError", Failure(text))
    # Unless the agent was told to end, too, the hosts ended by themselves.
    unknown = _failed(text or "the job's agent got SIGTERM, and its scheduler does not know why")
    return unknown if was_signalled else outcome


def _failed(cause: str) -> Outcome:
    return Outcome.failed("InternalServerError", Failure(cause))


def requeue(folder: JobFolder, request: JobRequest, reason: str) -> Outcome | None:
    """Queue the agent of an interrupted job again, which may end this process; return an outcome if that failed."""
    try:
        find_agent_control(request.resources.host_kind).requeue(folder)
    except PlatformError as error:
        return _failed(f"{reason}; the job cannot be queued again: {error}")
    return None


def begin_next_run(folder: JobFolder, lock: int) -> None:
    """Prepare the folder for another run of a job that an earlier agent ran; raise ``OSError`` or `DataError`.

    The state becomes Interrupted since the last heartbeat of an agent that could not record that. ``lock`` is the job's
    lock, held.
    """
    state = folder.read_state()
    if not folder.never_had_processes:
        state = state.with_status("Interrupted", folder.lock_file.stat().st_mtime)
        heartbeat.write_heartbeat(lock)
        mounts.detach(folder.hosts)
        with heartbeat.Heartbeat(lock).beating(), beneath.Directory(folder.path) as directory:
            for name in _OF_ONE_RUN:
                directory.remove_tree(name)
        message = state.transitions[-1].message
        state = state.with_event(JobEvent("Interrupted", f"the job started again: {message}", time=time.time()))
        for log in folder.log("host").parent.iterdir():
            host_logs.append_line(log, "scriptmode: the job starts again, as it was interrupted")
    folder.write_state(state.with_status("Starting", time.time()))
