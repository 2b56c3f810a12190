"""The agent of a job whose hosts are on this machine: a detached process, which the engine starts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from scriptmode.errors import PlatformError
from scriptmode.platforms.local.hosts.process_host import start_detached
from scriptmode.platforms.local.store import logs

if TYPE_CHECKING:
    from pathlib import Path

    from scriptmode.platforms.local.store.job_record import Job
    from scriptmode.platforms.local.store.job_store import JobFolder

#: The module that runs the agent of a training job. It is named, not imported: agents import this package.
AGENT_MODULE = "scriptmode.platforms.local.agent"


class LocalAgent:
    """The part of `engine.Engine` that concerns the agent, for the engines whose hosts are on this machine."""

    def launch(self, folder: JobFolder, job: Job, lock: int) -> None:  # noqa: ARG002 - the agent reads the job itself
        """Start the agent as a detached process, which inherits the held lock; raise `PlatformError`."""
        start_agent(AGENT_MODULE, folder.path, lock, folder.agent_log)


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
