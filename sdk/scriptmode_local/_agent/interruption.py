"""Jobs that are interrupted through no fault of their script: why they ended, and their next run in the same folder.

A scheduler preempts a job, a machine goes down, a host or an agent is lost. The hosts end, their last checkpoints are
copied, and the job is Interrupted; models and other outputs are not delivered. It runs again as often as its limits
allow (`why_not_again`). The next agent finds the folder of the earlier run: the state, the logs, which it appends to,
and perhaps a request to stop, which it obeys. It removes everything else, and the script continues from its
checkpoints, as on Amazon SageMaker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from scriptmode._core.spec.job_failure import Failure
from scriptmode._core.spec.service_values import JobEvent
from scriptmode._core.text.messages import format_duration, pluralize
from scriptmode.errors import PlatformError
from scriptmode_local._agent.artifact_delivery import Delivery, Losses
from scriptmode_local._data import mounts
from scriptmode_local._hosts.agent_control import ENDED_ON_PURPOSE, AgentSignal, StopReason, Termination
from scriptmode_local._hosts.engine import find_control, find_engine, find_kind
from scriptmode_local._opt_ml.opt_ml import checkpoints_path
from scriptmode_local._outputs import checkpoints
from scriptmode_local._store import agent_log
from scriptmode_local._store.state import JobState, Outcome
from scriptmode_local._system.forked_tasks import Tasks
from scriptmode_runtime._files import beneath, directory_tree

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import Limits, Output
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder


#: Exit codes of a host that SIGTERM or SIGKILL ended.
_TERMINATED = (128 + 15, 128 + 9)
_MOST_STARTS = 3
#: What a run leaves in the folder and the next one makes again. The first has the record of the copied checkpoints,
#: without which nothing is copied from hosts of which a part is removed.
_OF_ONE_RUN = ("channels", "hosts", "output", "progress.json", "usage")


def why_not_again(limits: Limits, state: JobState, now: float) -> str:
    """Return why a job that is interrupted does not run again; "" for one that has retries or, as spot, time left.

    ``max_wait`` counts from the job's creation, and ends retries, too. Spot training whose last `_MOST_STARTS` runs did
    not come to train does not run again: nothing says that the next one would.
    """
    if limits.max_wait is not None and now >= state.created + limits.max_wait:
        return f"it is not started again, as max_wait, {limits.max_wait} s, has passed since its creation"
    interruptions = sum(transition.status == "Interrupted" for transition in state.transitions)
    if interruptions < (limits.max_retry_attempts or 0):
        return ""
    if not limits.use_spot_instances:
        if limits.max_retry_attempts:
            return f"it had been started again {pluralize(interruptions, 'time')}, which is all of max_retry_attempts"
        return "to have such a job started again, give it max_retry_attempts, or use_spot_instances=True and max_wait"
    runs = " ".join(transition.status for transition in state.transitions).split("Interrupted")[-_MOST_STARTS:]
    is_hopeless = len(runs) == _MOST_STARTS and not any("Training" in run for run in runs)
    return f"it is not started again, as {_MOST_STARTS} runs did not come to train" if is_hopeless else ""


def before_interruption(state: JobState) -> JobState:
    """Return the state of a job as it was before it became Interrupted, for which one retry was there."""
    return replace(state, transitions=state.transitions[:-1]) if state.secondary == "Interrupted" else state


def explain_end(
    folder: JobFolder, request: JobRequest, state: JobState, outcome: Outcome, *, was_signalled: bool
) -> Outcome:
    """Return the outcome of a job after asking its engine whether, and why, it ended the hosts or the agent.

    The outcome is Interrupted, with what was lost as its message, for a job that is to run again.
    """
    if not _may_be_of_engine(outcome, was_signalled=was_signalled) or folder.stop_requested() is not None:
        return outcome
    # A scheduler decides by itself how often, and until when, it starts spot training.
    is_scheduled = request.limits.use_spot_instances and find_kind(folder).pending_message
    not_again = "" if is_scheduled else why_not_again(request.limits, before_interruption(state), time.time())
    termination = _find_termination(folder, outcome, was_signalled=was_signalled)
    # Unless the agent was told to end, too, hosts of whose end the engine has no reason ended by themselves.
    if termination is not None and (was_signalled or termination.reason is not StopReason.UNKNOWN):
        return _explain(termination, outcome, not_again)
    if outcome.failure and _is_lost(outcome) and not not_again and not was_signalled:
        return Outcome("Interrupted", message=outcome.failure.cause)
    return outcome


def _may_be_of_engine(outcome: Outcome, *, was_signalled: bool) -> bool:
    """Return whether the engine may have ended the hosts or the agent of a job that ends like this."""
    if outcome.secondary in ("Completed", "MaxRuntimeExceeded", "MaxWaitTimeExceeded"):
        return False
    return was_signalled or _is_lost(outcome) or (outcome.failure and outcome.failure.exit_code) in _TERMINATED


def _is_lost(outcome: Outcome) -> bool:
    has_code = outcome.failure is not None and outcome.failure.exit_code is not None
    return outcome.kind == "InternalServerError" and not has_code


def _find_termination(folder: JobFolder, outcome: Outcome, *, was_signalled: bool) -> Termination | None:
    termination = find_control(folder).why_terminated(folder, was_signalled=was_signalled)
    is_known = termination is not None and termination.reason is not StopReason.UNKNOWN
    if outcome.is_machine_lost and outcome.failure and find_kind(folder).pending_message and not is_known:
        # The hosts notice the loss before the engine does.
        return Termination(StopReason.NODE_LOST, outcome.failure.cause)
    return termination


def _explain(termination: Termination, outcome: Outcome, not_again: str) -> Outcome:
    reason, text = termination.reason, termination.text
    if reason is StopReason.UNKNOWN:
        return _failed(text or "the job's agent got SIGTERM, and its scheduler does not know why")
    if reason in (StopReason.PREEMPTED, StopReason.NODE_LOST, StopReason.REQUEUED):
        if not not_again:
            return Outcome("Interrupted", message=text)
        return _failed(f"{text}; {not_again}")
    if reason is StopReason.TERMINATED:
        return outcome if not_again else Outcome("Interrupted", message=text)
    if reason in ENDED_ON_PURPOSE:
        return Outcome(ENDED_ON_PURPOSE[reason], message=text)
    return Outcome.failed("ClientError", Failure(text))


def _failed(cause: str) -> Outcome:
    return Outcome.failed("InternalServerError", Failure(cause))


def requeue(folder: JobFolder, reason: str) -> Outcome | None:
    """Queue the agent of an interrupted job again, which may end this process; return an outcome if that failed."""
    try:
        find_control(folder).signal(folder, AgentSignal.REQUEUE)
    except PlatformError as error:
        return _failed(f"{reason}; the job cannot be queued again: {error}")
    return None


def describe_lost_time(folder: JobFolder, state: JobState, output: Output) -> str:
    """Return how old the newest checkpoint was at the hosts' last line, or last sample of their usage, for the log."""
    if not output.checkpoint_uri:
        return "from its beginning, because it has no checkpoint_s3_uri"
    ends, saves = [], []
    for host in folder.hosts.glob("*"):
        for record in (folder.log(host.name), folder.usage_file(host.name)):
            with suppress(OSError):
                ends.append(record.stat().st_mtime)
        walk = os.walk(host / checkpoints_path(output))
        for file in (os.path.join(path, name) for path, _, names in walk for name in names):  # noqa: PTH118 - its texts
            with suppress(OSError):
                saves.append(os.lstat(file).st_mtime)
    if not saves or not checkpoints.record_path(folder).exists():
        return f"from the checkpoints in {output.checkpoint_uri}, if there are any"
    age = format_duration(max(0.0, max(ends, default=state.transitions[-1].started) - max(saves)))
    return f"from its newest checkpoint, which was {age} old"


