"""The agent of a job whose hosts are on this machine: a detached process, which the engine starts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from scriptmode.errors import PlatformError
from scriptmode_local._data import regular_files
from scriptmode_local._hosts.agent_control import AgentLocation, AgentSignal, Presence, StopReason, Termination

if TYPE_CHECKING:
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._store.state import JobState
    from scriptmode_local._system.fork_server import ForkServer

#: Seconds in which an agent is ready on a loaded machine.
_START_SECONDS = 60.0
#: The modules that run the agents of training and tuning jobs; named, not imported: agents import this package.
AGENT_MODULE, TUNING_MODULE = "scriptmode_local._agent.agent_process", "scriptmode_local._tuning.tuning_agent"
#: What the agent of a job whose hosts are processes imports after its start.
AGENT_IMPORTS = (
    "scriptmode._core.request.parse", "scriptmode_local._agent.host_agent", "scriptmode_local._hosts.process_fleet",
)  # fmt: skip
#: What starts agents sooner than a new interpreter, in the calls of a server.
FORK_SERVER: ContextVar[ForkServer | None] = ContextVar("FORK_SERVER", default=None)
#: A file that is there from the end of a server with which its container ends, and the seconds for which it counts.
SERVER_END_FILE, _END_SECONDS = "serve/end", 3600.0


class LocalAgent:
    """Control of the agents that are processes of this machine; implements `agent_control.AgentControl`."""

    def launch(self, folder: JobFolder, job: Job, lock: int) -> None:  # noqa: ARG002 - the agent reads the job itself
        """Start a new job's agent as a detached process; raise `PlatformError`.

        The caller holds the job's lock with the descriptor ``lock``, and releases it after this call. This agent
        inherits it; one that an engine submits elsewhere takes the lock when it starts (`_agent.agent_process`).
        """
        start_agent(AGENT_MODULE, folder.path, lock, folder.agent_log)

    def locate(self, folder: JobFolder, state: JobState) -> AgentLocation:  # noqa: ARG002 - the lock is enough
        """Return whether a process holds the job's lock, which the kernel releases when the agent ends."""
        with folder.try_lock() as (is_locked, _):
            return AgentLocation(Presence.ALIVE if is_locked is False else Presence.GONE)

    def why_terminated(self, folder: JobFolder, *, was_signalled: bool) -> Termination | None:
        """Return that the server or the machine goes down, for an agent that got SIGTERM without a request to stop."""
        if not was_signalled:
            return None
        if is_server_ending(folder):
            where = "pod" if "KUBERNETES_SERVICE_HOST" in os.environ else "container"
            return Termination(StopReason.PREEMPTED, f"the server's {where} was stopped")
        return Termination(StopReason.TERMINATED, "the job's agent got SIGTERM")

    def signal(self, folder: JobFolder, what: AgentSignal) -> bool:
        """Send SIGKILL to the process if it is to end; nothing else is told to it. Return whether it is known."""
        from scriptmode_runtime._processes import process_tree

        agent = folder.read_processes().get("agent") if what is AgentSignal.KILL else None
        if agent is not None:
            process_tree.send_signal(agent, signal.SIGKILL)
        return agent is not None


def is_server_ending(folder: JobFolder) -> bool:
    """Return whether the container of a job's server ends, or has ended, and with it what runs there."""
    with suppress(OSError):
        return time.time() - (folder.path.parent.parent / SERVER_END_FILE).stat().st_mtime < _END_SECONDS
    return False


def start_agent(module: str, folder: Path, lock: int, log: Path) -> None:
    """Run a module as the agent of the job in ``folder``, which inherits the held lock; raise `PlatformError`.

    Its first process ends when the agent is started, so none of its processes is a child of this one afterwards.
    """
    server = FORK_SERVER.get()
    argv = (sys.executable, "-m", "scriptmode_local._system.detached", module, str(folder), str(lock))
    try:
        with regular_files.open_to_append(log) as out:
            if server and server.module == module and server.call(str(folder), lock, out.fileno(), _START_SECONDS):
                return
            # A wait for the end of a pipe ends at once; one for a process with a time limit looks every 50 ms.
            done = subprocess.run(
                argv,
                check=False,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=out,
                start_new_session=True,
                pass_fds=(lock,),
                timeout=_START_SECONDS,
            )
        if done.returncode:
            raise ChildProcessError(f"it ended with exit code {done.returncode}")
    except (OSError, subprocess.TimeoutExpired) as error:
        from scriptmode_local._store.host_logs import last_lines

        is_late = isinstance(error, (subprocess.TimeoutExpired, socket.timeout))
        why = f"it was not ready after {_START_SECONDS:.0f} s" if is_late else error
        tail = last_lines(log, 5, 1000)
        raise PlatformError(
            f"the job's agent did not start: {why}",
            advice="check this machine: scriptmode doctor" + (f". The agent's log ends with\n{tail}" if tail else ""),
        ) from error


def replace_agent(folder: Path, lock: int) -> NoReturn:
    """Replace the agent, which is this process, by one that runs the job in ``folder`` again.

    It has the held lock without a moment in which another process could take it.
    """
    os.set_inheritable(lock, True)  # noqa: FBT003
    os.execv(sys.executable, (sys.executable, "-m", AGENT_MODULE, str(folder), str(lock)))  # noqa: S606
