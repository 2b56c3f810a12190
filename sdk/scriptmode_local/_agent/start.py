"""The start of a job: its folder and its agent's process, both or neither."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode.errors import JobNotFoundError, ScriptmodeError
from scriptmode_local._hosts.engine import find_engine
from scriptmode_local._system.interrupts import deferred_interrupts

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobStore
    from scriptmode_local._store.state import JobState


def start_job(store: JobStore, job: Job, state: JobState) -> None:
    """Write a new job's folder and have its engine start the agent.

    A job whose state has ended needs no agent. Raises what `Engine.launch` raises, after the folder was removed. Ctrl-C
    is deferred until the agent is started or submitted, for less than a tenth of a second, or some seconds where a
    scheduler is busy: a folder without an agent is a failed job.
    """
    engine = find_engine(job.request.resources.host_kind)
    store.remove_orphans()
    with deferred_interrupts(), store.create(job, state) as (folder, lock):
        if state.ended:
            return
        try:
            engine.launch(folder, job, lock)
        except ScriptmodeError:
            from scriptmode_runtime._files import directory_tree

            with suppress(OSError):
                directory_tree.remove_tree(folder.path)
            raise


def remove_unstarted(store: JobStore, request: JobRequest) -> bool:
    """Remove the job of the same request whose agent never started; return whether it did.

    The process that created it was killed in between. Its caller, such as the client of a server, had no answer and
    repeats the call: the job is created once, and runs. A job on Slurm is kept, because it may have been submitted.
    """
    if request.resources.host_kind.is_scheduled:
        return False
    try:
        folder = store.find(request.name)
        if not folder.never_had_processes or folder.read_job().request != request:
            return False
        if is_lost := not folder.read_state().ended and not folder.has_agent():
            # One with retries would start again.
            folder.request_stop()
        from scriptmode_local._agent import recovery, removal

        reason = recovery.reconcile(folder).reason
        if not folder.never_had_processes or not (is_lost or reason.startswith("InternalServerError")):
            return False
        return removal.delete_ended_job(folder)
    except JobNotFoundError:
        return True
