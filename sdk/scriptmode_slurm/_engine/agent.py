"""The agent of a job on Slurm, the batch step: where it is, why it ends, and its return to the queue."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from scriptmode.errors import PlatformError, ScriptmodeError
from scriptmode_local._hosts.agent_control import AgentLocation, AgentSignal, Presence, StopReason, Termination
from scriptmode_local._store.job_store import ENGINE_RECORD, JobFolder
from scriptmode_local._system.file_owner import user_name
from scriptmode_slurm._engine import batch_script, commands, problems
from scriptmode_slurm._engine.commands import JobStatus
from scriptmode_slurm._engine.settings import settings_from_json

if TYPE_CHECKING:
    from scriptmode_local._store.state import JobState

#: The keys of the job's number, and of the cluster that gave it, in the engine's record.
NUMBER, CLUSTER = "job", "cluster"
#: A heartbeat that is younger shows that the agent runs, without a call of Slurm; three are missed until then.
_HEARTBEAT_SECONDS = 15.0
#: States of a job (squeue(1)) by what they say of its agent; `commands.ACTIVE` are those that are not final.
_REASONS = {
    "BOOT_FAIL": StopReason.NODE_LOST,
    "CANCELLED": StopReason.USER,
    "DEADLINE": StopReason.TIME_LIMIT,
    "NODE_FAIL": StopReason.NODE_LOST,
    "OUT_OF_MEMORY": StopReason.OUT_OF_MEMORY,
    "PREEMPTED": StopReason.PREEMPTED,
    "REQUEUED": StopReason.REQUEUED,
    "TIMEOUT": StopReason.TIME_LIMIT,
}
_TEXTS = {
    StopReason.NODE_LOST: "a node of Slurm job {number} failed",
    StopReason.OUT_OF_MEMORY: "Slurm job {number} needed more memory than it asked for; ask for more: Slurm(mem=...)",
    StopReason.PREEMPTED: "Slurm job {number} was preempted by another job",
    StopReason.REQUEUED: "Slurm job {number} was requeued",
    StopReason.TIME_LIMIT: "Slurm job {number} reached its {limit}; give more: max_run, Slurm(time=..., deadline=...)",
}
#: What slurmstepd writes to the output of the batch script, agent.log, before it sends SIGTERM.
_SAID = re.compile(r"\*\*\* JOB (\d+) ON \S+ CANCELLED AT \S+(?: DUE TO ([A-Z ]*[A-Z]))?")
_STATES_OF_TEXTS = {
    "": "CANCELLED",
    "TIME LIMIT": "TIMEOUT",
    "PREEMPTION": "PREEMPTED",
    "NODE FAILURE": "NODE_FAIL",
    "JOB REQUEUE": "REQUEUED",
}
#: What slurmstepd and srun write there of a step that needed too much memory: by JobAcctGatherParams, and by a cgroup.
_OUT_OF_MEMORY = re.compile(r"exceeded memory limit|oom.kill event|: Out Of Memory$", re.IGNORECASE | re.MULTILINE)
_LOG_LINES = 20
#: Characters of a reason in the comment of a job.
_COMMENT_CHARACTERS = 500
_EARLY_SECONDS = 60.0
#: The grace time of a preempted job for whose end its nodes wait, and the interval in which slurmctld notices the end.
_LONGEST_GRACE_SECONDS, _CHECK_SECONDS = 30.0, 35.0
#: A later expected start is that of a cluster whose running jobs have no time limit: Slurm takes it for a year.
_FORESEEABLE_SECONDS = 30 * 86400.0
#: An earlier one is shown without its date.
_SAME_DAY_SECONDS = 43200.0
_QUEUED = frozenset({commands.PENDING, "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
_STARTING = frozenset({commands.RUNNING, "CONFIGURING"})
_HALTED = frozenset({"STOPPED", "SUSPENDED"})


class SlurmAgent:
    """Control of the agents that are batch steps; implements `agent_control.AgentControl`."""

    def locate(self, folder: JobFolder, state: JobState) -> AgentLocation:
        """Return where the batch step is.

        Slurm is asked only while the job is queued, or if the lock is free or the heartbeat old: flock is not to be
        relied on where the file system is not local.
        """
        if state.secondary not in ("Pending", "Interrupted") and folder.has_agent() and _has_heartbeat(folder):
            return AgentLocation(Presence.ALIVE)
        try:
            number = find_own_number(folder)
        except PlatformError as error:
            return AgentLocation(Presence.UNKNOWN, str(error))
        if number is None:
            # The client that submits the job holds the lock until the number is recorded.
            return AgentLocation(Presence.ALIVE if folder.has_agent() else Presence.GONE)
        try:
            status = commands.STATES.status(number, is_urgent=folder.stop_requested() is not None)
            if status is not None and status.state == "CANCELLED":
                # Only the accounting knows by whom; in the first second it calls a job that never ran "allocation".
                record = commands.find_record(number, wait=0)
                status = replace(record, name=status.name) if record else status
        except PlatformError as error:
            return AgentLocation(Presence.UNKNOWN, f"Slurm does not answer: {error}")
        if status is None or not _is_own(folder, status):
            unknown = Termination(text=f"Slurm does not know job {number} any more")
            return AgentLocation(Presence.GONE, termination=unknown)
        return _describe_location(folder, status)

    def why_terminated(self, folder: JobFolder, *, was_signalled: bool) -> Termination | None:
        """Return why Slurm ends the job, as it says at the moment; None where it says nothing of an end."""
        number = find_number(folder)
        if number is None:
            return None
        try:
            termination = _find_termination(folder, number, was_signalled=was_signalled)
        except PlatformError as error:
            termination = Termination(text=f"Slurm ended the job, and does not say why: {error}")
        is_known = termination is not None and termination.reason is not StopReason.UNKNOWN
        if not is_known and _OUT_OF_MEMORY.search(folder.agent_log_tail(_LOG_LINES)):
            # Slurm may say it of the step alone, while the job is RUNNING.
            return _describe_termination(JobStatus(number, "OUT_OF_MEMORY"))
        return termination

    def signal(self, folder: JobFolder, what: AgentSignal) -> bool:
        """Tell Slurm, which has the batch script and all steps; return whether there is a job."""
        if what is AgentSignal.REQUEUE:
            _requeue(folder)
        elif what in (AgentSignal.FAILED, AgentSignal.STOPPED):
            # slurmctld may be away, and the job has ended.
            with suppress(ScriptmodeError, OSError):
                _let_slurm_tell(folder, is_stopped=what is AgentSignal.STOPPED)
        else:
            is_killed = what is AgentSignal.KILL
            number = find_own_job(folder) if is_killed else find_own_number(folder)
            if number is None:
                return False
            commands.cancel(number, *(commands.KILL if is_killed else commands.ONLY_PENDING))
            commands.STATES.forget(number)
        return True


def _requeue(folder: JobFolder) -> None:
    """Return the batch job to the queue, which ends this process; raise `PlatformError`."""
    number = find_number(folder)
    status = commands.find_details(number) if number is not None else None
    if number is None or status is None:
        what = f"Slurm does not know the job of training job {folder.name}"
        raise PlatformError(what, advice=f"start it again: scriptmode rerun {folder.name}")
    # Slurm requeues the jobs of a lost node, and most preempted ones, by itself.
    if _is_queued_again(status):
        return
    try:
        commands.requeue(number)
    except PlatformError:
        # The command may end by the signal that it asks for, and is then refused when it is run once more.
        status = commands.find_details(number)
        if status is None or not _is_queued_again(status):
            raise


def _let_slurm_tell(folder: JobFolder, *, is_stopped: bool) -> None:
    """End the batch job as its state says, so that Slurm's accounting has it CANCELLED or PREEMPTED, not FAILED.

    The first line of a failure is the job's comment, which squeue shows, unless the user gave one.
    """
    number, given = find_number(folder), settings_from_json(folder.read_job().engine).all_options()
    if number is None:
        return
    if not is_stopped and "comment" not in given:
        commands.set_comment(number, folder.read_state().reason.partition("\n")[0][:_COMMENT_CHARACTERS])
    status = commands.find_details(number, wait=0)
    if status is None or status.state != commands.RUNNING:
        return
    left = status.end - time.time() if status.preempted and status.end else _LONGEST_GRACE_SECONDS
    if is_stopped or left < _LONGEST_GRACE_SECONDS:
        # It is PREEMPTED only if it runs until its grace time is over.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if is_stopped:
            commands.cancel(number, wait=0)
        time.sleep(max(0.0, left) + _CHECK_SECONDS)


def _is_queued_again(status: JobStatus) -> bool:
    return status.state in _QUEUED or status.restarts > int(os.environ.get("SLURM_RESTART_COUNT", "0"))


def find_number(folder: JobFolder) -> int | None:
    """Return the recorded number of the job, which is this machine's cluster's for a process of the job."""
    number = folder.read_record(ENGINE_RECORD).get(NUMBER, "")
    return int(number) if number.isdigit() else None


def find_own_number(folder: JobFolder) -> int | None:
    """Return the number of the job on this machine's cluster, None without one; raise `PlatformError` for another's.

    Clusters that share home directories have jobs of the same numbers.
    """
    own, here = folder.read_record(ENGINE_RECORD).get(CLUSTER, ""), ""
    if own and (here := commands.STATES.cluster()) != own:
        what = f"training job {folder.name} is on the Slurm cluster {own!r}, and this machine belongs to {here!r}"
        raise PlatformError(what, advice=f"use a machine of {own!r}, or set SLURM_CONF to its configuration")
    return find_number(folder)


def find_own_job(folder: JobFolder) -> int | None:
    """Return the number of the job if Slurm knows it, None otherwise; raise `PlatformError`."""
    number = find_own_number(folder)
    status = None if number is None else commands.find_status(number, wait=0)
    return number if status is not None and _is_own(folder, status) else None


def _is_own(folder: JobFolder, status: JobStatus) -> bool:
    """Return whether a job has the name of the training job: a cluster that lost its state counts from 1 again."""
    return status.name in ("", folder.name)


def _has_heartbeat(folder: JobFolder) -> bool:
    with suppress(OSError):
        # The clocks of the nodes and of this machine may differ by some seconds.
        return abs(time.time() - folder.lock_file.stat().st_mtime) < _HEARTBEAT_SECONDS
    return False


def _describe_location(folder: JobFolder, status: JobStatus) -> AgentLocation:
    number = status.job_id
    if status.state in _QUEUED:
        if problem := problems.pending_problem(status.reason, number, status.reason_seconds):
            return AgentLocation(Presence.WAITING, str(problem), never_starts=True)
        return AgentLocation(Presence.WAITING, _pending_message(status), position=status.position)
    if status.state in _HALTED:
        return AgentLocation(Presence.UNKNOWN, f"Slurm job {number} is {status.state.lower()}")
    if status.state in commands.ACTIVE:
        # An agent that holds the lock has begun, or ends a run that was interrupted, as a job that is COMPLETING does.
        starts = status.state in _STARTING and not folder.has_agent()
        return AgentLocation(Presence.ALIVE, f"Slurm starts the job on {status.nodes or 'its nodes'}" if starts else "")
    return AgentLocation(Presence.GONE, termination=_describe_termination(status))


def _pending_message(status: JobStatus) -> str:
    """Return the message of a pending job. It has no time that passes, as each new message is a line of the log."""
    parts = [f"number {status.position} in partition {status.partition}"] if status.position else []
    now = time.time()
    if status.start is not None and 0 < status.start - now < _FORESEEABLE_SECONDS:
        form = "%H:%M" if status.start - now < _SAME_DAY_SECONDS else "%Y-%m-%d %H:%M"
        parts.append(f"expected start {time.strftime(form, time.localtime(status.start))}")
    if status.reason:
        parts.append(status.reason)
    return ": ".join(filter(None, ("Waiting in Slurm's queue", "; ".join(parts))))


def _find_termination(folder: JobFolder, number: int, *, was_signalled: bool) -> Termination | None:
    """Return why Slurm ends the job of this process; None if it says nothing of an end. Raises `PlatformError`."""
    status = commands.find_details(number)
    if status is not None and status.state == commands.RUNNING:
        return _find_notice(folder, status, was_signalled=was_signalled)
    # slurmctld shows a job that ends as COMPLETING, whatever ends it. The accounting knows that at once.
    record = commands.find_record(number)
    if record is not None and record.state in _REASONS:
        return _describe_termination(record)
    said = _SAID.findall(folder.agent_log_tail(_LOG_LINES))
    if said and int(said[-1][0]) == number:
        return _describe_termination(JobStatus(number, _STATES_OF_TEXTS.get(said[-1][1], said[-1][1])))
    return None


def _find_notice(folder: JobFolder, status: JobStatus, *, was_signalled: bool) -> Termination | None:
    """Return why Slurm is about to end a job that still runs; None if it is not."""
    # In the grace time of a preemption, in which the steps got SIGTERM and this one did not.
    if status.preempted is not None:
        return _describe_termination(replace(status, state="PREEMPTED"))
    # The notice before the time limit, which may come a minute early (sbatch(1), --signal).
    notice = max(batch_script.LEAST_NOTICE, folder.read_job().stop_grace) + _EARLY_SECONDS
    is_late = was_signalled and status.end is not None and status.end - time.time() < notice
    return _describe_termination(replace(status, state="TIMEOUT")) if is_late else None


def _describe_termination(status: JobStatus) -> Termination:
    """Return why Slurm ends, or ended, a job."""
    reason = _REASONS.get(status.state, StopReason.UNKNOWN)
    number = status.job_id
    if reason is StopReason.USER:
        user = "" if status.cancelled_by is None else f" by {user_name(status.cancelled_by)}"
        return Termination(reason, f"Slurm job {number} was cancelled{user}")
    if problems.is_launch_failure(status.reason, status.signal):
        return Termination(reason, problems.describe_launch_failure(number, status.nodes))
    if status.state == "FAILED" and not status.signal and status.exit_code not in (None, 0, 1):
        # The agent itself ends with 0 or 1.
        ended = f"the batch script of Slurm job {number} ended with exit code {status.exit_code} before the job's agent"
        return Termination(reason, f"{ended} began; see the lines of Slurm(setup=...), and agent.log")
    if reason is StopReason.UNKNOWN:
        how = f"signal {status.signal}" if status.signal else f"exit code {status.exit_code}"
        text = f"the job's agent was killed or crashed: Slurm job {number} is {status.state}, {how}"
        return Termination(StopReason.KILLED if status.signal == signal.SIGKILL else reason, text)
    limit = "deadline" if status.state == "DEADLINE" else "time limit"
    return Termination(reason, _TEXTS[reason].format(number=number, limit=limit))
