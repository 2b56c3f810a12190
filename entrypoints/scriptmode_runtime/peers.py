"""The hosts of one job tell each other how it goes: ready, ended, failed. The first failure is everyone's.

The first host listens and decides; the others join it. Each side proves that it knows the job's secret. A lost
connection, or one on which nothing comes, is a lost host.
"""

from __future__ import annotations

import hmac
import selectors
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode_runtime.connection import Connection
from scriptmode_runtime.errors import ClusterError
from scriptmode_runtime.outcome import LAUNCHER_FAILED, Cause
from scriptmode_runtime.plan import TRAINERS_ENDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from scriptmode_runtime.cluster import Cluster

_FIRST_RETRY, _LAST_RETRY = 0.02, 0.25
_BACKLOG = 128


class Times(NamedTuple):
    """Deadlines between hosts, in seconds."""

    #: Hosts of one job may start minutes apart.
    join: float = 600.0
    #: Nothing was heard for so long: the host is lost.
    silence: float = 60.0
    beat: float = 5.0


class Peers:
    """The other hosts, as one of them sees them. What both sides share."""

    #: Why the job must end, as all hosts agree on it.
    cause: Cause | None = None

    def __init__(
        self,
        cluster: Cluster,
        secret: bytes,
        selector: selectors.BaseSelector,
        clock: Callable[[], float],
        times: Times | None = None,
    ) -> None:
        self._cluster = cluster
        self._secret = secret
        self._selector = selector
        self._clock = clock
        self._times = times or Times()
        self._reached: set[str] = set()
        self._join_by = clock() + self._times.join

    def start(self) -> None:
        """Begin to listen, or to join."""
        raise NotImplementedError

    def announce(self, event: str) -> None:
        """Say that this host reached an event of `plan`."""
        raise NotImplementedError

    def fail(self, cause: Cause) -> None:
        """Say why the job must end; the first such word of any host becomes ``self.cause`` on all of them."""
        raise NotImplementedError

    def tick(self) -> None:
        """Do what is due."""
        raise NotImplementedError

    def deadline(self) -> float | None:
        """Give when `tick` has something to do next."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave."""
        raise NotImplementedError

    @property
    def alone(self) -> bool:
        """Whether no other host is connected."""
        raise NotImplementedError

    @property
    def settled(self) -> bool:
        """Whether nothing is left to say or to hear."""
        raise NotImplementedError

    def reached(self, event: str) -> bool:
        """Tell whether every host reached an event."""
        return event in self._reached

    def _lives(self, connection: Connection) -> bool:
        """Say that this host lives when it is time to; tell whether the other one does."""
        now = self._clock()
        if now - connection.spoke >= self._times.beat:
            connection.spoke = now
            connection.send(type="alive")
        return now - connection.heard < self._times.silence

    def _due(self, connection: Connection) -> float:
        return min(connection.spoke + self._times.beat, connection.heard + self._times.silence)

    def _proof(self, *words: str) -> str:
        return hmac.new(self._secret, "\n".join(words).encode(), "sha256").hexdigest()

    def _proven(self, message: dict[str, Any], *words: str) -> bool:
        return hmac.compare_digest(self._proof(*words), str(message.get("proof")))


