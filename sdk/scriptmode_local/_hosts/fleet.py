"""All hosts of a job together: for the job's agent, and for the agent of the machine they run on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

from scriptmode_local._system.forked_tasks import ForkedProcess, Tasks

if TYPE_CHECKING:
    import subprocess

    from scriptmode._core.text.messages import Problem
    from scriptmode_local._data.staging import StagingArea
    from scriptmode_local._opt_ml.opt_ml import Sandbox
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder

#: Runs the agent of a part of a fleet: it reads commands from the first descriptor and writes events to the second.
Serve = Callable[["Fleet", int, int], None]


@dataclass(frozen=True)
class StartedAgent:
    """A host's agent that was started: the names of its hosts, and the job's agent's ends of the two pipes.

    With ``waits`` its machine may not be there yet: the job is Starting until the event ``waiting`` has no message.
    What its hosts wrote is complete only after the event ``finished``. ``warning`` is what failed before it.
    """

    hosts: tuple[str, ...]
    process: ForkedProcess | subprocess.Popen[bytes]
    commands: int
    events: int
    waits: bool = False
    warning: str = ""


class Fleet:
    """All hosts of one job, for the job's agent, or those of one machine, for the host's agent there.

    These agents must have no threads, because they fork. A fleet has what its agent calls: the job's `start_agents`
    and, of hosts with relays, `write_sandbox`; the host's ``staging``, `start_host`, `poll_host` and `signal_host`.
    The rest has a default.
    """

    #: The ``/opt/ml`` of every host, by the host's name, in order.
    sandboxes: Mapping[str, Sandbox]
    #: Where the inputs of these hosts are staged.
    staging: StagingArea

    def __init__(self, folder: JobFolder, job: Job, tasks: Tasks, inherited: Mapping[str, str]) -> None:
        self._folder = folder
        self._job = job
        self._tasks = tasks
        self._inherited = inherited

    def prepare(self) -> None:
        """Write the sandboxes, except for the channels, for the agent that `start_agents` forks by default."""
        raise NotImplementedError

    def start_agents(self, serve: Serve) -> Sequence[StartedAgent]:
        """Write the sandboxes, except for the channels, and start the hosts' agents, one for each machine.

        ``serve`` is for those that are forked, by default one. Raises `DataError`, `ContainerError` or ``OSError``.
        """
        self.prepare()
        return [fork_agent(self, serve, self._tasks)]

    def start_host(self, host: str) -> int:
        """Start the ``train`` of a host, once; raise `DataError` or ``OSError`` if that is impossible.

        Returns the process ID of the agent's child that ends with the host; 0 for a host that is no child.
        """
        raise NotImplementedError

    def poll_host(self, host: str) -> int | None:
        """Return the exit code of a started host once ``train`` ended, ``-n`` for signal n, else None; never block."""
        raise NotImplementedError

    def signal_host(self, host: str, number: int) -> None:
        """Send SIGTERM to the ``train`` of a started host, or SIGKILL to every process of the host."""
        raise NotImplementedError

    def find_process(self, host: str) -> int:  # noqa: ARG002 - for an override
        """Return the process ID of a started host's first process; 0 while it is unknown. May wait for Docker."""
        return 0

    def find_disconnected(self, code: int | None = None) -> Problem | None:  # noqa: ARG002 - for an override
        """Return which hosts lost their connection to the others, and why; ``None`` where none is known to.

        ``code`` is the exit code of the host that failed, ``-n`` for signal n.
        """
        return None

    def remove_hosts(self) -> list[str]:
        """Remove the hosts and what they reserved, and make the user own their sandboxes; return what failed."""
        return []

    def release_machine(self) -> Problem | None:
        """Release what the hosts of a machine, which have ended, shared with other jobs there.

        Returns what hosts without an ``/opt/ml`` of their own wrote to that of the machine; None without any.
        """
        return None

    def write_sandbox(self, host: str, address: str) -> bool:
        """Write the sandbox of a host with a relay, which has ``address``, once the addresses of all are known.

        Returns whether it is written.
        """
        raise NotImplementedError

    def waits_for(self, host: str) -> str:  # noqa: ARG002
        """Return what a host with a relay waits for; raise `PlatformError` for one that never says hello."""
        return "its machine"

    def describe_loss(self, host: str) -> str:  # noqa: ARG002
        """Return how the machine of a host with a relay ended that does not answer; "" while it may answer again."""
        return ""

    def why_replaced(self, host: str) -> str:  # noqa: ARG002
        """Return why another machine replaces that of a host with a relay, which was lost before the start, else ""."""
        return ""

    def explain_end(self, host: str, code: int) -> str:  # noqa: ARG002
        """Return the failure of the machine with which a host ended, such as exhausted memory; "" without one."""
        return ""


def fork_agent(fleet: Fleet, serve: Serve, tasks: Tasks) -> StartedAgent:
    """Start one agent for all hosts of this machine as a fork of this process, which takes some milliseconds."""
    their_commands, commands = os.pipe()
    events, their_events = os.pipe()

    def run() -> None:
        os.close(commands)
        os.close(events)
        tasks.keep_private(their_commands, their_events)
        serve(fleet, their_commands, their_events)

    process = ForkedProcess(tasks, run)
    os.close(their_commands)
    os.close(their_events)
    tasks.keep_private(commands, events)
    return StartedAgent(tuple(fleet.sandboxes), process, commands, events)
