"""What is done about a job whose agent died without ending it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode.errors import DataError
from scriptmode.platforms.local import cluster
from scriptmode_runtime import beneath
from scriptmode_runtime.contract import BASE_DIR_VARIABLE

if TYPE_CHECKING:
    from scriptmode.platforms.local.state import JobState
    from scriptmode.platforms.local.store import JobFolder


#: How often a job that is watched is asked whether its agent lives.
_AGENT_SECONDS = 0.5


def settled(folder: JobFolder) -> JobState:
    """Give where a job stands now; one that no agent works on any more is ended first."""
    state = folder.read_state()
    if state.ended:
        return state
    with folder.owned() as owned:
        if owned:
            state = folder.read_state()
            return state if state.ended else _bury(folder, state)
    return with_stop(folder, folder.read_state())


class Watched:
    """A job that is looked at many times a second: what did not change is not read again, a lost agent found soon."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._state: JobState | None = None
        self._version: object = None
        self._next = 0.0

    def settled(self) -> JobState:
        """Give what `settled` gives, an agent's death half a second late."""
        # Before the state is read: what is written meanwhile is then seen by the next look.
        version = self._folder.version()
        if self._state is None or version != self._version or time.monotonic() >= self._next:
            self._state = settled(self._folder)
            self._version = version
            self._next = time.monotonic() + _AGENT_SECONDS
        return self._state


def with_stop(folder: JobFolder, state: JobState) -> JobState:
    """Let a job be Stopping from the moment it was asked to stop; the agent says the same a moment later."""
    asked = folder.stop_asked() if state.stoppable else None
    return state if asked is None else state.moved("Stopping", asked)


def _bury(folder: JobFolder, state: JobState) -> JobState:
    from scriptmode.platforms.local.hosts import mounts, tree

    processes = folder.read_processes()

    def left() -> list[int]:
        launchers = [identity.pid for identity in processes.values() if tree.running(identity)]
        below = [pid for launcher in launchers for pid in tree.descendants(launcher)]
        # A host's processes carry its base directory; those whose parents died are found by that alone.
        return list({*launchers, *below, *tree.with_variable(f"{BASE_DIR_VARIABLE}={folder.hosts}/")})

    with suppress(DataError):
        # What served it is dead: nothing below may be touched before.
        mounts.detach(folder.hosts)
    gone = tree.kill_until_gone(left)
    stays = _clear_outside(folder)
    with suppress(OSError):
        beneath.remove_tree(folder.channels)
    agent = processes.get("agent")
    reason = (
        f"InternalServerError: the job's agent{f' (process {agent.pid})' if agent else ''} was killed or crashed in "
        f"{state.secondary}; the processes of it that were found were ended"
        f"{'' if gone else ', but some of them would not go'}{stays and f', but {stays}'}; "
        f"what they left is in {folder.path}"
    )
    log = folder.agent_log_tail()
    buried = state.moved("Failed", time.time(), reason=f"{reason}; agent.log ends with\n{log}" if log else reason)
    # A full disk must not hide what happened; whoever asks next tries again.
    with suppress(OSError):
        folder.write_state(buried)
    return buried


def _clear_outside(folder: JobFolder) -> str:
    """Remove what the job has outside its folder: launchers' directories, or what Docker has; say what was not done.

    The files of containers become the caller's.
    """
    from scriptmode.platforms.local import container_fleet, process_fleet

    job = folder.read_job()
    if not cluster.is_in_containers(job.request):
        process_fleet.remove_scratch(job.request, os.environ)
        return ""
    from scriptmode.platforms.local.hosts import job_containers

    if said := job_containers.clear(folder.label, patience=0):
        return f"not all containers: {said}"
    return container_fleet.give_back(folder, job)