class Lead(Peers):
    """The first host's side."""

    def start(self) -> None:
        """Listen on this host's port for peers; raises `ClusterError` when it cannot be had."""
        this = self._cluster.this
        address = this.address if self._cluster.single_machine else ""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._connections: list[Connection] = []
        self._came: set[str] = {this.name}
        self._events: dict[str, set[str]] = {}
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind((address, this.ports["peers"]))
            self._listener.listen(_BACKLOG)
        except OSError as error:
            self._listener.close()
            raise ClusterError(
                f"{this.name}: port {this.ports['peers']} (peers) cannot be had: {error.strerror}; "
                "end the program that holds it, or start the job again"
            ) from error
        self._listener.settimeout(0)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    @property
    def alone(self) -> bool:
        """Whether no other host is connected."""
        return not any(connection.host for connection in self._connections)

    @property
    def settled(self) -> bool:
        """Whether every other host came, was told, and left."""
        return self.alone and not self._missing()

    def announce(self, event: str) -> None:
        """Note that this host reached an event."""
        self._note(self._cluster.this.name, event)

    def fail(self, cause: Cause) -> None:
        """Decide, if nothing was decided before, and tell everyone."""
        if self.cause is None:
            self.cause = cause
            self._tell(type="failed", **cause._asdict())

    def tick(self) -> None:
        """Beat; miss hosts that do not come or say nothing."""
        for connection in list(self._connections):
            if not self._lives(connection):
                connection.close()
                self._hear(connection, None)
        missing = self._missing()
        if missing and self.cause is None and self._clock() >= self._join_by:
            self.fail(_lost(missing[0], f"did not come up in {self._times.join:.0f} s"))

    def deadline(self) -> float | None:
        """Give when the next host is to be greeted or missed."""
        due = [self._due(connection) for connection in self._connections]
        if self.cause is None and self._missing():
            due.append(self._join_by)
        return min(due, default=None)

    def close(self) -> None:
        """Leave."""
        for connection in self._connections:
            connection.close()
        self._selector.unregister(self._listener)
        self._listener.close()

    def _missing(self) -> list[str]:
        return [host.name for host in self._cluster.hosts if host.name not in self._came]

    def _accept(self) -> None:
        try:
            endpoint, _ = self._listener.accept()
            connection = Connection(self._selector, endpoint, self._hear, self._clock())
        except OSError:  # whoever it was has gone already
            return
        self._connections.append(connection)
        connection.send(type="hello", nonce=connection.nonce)

    def _hear(self, connection: Connection, message: dict[str, Any] | None) -> None:
        connection.heard = self._clock()
        if message is None:
            self._connections.remove(connection)
            if connection.host:
                self._miss(connection.host)
        elif not connection.host:
            self._admit(connection, message)
        elif message["type"] == "reached":
            self._note(connection.host, str(message.get("event")))
        elif message["type"] == "failed":
            self.fail(_cause(message))

    def _miss(self, host: str) -> None:
        if not self.reached(TRAINERS_ENDED):
            self.fail(_lost(host, "its launcher was lost: killed, or its machine went away"))
        self._note(host, TRAINERS_ENDED)  # nobody waits for it any more

    def _admit(self, connection: Connection, message: dict[str, Any]) -> None:
        host = str(message.get("host"))
        if host not in self._missing() or not self._proven(message, "member", host, connection.nonce):
            connection.close()
            self._connections.remove(connection)
            return
        connection.host = host
        self._came.add(host)
        connection.send(type="welcome", proof=self._proof("lead", host, str(message.get("nonce"))))
        if self.cause:
            connection.send(type="failed", **self.cause._asdict())

    def _note(self, host: str, event: str) -> None:
        there = self._events.setdefault(event, set())
        there.add(host)
        if len(there) == len(self._cluster.hosts) and event not in self._reached:
            self._reached.add(event)
            self._tell(type="reached", event=event)

    def _tell(self, **message: object) -> None:
        for connection in self._connections:
            if connection.host:
                connection.send(**message)


