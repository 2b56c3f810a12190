"""The process of a host's agent, as the engine starts it and the job's agent sees it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

from scriptmode.platforms.local.system.forked_tasks import ForkedProcess

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable

    from scriptmode.platforms.local.system.forked_tasks import Tasks


@dataclass(frozen=True)
class StartedAgent:
    """A host's agent that was started: the names of its hosts, and the job's agent's ends of the two pipes."""

    hosts: tuple[str, ...]
    process: ForkedProcess | subprocess.Popen[bytes]
    commands: int
    events: int


def fork_agent(hosts: Iterable[str], serve: Callable[[int, int], None], tasks: Tasks) -> StartedAgent:
    """Start the agent of hosts of this machine as a fork of this process, which takes some milliseconds.

    ``serve`` gets the descriptors of its commands and its events.
    """
    their_commands, commands = os.pipe()
    events, their_events = os.pipe()

    def run() -> None:
        os.close(commands)
        os.close(events)
        tasks.keep_private(their_commands, their_events)
        serve(their_commands, their_events)

    process = ForkedProcess(tasks, run)
    os.close(their_commands)
    os.close(their_events)
    tasks.keep_private(commands, events)
    return StartedAgent(tuple(hosts), process, commands, events)
