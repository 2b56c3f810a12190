"""What the processes of a job that trains do at a moment, with the stacks of Python: its launchers write them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.machine.clock import SYSTEM
from scriptmode.errors import PlatformError
from scriptmode_local._agent.recovery import reconcile
from scriptmode_local._opt_ml.opt_ml import Sandbox
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode_local._store.job_store import JobFolder

#: Seconds for answers, which take about two, more on a loaded machine.
_SECONDS, _POLL_SECONDS = 15.0, 0.1


def read_stacks(folder: JobFolder, places: Mapping[str, Path]) -> dict[str, str]:
    """Return them by host, of those that answer; raise `PlatformError` for a job that does not train."""
    if (status := reconcile(folder).secondary) != "Training":
        what = f"training job {folder.name} is {status}"
        raise PlatformError(what, f"look at its log: scriptmode logs {folder.name}")
    hosts = [Sandbox(host, path, contract.DEFAULT_BASE_DIR) for host, path in places.items()]
    asked = [sandbox for sandbox in hosts if sandbox.request_stacks()]
    answers: dict[str, str] = {}
    deadline = SYSTEM.now() + _SECONDS
    while len(answers) < len(asked) and SYSTEM.now() < deadline:
        SYSTEM.sleep(_POLL_SECONDS)
        answers = {sandbox.host: text for sandbox in asked if (text := sandbox.read_stacks()) is not None}
    return answers
