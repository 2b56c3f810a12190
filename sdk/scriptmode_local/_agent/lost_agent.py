"""A job whose agent is gone, does not answer, or waits: the end of its processes, another run, a record of its end.

`recovery` calls this module, and says when.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from scriptmode._core.spec.job_failure import Failure
from scriptmode._core.text.messages import Problem, format_duration
from scriptmode.errors import DataError, PlatformError, UnreadableJobError
from scriptmode_local._hosts.agent_control import ENDED_ON_PURPOSE, AgentSignal, StopReason, Termination
from scriptmode_local._hosts.engine import find_control, find_engine, find_kind
from scriptmode_local._hosts.local_agent import is_server_ending
from scriptmode_local._store import agent_log, heartbeat
from scriptmode_local._store.state import MESSAGES, JobState, Outcome
from scriptmode_runtime._processes import proc, process_tree
from scriptmode_runtime.contract import BASE_DIR_VARIABLE

if TYPE_CHECKING:
    from scriptmode_local._hosts.agent_control import AgentControl, AgentLocation
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_runtime._processes.proc import ProcessIdentity

#: Seconds in which an agent that got SIGCONT has to work again.
WAKING_SECONDS = 10.0
#: Seconds after its time limit and the grace period in which a working agent has ended a job for certain.
_OVERDUE_SECONDS = 15.0
STOPPED = "is stopped, and goes on by: kill -CONT {pid}"


def with_waiting_agent(folder: JobFolder, state: JobState, control: AgentControl, location: AgentLocation) -> JobState:
    """Return the state of a job whose agent waits in the engine's queue; end a job that would wait for ever."""
    if location.never_starts:
        control.signal(folder, AgentSignal.WITHDRAW)
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


def handle_silent_agent(folder: JobFolder, state: JobState, since: float) -> JobState:
    """Return the state of a job whose agent does not answer; end an agent that should have ended the job by now."""
    agent = folder.read_processes().get("agent")
    process = f" (process {agent.pid})" if agent else ""
    age = format_duration(time.time() - since)
    clock = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(since))
    silence = f"the job's agent{process} has not answered since {clock}, for {age}"
    overdue = _find_overdue(folder, state)
    if agent and overdue:
        if _answers_when_woken(folder, agent):
            return folder.with_stop_request(folder.read_state())
        if _kill_agent(folder):
            killed = Termination(text=f"{silence} and was killed, as {overdue}")
            return record_end(folder, lambda state: end_rest(folder, state, killed))
        return replace(state, note=f"{silence}; it cannot be ended: kill process {agent.pid} as its user or as root")
    what = STOPPED.format(pid=agent.pid) if agent and proc.is_stopped(agent) else "is stopped or hangs"
    return replace(state, note=f"{silence}: it {what}; end the job: scriptmode stop {folder.name}")


def _find_overdue(folder: JobFolder, state: JobState) -> Problem | None:
    """Return why a job should have ended by now; ``None`` while it may continue."""
    if folder.stop_requested() is not None:
        return Problem("the job was asked to stop")
    now = time.time()
    trained = state.seconds_in("Training", now)
    if not trained:
        return None
    job = folder.read_job()
    limit = job.request.limits.max_run
    # A working agent ends the job after the limit and the grace period.
    overdue = trained + state.seconds_in("Stopping", now) - (limit + job.stop_grace)
    return Problem(f"MaxRuntimeInSeconds, {limit} s, had passed") if overdue > _OVERDUE_SECONDS else None


def _answers_when_woken(folder: JobFolder, agent: ProcessIdentity) -> bool:
    """Send SIGCONT to an agent; return whether it works again. It then ends the job by itself."""
    process_tree.send_signal(agent, signal.SIGCONT)
    process_tree.wait_until(lambda: folder.silent_since() is None or not proc.is_running(agent), WAKING_SECONDS)
    return folder.silent_since() is None and proc.is_running(agent)


def _kill_agent(folder: JobFolder) -> bool:
    """Kill an agent; return whether no process holds the job's lock any more."""
    with suppress(PlatformError):
        find_control(folder).signal(folder, AgentSignal.KILL)
    return process_tree.wait_until(lambda: not folder.has_agent(), process_tree.KILL_SECONDS)


