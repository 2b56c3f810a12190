"""The protocol between the hosts of one job: which events they reached, and the first failure of any host.

The first host (`lead.Lead`) listens and decides; every other host (`member.Member`) connects to it. Messages are JSON
objects in lines::

    lead                                member
     | <----------- connect ------------- |   retried until `Times.join`
     | -- hello, nonce -----------------> |   the connection is unauthenticated, for `Times.authenticate` at most
     | <- join, host, nonce, proof ------ |   proof: HMAC with the job's secret of side, host and nonce
     | -- welcome, proof ---------------> |   or "refused"; from here on every line ends with a MAC
     | <- reached / failed / alive -----> |   the lead broadcasts an event that all hosts reached, and the first failure

A connection that is closed, or on which nothing is received for `Times.silence`, is a lost host, and a lost host is a
failure of the job unless all trainers have ended. `tick` sends and checks heartbeats; nothing here blocks.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode_runtime._values.failure import LAUNCHER_FAILED, HostFailure

if TYPE_CHECKING:
    import selectors

    from scriptmode_runtime._peers.connection import Connection
    from scriptmode_runtime._values.cluster import Cluster

#: Seconds until a missing host is logged, and then between two such lines; and how many hosts a line names.
_FIRST_REMINDER, _REMINDER, _SHOWN = 10.0, 60.0, 5
#: The reason for a host whose connection broke.
WAS_LOST = "its launcher was lost: killed, or its machine went away"


class Times(NamedTuple):
    """Deadlines between hosts, in seconds."""

    #: Hosts of one job may start minutes apart.
    join: float = 600.0
    #: Time without a message after which a host is lost.
    silence: float = 60.0
    heartbeat: float = 5.0
    #: Time after which an unauthenticated connection is closed; a host connects again.
    authenticate: float = 10.0


class Peers:
    """The connection of this host to the other hosts: what both sides, `lead.Lead` and `member.Member`, have."""

    #: The first failure of the job, the same on all hosts.
    failure: HostFailure | None = None

    def __init__(
        self,
        cluster: Cluster,
        secret: bytes,
        selector: selectors.BaseSelector,
        clock: Callable[[], float],
        times: Times | None = None,
        on_wait: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._cluster = cluster
        self._secret = secret
        self._selector = selector
        self._clock = clock
        self._times = times or Times()
        #: Called with a line of log about the hosts that are missing, when that takes long.
        self._on_wait = on_wait
        self._reached: set[str] = set()
        self._join_by = clock() + self._times.join
        self._heartbeat_at = clock() + self._times.heartbeat
        self._remind_at = clock() + _FIRST_REMINDER
        #: Called with a host's name once it is lost or has left. Like a handler, it is set by what is created later.
        self.on_left: Callable[[str], None] = lambda _host: None
        #: By type of message: called with the name of the host that sent it, and the message.
        self.handlers: dict[str, Callable[[str, Mapping[str, Any]], None]] = {}

    def reached(self, event: str) -> bool:
        """Return whether every host reached an event."""
        return event in self._reached

    def _beat(self, connections: Iterable[Connection]) -> None:
        """Where a heartbeat is due, send it, close the connections that are silent, and schedule the next one."""
        now = self._clock()
        if now < self._heartbeat_at:
            return
        # This process did not run meanwhile, as in a suspended job: what the other hosts sent is still to be read.
        is_late = now >= self._heartbeat_at + self._times.silence / 2
        self._heartbeat_at = now + self._times.heartbeat
        for connection in connections:
            if is_late:
                connection.last_received = now
            if now - connection.last_received >= self._times.silence:
                connection.close()
                self._on_message(connection, None)
            elif connection.host:  # before the welcome the first host would read it as the answer to its hello
                connection.send(type="alive")

    def _remind(self, hosts: Iterable[str]) -> None:
        """Log the missing hosts at intervals."""
        if self._clock() >= self._remind_at:
            self._remind_at = self._clock() + _REMINDER
            names = list(hosts)
            shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
            left = max(0.0, self._join_by - self._clock())
            self._on_wait(f"{self._cluster.this.name} waits for {shown}, for {left:.0f} s more at most")

    def _on_message(self, connection: Connection, message: dict[str, object] | None) -> None:
        raise NotImplementedError

    def _handle(self, host: str, message: Mapping[str, Any]) -> None:
        handler = self.handlers.get(str(message["type"]))
        if handler:
            handler(host, message)

    def _proof(self, side: str, host: str, nonce: str) -> str:
        """Return the proof that this host knows the secret; it differs for each side, host and connection."""
        return _digest(self._secret, side, host, nonce)

    def _is_proven(self, message: Mapping[str, Any], side: str, host: str, nonce: str) -> bool:
        proof = self._proof(side, host, nonce)
        return hmac.compare_digest(proof.encode(), _bytes(str(message.get("proof"))))

    def _start_signing(self, connection: Connection, host: str, nonces: tuple[str, str]) -> None:
        """Start to sign and verify messages; ``nonces`` are the lead's and the member's."""
        key = _digest(self._secret, "seal", host, *nonces).encode()
        connection.sign_messages(key, leads=self._cluster.leads)


def lost_host(host: str, reason: str) -> HostFailure:
    """Return the failure of a host that was lost."""
    return HostFailure(host, "launcher", LAUNCHER_FAILED, f"{host}: {reason}")


def failure_from(message: Mapping[str, Any]) -> HostFailure:
    """Parse the failure in a message."""
    return HostFailure(
        host=str(message.get("host")),
        process=str(message.get("process")),
        exit_code=int(message.get("exit_code") or LAUNCHER_FAILED),
        message=str(message.get("message")),
        graceful=bool(message.get("graceful")),
        **{name: str(message.get(name, "")) for name in ("signal", "exception", "hint", "traceback")},
    )


def _digest(secret: bytes, *words: str) -> str:
    return hmac.new(secret, _bytes("\n".join(words)), "sha256").hexdigest()


def _bytes(text: str) -> bytes:
    """Encode any text of an unauthenticated sender: JSON can hold unpaired surrogates."""
    return text.encode("utf-8", "backslashreplace")
