"""Both ends of the TCP connection of a host whose machine does not see the job's directory.

Beside the job's agent a process for each host, its `Relay`, accepts it. On the host's machine `remote_host` connects.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from scriptmode_local._hosts.fleet import Fleet, StartedAgent, fork_agent
from scriptmode_local._remote import remote_host
from scriptmode_local._remote.relay import Relay
from scriptmode_local._remote.tls_stream import ListeningStream, StreamKeys, connect

if TYPE_CHECKING:
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._system.forked_tasks import Tasks


def start_relay(
    job: tuple[JobFolder, Job], host: str, listener: socket.socket, keys: StreamKeys, fleet: Fleet, tasks: Tasks
) -> StartedAgent:
    """Start the relay of a host, which stands for its agent; ``keys`` are those of all hosts of the job."""

    def serve(fleet: Fleet, commands: int, events: int) -> None:
        stream = ListeningStream(keys, socket.socket(fileno=descriptor))
        code = Relay(job, host, stream, (commands, events), fleet).run()
        if not code:
            # Both ends know then that nothing follows.
            stream.close()
        os._exit(code)

    descriptor = os.dup(listener.fileno())
    started = fork_agent(fleet, serve, tasks)
    os.close(descriptor)
    return replace(started, hosts=(host,), waits=True)


def run_host(arguments: tuple[str, ...], relay: tuple[str, int], keys: str) -> int:
    """Run `remote_host` with these arguments, connected to its relay by `StreamKeys.host`; return its exit code."""
    try:
        stream = connect(keys, relay)
    except TimeoutError as error:
        sys.stderr.write(f"scriptmode: the job's agent is lost: {error}\n")
        return 1
    with closing(stream):
        return remote_host.run(arguments, stream)