def record_end(folder: JobFolder, find_outcome: Callable[[JobState], Outcome], *, is_gone: bool = False) -> JobState:
    """Record the end of a job that has no agent, under the job's lock, and return its state.

    With ``is_gone`` it ended with the last heartbeat of its agent, which may be long ago.
    """
    with folder.try_lock() as (is_locked, lock):
        state = folder.read_state()
        if not is_locked or state.ended:
            state = folder.with_stop_request(state)
            if is_locked is None and not state.ended:
                state = state.unrecorded()
            return state
        outcome = find_outcome(state)
        if outcome.secondary == "Interrupted":
            if who := _find_other_starter(folder):
                return replace(state, note=f"{outcome.message}; {who} starts it again")
            try:
                return _start_again(folder, state, outcome.message, lock)
            except (OSError, PlatformError) as error:
                cause = f"{outcome.message}; the job cannot be started again: {error}"
                outcome = Outcome.failed("InternalServerError", Failure(cause))
        if outcome.secondary == "Stopped":
            state = folder.with_stop_request(state)
        message, reason, failure = outcome.message, outcome.reason, outcome.failure
        when = folder.last_heartbeat(state) if is_gone else time.time()
        ended = state.with_status(outcome.secondary, when, message=message, reason=reason, failure=failure)
        # A job whose record cannot be read has no known hosts.
        with suppress(PlatformError):
            hosts = folder.read_job().request.resources.hosts
            ended = agent_log.with_losses(ended, {host: folder.log(host) for host in hosts})
        # On a full disk the caller still gets the state; the next call tries to write it again.
        with suppress(OSError):
            folder.write_state(ended)
        if folder.is_deleted(lock):
            raise folder.gone()
        return ended


def end_rest(folder: JobFolder, state: JobState, termination: Termination) -> Outcome:
    """Stop the processes of a job whose agent is gone; return the job's outcome."""
    problem = end_orphans(folder)
    if secondary := ENDED_ON_PURPOSE.get(termination.reason):
        return Outcome(secondary, message="" if folder.stop_requested() else termination.text)
    cause = termination.text or _cause_of_death(folder, state)
    # One that did not answer was killed because it should have ended the job.
    is_killed = termination.reason is StopReason.KILLED
    if problem is None and (is_killed or termination == Termination()):
        not_again = _why_not_again(folder, state, is_killed=is_killed)
        if not_again == "" and folder.stop_requested() is None:
            return Outcome("Interrupted", message=cause)
        if not_again == "":
            _remove_unneeded_files(folder)
            return Outcome("Stopped")
        cause += f"; {not_again}" if not_again else ""
    if _never_started(folder, state):
        cause += f", start it again: scriptmode rerun {folder.name}"
    _remove_unneeded_files(folder)
    cause += (
        f"; its processes that were found were ended{f', but {problem}' if problem else ''}; "
        f"its files are in {folder.path}"
    )
    log = folder.agent_log_tail()
    kind = "ClientError" if termination.reason is StopReason.OUT_OF_MEMORY else "InternalServerError"
    return Outcome.failed(kind, Failure(cause + ("; agent.log ends with" if log else ""), traceback=log))


def _remove_unneeded_files(folder: JobFolder) -> None:
    from scriptmode_local._agent import cleanup

    with suppress(OSError):
        cleanup.remove_unneeded_files(folder, failed=True)


def _never_started(folder: JobFolder, state: JobState) -> bool:
    return state.secondary in ("Pending", "Starting") and folder.never_had_processes


def _why_not_again(folder: JobFolder, state: JobState, *, is_killed: bool) -> str | None:
    """Return why a job whose agent is gone does not run again, "" for one that does; None for one that never would."""
    from scriptmode_local._agent import interruption

    with suppress(PlatformError):
        limits = folder.read_job().request.limits
        # A scheduler queues again what it lost, but not what was killed.
        if (find_kind(folder).pending_message and not is_killed) or state.secondary == "Stopping":
            return None
        if state.secondary == "Pending" and folder.read_processes():
            # Nothing of the script has run.
            return ""
        if folder.read_processes():
            # The retry is there of which its agent knew when it ended itself.
            state = interruption.before_interruption(state)
        if limits.use_spot_instances or limits.max_retry_attempts:
            return interruption.why_not_again(limits, state, time.time())
    return None