def rescue_checkpoints(folder: JobFolder, job: Job, log: Callable[[str], None]) -> Losses:
    """Copy the last checkpoints of a run whose agent could not, because it was killed; return the losses.

    ``job`` has the hosts of that run.
    """
    # Without the variables of this run, which may have fewer hosts.
    fleet = find_engine(job.request.resources.host_kind).create_fleet(folder, job, Tasks(), {})
    sandboxes = list(fleet.sandboxes.values())
    sync = checkpoints.create_sync(folder, job.request, sandboxes)
    # Until `restore` ended, the checkpoints of the hosts are copies, of which a part may be missing.
    if sync is None or not sync.has_restored:
        return []
    return Delivery(folder, job.request, sandboxes, sync, folder.path.parent.parent, log).finish_checkpoints()


def prepare_next_run(folder: JobFolder, state: JobState, losses: Losses, lost: str) -> JobState:
    """Remove what an earlier run left in the folder, but its state and logs; return the state of a job that starts.

    ``losses``: what its last checkpoints lost; ``lost``: from where it goes on. Raises ``OSError`` or `DataError`.
    """
    mounts.detach(folder.hosts)
    with beneath.Directory(folder.path) as directory:
        for name in _OF_ONE_RUN:
            directory_tree.remove_beneath(directory, name)
    why = state.transitions[-1].message
    for reason, text in (*losses, ("Interrupted", f"the job started again: {why}")):
        state = state.with_event(JobEvent(reason, text, time=time.time()))
    for log in folder.log("host").parent.glob("*.log"):
        agent_log.append_line(log, f"scriptmode: the job starts again, as it was interrupted, {lost}")
    return state
