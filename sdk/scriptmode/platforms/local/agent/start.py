"""The start of a job: its folder and its agent, both or neither; and of any agent."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode.errors import PlatformError
from scriptmode.platforms.local.hosts.process_host import start_detached
from scriptmode.platforms.local.store import logs
from scriptmode.platforms.local.system.interrupts import deferred_interrupts
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from pathlib import Path

    from scriptmode.platforms.local.store.job_record import Job
    from scriptmode.platforms.local.store.job_store import JobStore
    from scriptmode.platforms.local.store.state import JobState


def start_job(store: JobStore, job: Job, state: JobState) -> None:
    """Write a new job's folder and start its agent; raise `PlatformError` and remove the folder if that fails.

    Ctrl-C is deferred until the agent runs, for some tenths of a second: a folder without an agent is a failed job.
    """
    with deferred_interrupts(), store.create(job, state) as (folder, lock):
        try:
            start_agent("scriptmode.platforms.local.agent", folder.path, lock, folder.agent_log)
        except PlatformError:
            with suppress(OSError):
                beneath.remove_tree(folder.path)
            raise


def start_agent(module: str, folder: Path, lock: int, log: Path) -> None:
    """Run a module as the agent of the job in ``folder``, which inherits the held lock; raise `PlatformError`."""
    try:
        start_detached((sys.executable, "-m", module, str(folder), str(lock)), log=log, keep=lock)
    except OSError as error:
        tail = logs.last_lines(log, 5, 1000)
        raise PlatformError(
            f"the job's agent did not start: {error}",
            advice="check this machine: scriptmode doctor" + (f". The agent's log ends with\n{tail}" if tail else ""),
        ) from error
