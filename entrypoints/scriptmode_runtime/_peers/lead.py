"""The first host's side: it listens, authenticates the other hosts, decides and broadcasts."""

from __future__ import annotations

import errno
import selectors
import socket
from typing import TYPE_CHECKING

from scriptmode_runtime._peers.base import WAS_LOST, Peers, failure_from, lost_host
from scriptmode_runtime._peers.connection import Connection
from scriptmode_runtime._processes import system
from scriptmode_runtime._values.errors import ClusterError
from scriptmode_runtime.plan import TRAINERS_ENDED

if TYPE_CHECKING:
    from scriptmode_runtime._values.failure import HostFailure

#: Thousands of hosts connect at once; the kernel limits it to net.core.somaxconn.
_BACKLOG = 4096
#: Descriptors that a launcher needs without any other host, with a margin.
_OWN_FILES = 256
#: Connections that may be unauthenticated at once, beyond one for each missing host. A further one closes the oldest.
_MOST_UNAUTHENTICATED = 128


class Lead(Peers):
    """The first host's side.

    A host is missing, then a member, then has left. A connection is unauthenticated until a valid ``join`` makes its
    host a member; a closed or silent connection of a member makes the host leave, which is a failure of the job unless
    all trainers have ended.

    Any program of the network can connect. Until a connection is authenticated it costs one descriptor and one short
    message, for `Times.authenticate` seconds at most; there are never more of them than `_MOST_UNAUTHENTICATED` and one
    for each missing host. Once every host is a member this host stops listening.
    """

    def start(self) -> None:
        """Listen on this host's port for peers; raises `ClusterError` when the port cannot be bound."""
        this = self._cluster.this
        #: Connections that are not authenticated yet, the oldest first, and the deadline of each.
        self._unauthenticated: dict[Connection, float] = {}
        self._members: dict[str, Connection] = {}
        #: Hosts that have not joined yet, in the cluster's order.
        self._missing = dict.fromkeys(host.name for host in self._cluster.hosts if host.name != this.name)
        self._events: dict[str, set[str]] = {}
        # A descriptor for each host, and with MPI one for the process that connects mpirun to it.
        system.raise_file_limit(2 * len(self._cluster.hosts) + _OWN_FILES + _MOST_UNAUTHENTICATED)
        address = this.address if self._cluster.single_machine else ""
        try:
            self._listener: socket.socket | None = _listener(address, this.ports["peers"])
        except OSError as error:
            raise ClusterError(
                f"{this.name}: port {this.ports['peers']} (peers) cannot be bound: {error.strerror}; "
                "end the program that holds it, or start the job again"
            ) from error
        self._listener.settimeout(0)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    @property
    def disconnected(self) -> bool:
        """Whether no other host is connected."""
        return not self._members

    @property
    def finished(self) -> bool:
        """Whether every other host joined, received all messages, and left."""
        return self.disconnected and not self._missing

    def announce(self, event: str) -> None:
        """Record that this host reached an event."""
        self._record(self._cluster.this.name, event)

    def fail(self, failure: HostFailure) -> None:
        """Record the failure, if it is the first one, and broadcast it."""
        if self.failure is None:
            self.failure = failure
            self._broadcast(type="failed", **failure._asdict())

    def send(self, host: str, /, **message: object) -> bool:
        """Send a message to a host; return whether it is connected."""
        connection = self._members.get(host)
        if connection:
            connection.send(**message)
        return connection is not None

    def tick(self) -> None:
        """Send heartbeats; report hosts that are missing or silent; close connections not authenticated in time."""
        now = self._clock()
        for connection in [peer for peer, until in self._unauthenticated.items() if now >= until]:
            self._close_unauthenticated(connection)
        self._beat(list(self._members.values()))
        if self._missing and self.failure is None:
            self._remind(self._missing)
            if self._clock() >= self._join_by:
                others = f", like {len(self._missing) - 1} more" if len(self._missing) > 1 else ""
                reason = f"did not come up in {self._times.join:.0f} s{others}; look at its own log"
                self.fail(lost_host(next(iter(self._missing)), reason))

    def deadline(self) -> float | None:
        """Return when the next deadline passes."""
        due = [self._heartbeat_at] if self._members else []
        due += list(self._unauthenticated.values())[:1]
        if self.failure is None and self._missing:
            due += [self._join_by, self._remind_at]
        return min(due, default=None)

    def close(self) -> None:
        """Close all connections and stop listening."""
        for connection in self._members.values():
            connection.close()
        self._stop_listening()

    def _stop_listening(self) -> None:
        for connection in list(self._unauthenticated):
            self._close_unauthenticated(connection)
        if self._listener:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None

    def _close_unauthenticated(self, connection: Connection) -> None:
        del self._unauthenticated[connection]
        connection.close()

    def _accept(self) -> None:
        if self._listener is None:
            return
        if len(self._unauthenticated) >= len(self._missing) + _MOST_UNAUTHENTICATED:
            self._close_unauthenticated(next(iter(self._unauthenticated)))
        try:
            endpoint, _ = self._listener.accept()
            connection = Connection(self._selector, endpoint, self._on_message, self._clock())
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE) and self._unauthenticated:
                self._close_unauthenticated(next(iter(self._unauthenticated)))
            elif error.errno in (errno.EMFILE, errno.ENFILE):
                name = self._cluster.this.name
                self.fail(lost_host(name, f"{error.strerror} for another host; raise the limit (ulimit -n)"))
            return  # the connection was closed already
        self._unauthenticated[connection] = self._clock() + self._times.authenticate
        connection.send(type="hello", nonce=connection.nonce)

    def _on_message(self, connection: Connection, message: dict[str, object] | None) -> None:
        connection.last_received = self._clock()
        if message is None:
            self._unauthenticated.pop(connection, None)
            if connection.host:
                self._on_lost(connection.host)
        elif not connection.host:
            self._on_join(connection, message)
        elif message["type"] == "reached":
            self._record(connection.host, str(message.get("event")))
        elif message["type"] == "failed":
            self.fail(failure_from(message))
        else:
            self._handle(connection.host, message)

    def _on_lost(self, host: str) -> None:
        del self._members[host]
        if not self.reached(TRAINERS_ENDED):
            self.fail(lost_host(host, WAS_LOST))
        self._record(host, TRAINERS_ENDED)  # the other hosts do not wait for it any more
        self.on_left(host)

    def _on_join(self, connection: Connection, message: dict[str, object]) -> None:
        host = str(message.get("host"))
        self._unauthenticated.pop(connection, None)
        if host not in self._missing or not self._is_proven(message, "member", host, connection.nonce):
            connection.send(type="refused")
            connection.close()
            return
        nonce = str(message.get("nonce"))
        connection.host = host
        self._members[host] = connection
        del self._missing[host]
        connection.send(type="welcome", proof=self._proof("lead", host, nonce))
        self._start_signing(connection, host, (connection.nonce, nonce))
        if self.failure:
            connection.send(type="failed", **self.failure._asdict())
        if not self._missing:
            self._stop_listening()

    def _record(self, host: str, event: str) -> None:
        reached = self._events.setdefault(event, set())
        reached.add(host)
        if len(reached) == len(self._cluster.hosts) and event not in self._reached:
            self._reached.add(event)
            self._broadcast(type="reached", event=event)

    def _broadcast(self, **message: object) -> None:
        for connection in list(self._members.values()):
            connection.send(**message)


def _listener(address: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; "" is every address of this machine, of IPv4 and IPv6."""
    dual = not address and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual or ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=_BACKLOG, dualstack_ipv6=dual)
