"""Both ends of the TCP connection of a host whose machine does not see the job's directory.

Beside the job's agent a process for each host accepts it, and passes it on to the host's `Relay`, another process. On
the host's machine one process connects, and passes it on to the program `remote_host`.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode_local._hosts.fleet import StartedAgent
from scriptmode_local._remote.proven_stream import LostError, ProvenStream
from scriptmode_local._remote.relay import Relay
from scriptmode_local._system.forked_tasks import ForkedProcess
from scriptmode_runtime._processes import process_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from scriptmode_local._hosts.fleet import Fleet
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._system.forked_tasks import Tasks

#: The program on a host's machine that does not see the job's directory.
REMOTE_HOST_MODULE = "scriptmode_local._remote.remote_host"
#: Seconds from the end of the connection to the end of the host's agent.
_END_SECONDS = 60.0
#: Seconds for what the two ends say last to each other.
_LAST_SECONDS = 5.0


def start_relay(
    job: tuple[JobFolder, Job], host: str, listener: socket.socket, secret: str, fleet: Fleet, tasks: Tasks
) -> StartedAgent:
    """Start the relay of a host, which stands for its agent, and what accepts its connection."""
    their_commands, commands = os.pipe()
    events, their_events = os.pipe()

    def run() -> None:
        os.close(commands)
        os.close(events)
        incoming, stream_target = os.pipe()
        stream_source, outgoing = os.pipe()

        def stream() -> None:
            os.close(incoming)
            os.close(outgoing)
            ProvenStream(secret.encode(), stream_source, stream_target).listen(kept)

        kept = socket.socket(fileno=os.dup(descriptor))
        stream_process = ForkedProcess(tasks, stream)
        os.close(stream_source)
        os.close(stream_target)
        code = Relay(job, host, (incoming, outgoing), (their_commands, their_events), fleet).run()
        os.close(outgoing)
        if not code:
            # Both ends know then that nothing follows.
            process_tree.wait_until(lambda: stream_process.poll() is not None, _LAST_SECONDS)
        os._exit(code)

    descriptor = os.dup(listener.fileno())
    process = ForkedProcess(tasks, run)
    for passed in (their_commands, their_events, descriptor):
        os.close(passed)
    tasks.keep_private(commands, events)
    return StartedAgent((host,), process, commands, events, waits=True)


def run_host(
    arguments: tuple[str, ...], relay: tuple[str, int], secret: str, *, await_start: Callable[[], object]
) -> int:
    """Run `remote_host` with these arguments, connected to its relay; return its exit code.

    It begins at once, and is connected after ``await_start``. SIGTERM goes to it.
    """
    agent = subprocess.Popen(
        (sys.executable, "-m", REMOTE_HOST_MODULE, *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert agent.stdin  # noqa: S101 - they are pipes
    assert agent.stdout  # noqa: S101
    source, target = os.dup(agent.stdout.fileno()), os.dup(agent.stdin.fileno())
    agent.stdin.close()
    agent.stdout.close()
    stream = ProvenStream(secret.encode(), source, target)

    signal.signal(signal.SIGTERM, lambda *_: agent.send_signal(signal.SIGTERM))
    await_start()
    try:
        stream.connect(relay)
    except LostError as error:
        sys.stderr.write(f"scriptmode: the job's agent is lost: {error}\n")
        # The host's agent writes to the one, and reads the other to its end.
        for descriptor in (source, target):
            with suppress(OSError):
                os.close(descriptor)
    try:
        return agent.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        agent.kill()
        return 1