class Member(Peers):
    """Any other host's side."""

    def start(self) -> None:
        """Begin to join the first host; it may not be up yet."""
        self._endpoint: socket.socket | None = None
        self._connection: Connection | None = None
        self._unsent: list[dict[str, object]] = []
        self._retry = _FIRST_RETRY
        self._greeted = False
        self._try_at = self._clock()

    @property
    def alone(self) -> bool:
        """Whether the first host is gone, or was never there."""
        return self._connection is None or not self._connection.open

    @property
    def settled(self) -> bool:
        """Whether the first host's last word came."""
        return self.cause is not None or self.reached(TRAINERS_ENDED)

    def announce(self, event: str) -> None:
        """Tell the first host that this one reached an event."""
        self._say(type="reached", event=event)

    def fail(self, cause: Cause) -> None:
        """Tell the first host why the job must end; it decides."""
        self._say(type="failed", **cause._asdict())

    def tick(self) -> None:
        """Beat; join; miss the first host."""
        if self._connection:
            if self._connection.open and not self._lives(self._connection):
                self._connection.close()
                self._hear(self._connection, None)
        elif self.cause is None and self._clock() >= self._join_by:
            place = self._cluster.lead.endpoint("peers")
            self.cause = _lost(self._cluster.lead.name, f"could not be reached at {place} in {self._times.join:.0f} s")
        elif self._endpoint is None and self._clock() >= self._try_at:
            self._connect()

    def deadline(self) -> float | None:
        """Give when to try again, to beat, or to miss."""
        if self._connection:
            return self._due(self._connection) if self._connection.open else None
        if self.cause:
            return None
        return self._join_by if self._endpoint else min(self._try_at, self._join_by)

    def close(self) -> None:
        """Leave."""
        if self._connection:
            self._connection.close()
        if self._endpoint:
            self._give_up()

    def _connect(self) -> None:
        lead = self._cluster.lead
        try:
            family, kind, *_, address = socket.getaddrinfo(lead.address, lead.ports["peers"], 0, socket.SOCK_STREAM)[0]
            self._endpoint = socket.socket(family, kind)
            self._endpoint.settimeout(0)
            self._endpoint.connect_ex(address)
        except OSError:  # its name does not resolve yet
            self._again()
            return
        self._selector.register(self._endpoint, selectors.EVENT_WRITE, self._connected)

    def _connected(self) -> None:
        endpoint = self._endpoint
        if endpoint is None:
            return
        if not _is_connected(endpoint):
            self._give_up()
            self._again()
            return
        self._selector.unregister(endpoint)
        self._endpoint = None
        self._connection = Connection(self._selector, endpoint, self._hear, self._clock())

    def _give_up(self) -> None:
        if self._endpoint:
            self._selector.unregister(self._endpoint)
            self._endpoint.close()
            self._endpoint = None

    def _again(self) -> None:
        if self._endpoint:
            self._endpoint.close()
            self._endpoint = None
        self._try_at = self._clock() + self._retry
        self._retry = min(2 * self._retry, _LAST_RETRY)

    def _hear(self, connection: Connection, message: dict[str, Any] | None) -> None:
        connection.heard = self._clock()
        name, lead = self._cluster.this.name, self._cluster.lead.name
        if message is None:
            self._miss(connection)
        elif message["type"] == "hello":
            self._greeted = True
            proof = self._proof("member", name, str(message.get("nonce")))
            connection.send(type="join", host=name, nonce=connection.nonce, proof=proof)
        elif not connection.host:
            if message["type"] == "welcome" and self._proven(message, "lead", name, connection.nonce):
                connection.host = lead
                for unsent in self._unsent:
                    connection.send(**unsent)
        elif message["type"] == "reached":
            self._reached.add(str(message.get("event")))
        elif message["type"] == "failed":
            self.cause = self.cause or _cause(message)

    def _miss(self, connection: Connection) -> None:
        if not self._greeted:  # another program, or one that had not come up yet
            self._connection = None
            self._again()
        elif not self.reached(TRAINERS_ENDED) and self.cause is None:
            how = "its launcher was lost: killed, or its machine went away"
            if not connection.host:
                how += ", or it knows another secret than this host"
            self.cause = _lost(self._cluster.lead.name, how)

    def _say(self, **message: object) -> None:
        if self._connection and self._connection.host:
            self._connection.send(**message)
        else:
            self._unsent.append(message)


def _is_connected(endpoint: socket.socket) -> bool:
    try:
        # A local port that nobody holds yet can be given to this very socket: connected to itself.
        own = endpoint.getsockname() == endpoint.getpeername()
        return not own and not endpoint.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    except OSError:  # it was lost at once
        return False


def _lost(host: str, how: str) -> Cause:
    return Cause(host, "launcher", LAUNCHER_FAILED, f"{host}: {how}")


def _cause(message: dict[str, Any]) -> Cause:
    return Cause(
        host=str(message.get("host")),
        process=str(message.get("process")),
        exit_code=int(message.get("exit_code") or LAUNCHER_FAILED),
        message=str(message.get("message")),
        graceful=bool(message.get("graceful")),
    )