def _start_again(folder: JobFolder, state: JobState, why: str, lock: int) -> JobState:
    """Start another agent of a job whose agent is gone, which inherits ``lock``; return the state until it works.

    Raises ``OSError`` or `PlatformError`.
    """
    from scriptmode_local._outputs import checkpoints

    job = folder.read_job()
    if state.secondary == "Interrupted" and not folder.read_processes():
        # The agent that was started last ended before it began, which counts as a run.
        state = state.with_status("Starting", folder.last_heartbeat(state))
    if state.secondary != "Pending" or folder.never_had_processes:
        state = state.with_status("Interrupted", folder.last_heartbeat(state), message=why)
        folder.write_state(state)
    # No agent of the next run has recorded itself yet; meanwhile it is not silent.
    folder.write_processes({})
    if not (job.request.resources.host_kind.is_scheduled or heartbeat.is_of_this_boot(folder.lock_file)):
        # After a power cut a file has its name, and perhaps not its content: no checkpoint of the hosts is copied.
        # Slurm's nodes have boots of their own.
        checkpoints.record_path(folder).unlink(missing_ok=True)
    heartbeat.write_heartbeat(lock)
    find_engine(job.request.resources.host_kind).launch(folder, job, lock)
    return state


def _find_other_starter(folder: JobFolder) -> str:
    """Return who else starts a job again, because this process ends, or has another user or S3; "" for this one."""
    from scriptmode_local._inputs import s3_locations
    from scriptmode_local._system import file_owner

    if is_server_ending(folder):
        return "the next scriptmode serve"
    if owner := file_owner.find_other_owner(folder.path):
        return owner
    try:
        s3_locations.require_server(folder.read_job().request, folder.path.parent.parent)
    except DataError:
        return "scriptmode serve, or a command in a shell with the variables that it prints,"
    return ""


def _cause_of_death(folder: JobFolder, state: JobState) -> str:
    """Return the cause of an agent's end: it never started, or it was killed or crashed."""
    if state.secondary == "Interrupted" and not folder.read_processes():
        return "the agent that was to start the job again was killed or crashed before it began"
    if _never_started(folder, state):
        why = ", because the process that created the job was killed, or the machine went down, in that moment"
        return f"the job's agent never started{'' if folder.agent_log_tail() else why}; nothing of the script has run"
    agent = folder.read_processes().get("agent")
    process = f" (process {agent.pid})" if agent else ""
    return f"the job's agent{process} was killed or crashed in {state.secondary}"


def end_orphans(folder: JobFolder) -> Problem | None:
    """Stop the processes, mounts and containers of a job whose agent is dead; return what failed."""
    from scriptmode_local._data import mounts
    from scriptmode_local._outputs import packed_artifacts

    processes = folder.read_processes()

    def orphaned_processes() -> list[int]:
        launchers = [identity.pid for identity in processes.values() if proc.is_running(identity)]
        below = [pid for launcher in launchers for pid in process_tree.descendants(launcher)]
        # The base directory is in the environment of a host's processes; those whose parents died are found only by it.
        return list({*launchers, *below, *process_tree.find_by_variable(f"{BASE_DIR_VARIABLE}={folder.hosts}/")})

    with suppress(DataError):
        # First of all: access below a mount whose server is dead fails or hangs.
        mounts.detach(folder.hosts)
    problems = [] if process_tree.kill_until_gone(orphaned_processes) else ["some of them could not be killed"]
    try:
        # What is found by the request alone stays where its record is damaged.
        with suppress(UnreadableJobError):
            find_engine(find_kind(folder)).remove_outside_folder(folder, os.environ)
    except PlatformError as error:
        problems.append(str(error))
    with suppress(OSError, PlatformError):
        packed_artifacts.remove_drafts(folder.read_job().request, folder.output)
    return Problem(", and ".join(problems)) if problems else None
