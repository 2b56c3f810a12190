"""Requests and reports of ``mpirun``, its daemons and its ranks to the launchers.

The daemons of ``mpirun`` on other hosts are started as children of the launchers there, which supervise them.

``mpirun`` runs `rsh` in place of ssh. `rsh` sends a request to this host's launcher, which forwards it to the other
host's over `peers`. A daemon has its own host's environment, and ends with its launcher. A `rank` that failed reports
it, and the first host's launcher, which observes the end of ``mpirun``, keeps the first report.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable

from scriptmode_runtime import contract
from scriptmode_runtime._mpi import daemon_command
from scriptmode_runtime._mpi.mpirun_output import RankFailure
from scriptmode_runtime._peers.connection import Connection
from scriptmode_runtime._processes import children, proc, process_tree
from scriptmode_runtime._processes.children import DAEMON
from scriptmode_runtime._values.errors import RuntimeFailure
from scriptmode_runtime._values.failure import LAUNCHER_FAILED, SIGNALLED

if TYPE_CHECKING:
    from scriptmode_runtime._peers.agreement import Agreement
    from scriptmode_runtime._peers.lead import Lead
    from scriptmode_runtime._peers.member import Member
    from scriptmode_runtime._processes.host_processes import HostProcesses
    from scriptmode_runtime._values.cluster import Cluster

#: Called with the exit status of a daemon, and an error where it did not start.
Done = Callable[[int, str], None]
_NOT_STARTED = 127
_UNREACHED = 255
_BACKLOG = 4096
#: Seconds between two checks whether all ranks have ended, while ``mpirun`` or one of its daemons runs here.
_ORPHANS_SECONDS = 1.0


class Daemons:
    """The server for `rsh` and ranks of this host, and for the first host's requests to start daemons."""

    def __init__(
        self, cluster: Cluster, peers: Lead | Member | None, agreement: Agreement, processes: HostProcesses
    ) -> None:
        #: The first rank that failed, of those reported to this host. A rank that SIGTERM ended does not count:
        #: that is how ``mpirun`` ends a job.
        self.first_failure: RankFailure | None = None
        self.ranks_ended_well = True
        self._cluster = cluster
        self._host = cluster.this.name
        self._cwd = os.path.join(cluster.this.base_dir, "output")
        self._names = {host.address: host.name for host in cluster.hosts}
        self._peers = peers
        self._agreement = agreement
        self._processes = processes
        self._selector = processes.loop.selector
        self._clock = processes.loop.clock
        self._check_at = self._clock() + _ORPHANS_SECONDS
        self._agent = ""
        self._listener: socket.socket | None = None
        self._requests: dict[int, tuple[str, Done]] = {}
        self._connections: set[Connection] = set()
        self._held: set[Connection] = set()
        #: Whether stopped ranks wait for each other before they end.
        self.hold_ranks = False
        if peers:
            if not cluster.leads:
                peers.handlers["start"] = self._on_start
            peers.handlers["ended"] = self._on_ended
            peers.handlers["rank"] = lambda _host, message: self._on_rank(message)
            peers.on_left = self._on_left

    def listen(self, path: str) -> None:
        """Start to serve this host's processes at a socket that only this user can open, in the directory of `rsh`."""
        self._agent = os.path.join(os.path.dirname(path), "rsh")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        os.chmod(path, 0o600)
        self._listener.listen(_BACKLOG)
        self._listener.settimeout(0)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        """Close the socket and all connections."""
        for connection in self._connections:
            connection.close()
        if self._listener:
            self._selector.unregister(self._listener)
            self._listener.close()

    def _accept(self) -> None:
        if self._listener:
            try:
                endpoint, _ = self._listener.accept()
            except OSError:  # the connection was closed already, or there are no descriptors: rsh and rank report that
                return
            self._connections.add(Connection(self._selector, endpoint, self._on_message, self._clock()))

    def _on_message(self, connection: Connection, message: dict[str, object] | None) -> None:
        if message is None:
            self._connections.discard(connection)
        elif message["type"] == "rank":
            self._on_rank(message)
            self._disconnect(connection)
        elif message["type"] == "held":
            self._held.add(connection)
            if not self.hold_ranks:
                self._disconnect(connection)
        else:
            self._on_request(connection, message)

    @property
    def held_count(self) -> int:
        """The number of ranks of this host that have saved their state."""
        return len(self._held & self._connections)

    def release_ranks(self) -> None:
        """Release the ranks that are held, and those that report later."""
        self.hold_ranks = False
        for connection in list(self._held):
            self._disconnect(connection)

    def deadline(self) -> float | None:
        """Return when to look for orphaned processes again."""
        return self._check_at if self._processes.rank_starters() else None

    def tick(self) -> None:
        """Kill the processes that ranks have left: ``mpirun`` would wait for the end of their output for ever.

        A `rank` does so itself, unless it was killed.
        """
        if self._clock() < self._check_at:
            return
        self._check_at = self._clock() + _ORPHANS_SECONDS
        starters = self._processes.rank_starters()
        if starters and not any(children.mpi_ranks(starter.pid) for starter in starters):
            own = {child.pid for child in self._processes.started}
            for pid in process_tree.children(os.getpid()):  # those of ranks, which this launcher adopted
                if pid not in own and contract.RANK_VARIABLE in proc.environ(pid):
                    process_tree.kill_tree(pid)

    def _disconnect(self, connection: Connection) -> None:
        self._held.discard(connection)
        self._connections.discard(connection)
        connection.close()

    def _on_rank(self, message: Mapping[str, Any]) -> None:
        failure = RankFailure(
            int(message["rank"]), int(message["status"]), str(message["host"]), str(message.get("own", ""))
        )
        self.ranks_ended_well = False
        if failure.status != -signal.SIGTERM:
            self.first_failure = self.first_failure or failure
        if self._peers and not self._cluster.leads:
            self._peers.send(self._cluster.lead.name, **message)

    def _on_request(self, connection: Connection, message: Mapping[str, Any]) -> None:
        def done(status: int, error: str) -> None:
            connection.send(type="ended", status=status, error=error)

        target = str(message.get("host"))
        host = self._names.get(target, target)
        number = len(self._requests)
        self._requests[number] = (host, done)
        if not (self._peers and self._peers.send(host, type="start", number=number, command=message.get("command"))):
            done(_UNREACHED, f"{host} is not connected to {self._host}, so no daemon can be started there")

    def _start_here(self, command: str, done: Done) -> None:
        try:
            spec = daemon_command.parse(command, os.environ, self._cwd, self._agent)
            if self._agreement.is_over:
                done(LAUNCHER_FAILED, f"{self._host}: the job has ended")
                return
            self._processes.start(
                spec, DAEMON, on_end=lambda status: done(status if status >= 0 else SIGNALLED - status, "")
            )
        except RuntimeFailure as error:
            done(_NOT_STARTED, f"{self._host}: {error}")

    def _on_start(self, host: str, message: Mapping[str, Any]) -> None:
        def done(status: int, error: str) -> None:
            if self._peers:
                self._peers.send(host, type="ended", number=message.get("number"), status=status, error=error)

        self._start_here(str(message.get("command")), done)

    def _on_ended(self, host: str, message: Mapping[str, Any]) -> None:
        target, done = self._requests.get(int(message.get("number") or 0), ("", None))
        if done and target == host:
            done(int(message.get("status") or 0), str(message.get("error") or ""))

    def _on_left(self, host: str) -> None:
        for target, done in self._requests.values():
            if target == host:
                done(_UNREACHED, f"{host} was lost")
