"""The side of every host but the first: it connects to the first host, reports to it and receives its decisions.

States of a `Member`, each moved by the selector's callbacks or by `tick`::

    connecting --(accepted)--> connected --(hello)--> joining --(welcome)--> joined --(closed, silent)--> lead lost
       ^  ^-----(closed before a hello)----|             |
       '--------(closed before a welcome)----------------'

Bounded: connecting and joining by `Times.join`, one attempt to connect by `_TRY_SECONDS`, connections that the lead
closes before a welcome by `_MAX_REJECTIONS`. Messages before the welcome are queued.
"""

from __future__ import annotations

import selectors
import socket
from typing import TYPE_CHECKING

from scriptmode_runtime._peers.base import WAS_LOST, Peers, failure_from, lost_host
from scriptmode_runtime._peers.connection import Connection
from scriptmode_runtime.plan import TRAINERS_ENDED

if TYPE_CHECKING:
    from scriptmode_runtime._values.failure import HostFailure

_FIRST_RETRY, _LAST_RETRY = 0.02, 0.25
#: Seconds for one attempt to connect, where no answer comes at all.
_TRY_SECONDS = 10.0
#: Connections that the first host may close before it has authenticated this one: it holds a limited number at once.
_MAX_REJECTIONS = 50


class Member(Peers):
    """The side of a host that is not the first."""

    def start(self) -> None:
        """Start to connect to the first host, which may not listen yet."""
        self._endpoint: socket.socket | None = None
        self._connection: Connection | None = None
        self._unsent: list[dict[str, object]] = []
        self._retry = _FIRST_RETRY
        #: The nonce of the first host's hello; "" before it.
        self._lead_nonce = ""
        self._rejections = 0
        self._tries = 0
        self._try_at = self._clock()

    @property
    def disconnected(self) -> bool:
        """Whether this host is not connected to the first one."""
        return self._connection is None or not self._connection.open

    @property
    def finished(self) -> bool:
        """Whether the first host's last message was received."""
        return self.failure is not None or self.reached(TRAINERS_ENDED)

    def announce(self, event: str) -> None:
        """Report to the first host that this one reached an event."""
        self._send_or_queue(type="reached", event=event)

    def fail(self, failure: HostFailure) -> None:
        """Report a failure to the first host, which decides."""
        self._send_or_queue(type="failed", **failure._asdict())

    def send(self, host: str, /, **message: object) -> bool:
        """Send a message to the first host, the only one this one is connected to."""
        if host != self._cluster.lead.name or self.disconnected:
            return False
        self._send_or_queue(**message)
        return True

    def tick(self) -> None:
        """Send a heartbeat, connect again, or report that the first host is lost."""
        if self._connection:
            if self._connection.open:
                self._beat([self._connection])
        elif self.failure is None:
            self._try_to_join()
        if not self._lead_nonce and self.failure is None:
            self._remind([f"{self._cluster.lead.name} at {self._cluster.lead.endpoint('peers')}"])

    def _try_to_join(self) -> None:
        """Connect again where that is due; report that the first host is lost where it is too late."""
        if self._clock() >= self._join_by:
            endpoint = self._cluster.lead.endpoint("peers")
            self.failure = lost_host(
                self._cluster.lead.name, f"could not be reached at {endpoint} in {self._times.join:.0f} s"
            )
        elif self._clock() >= self._try_at:
            timed_out = self._endpoint is not None
            self._close_endpoint()
            if timed_out and self._lead_nonce:
                self._report_lead_lost()
            else:
                self._connect()

    def deadline(self) -> float | None:
        """Return when to connect again, to send a heartbeat, or to report the first host as lost."""
        if self._connection:
            return self._heartbeat_at if self._connection.open else None
        if self.failure:
            return None
        return min(self._try_at, self._join_by)

    def close(self) -> None:
        """Close the connection."""
        if self._connection:
            self._connection.close()
        self._close_endpoint()

    def _connect(self) -> None:
        lead = self._cluster.lead
        try:
            addresses = socket.getaddrinfo(lead.address, lead.ports["peers"], 0, socket.SOCK_STREAM)
            # In turn: the first host may listen at some of its addresses only.
            family, kind, *_, address = addresses[self._tries % len(addresses)]
            self._tries += 1
            self._endpoint = endpoint = socket.socket(family, kind)
            endpoint.settimeout(0)
            endpoint.connect_ex(address)
        except OSError:  # its name does not resolve yet
            self._retry_later()
            return
        self._try_at = self._clock() + _TRY_SECONDS
        self._selector.register(endpoint, selectors.EVENT_WRITE, self._connected)

    def _connected(self) -> None:
        endpoint = self._endpoint
        if endpoint is None:
            return
        if not _is_connected(endpoint):
            self._close_endpoint()
            self._retry_later()
            if self._lead_nonce:  # it listened before, and does not any more
                self._report_lead_lost()
            return
        self._selector.unregister(endpoint)
        self._endpoint = None
        self._connection = Connection(self._selector, endpoint, self._on_message, self._clock())

    def _close_endpoint(self) -> None:
        if self._endpoint:
            self._selector.unregister(self._endpoint)
            self._endpoint.close()
            self._endpoint = None

    def _retry_later(self) -> None:
        self._try_at = self._clock() + self._retry
        self._retry = min(2 * self._retry, _LAST_RETRY)

    def _on_message(self, connection: Connection, message: dict[str, object] | None) -> None:
        connection.last_received = self._clock()
        if message is None:
            self._on_lost(connection)
        elif message["type"] == "hello" and not connection.host:
            self._on_hello(connection, str(message.get("nonce")))
        elif not connection.host:
            if message["type"] == "welcome":
                self._on_welcome(connection, message)
            elif message["type"] == "refused":
                self._rejections = _MAX_REJECTIONS
        elif message["type"] == "reached":
            self._reached.add(str(message.get("event")))
        elif message["type"] == "failed":
            self.failure = self.failure or failure_from(message)
        else:
            self._handle(connection.host, message)

    def _on_hello(self, connection: Connection, lead_nonce: str) -> None:
        self._lead_nonce = lead_nonce
        name = self._cluster.this.name
        proof = self._proof("member", name, lead_nonce)
        connection.send(type="join", host=name, nonce=connection.nonce, proof=proof)

    def _on_welcome(self, connection: Connection, message: dict[str, object]) -> None:
        name, lead = self._cluster.this.name, self._cluster.lead.name
        if not self._is_proven(message, "lead", name, connection.nonce):
            return
        connection.host = lead
        self._start_signing(connection, name, (self._lead_nonce, connection.nonce))
        for unsent in self._unsent:
            connection.send(**unsent)

    def _on_lost(self, connection: Connection) -> None:
        if connection.host or (self._lead_nonce and self._rejections >= _MAX_REJECTIONS):
            self._report_lead_lost()
            return
        # Without a hello it was another program, or a launcher that was not ready.
        self._rejections += bool(self._lead_nonce)
        self._connection = None
        self._retry_later()

    def _report_lead_lost(self) -> None:
        if not self.reached(TRAINERS_ENDED) and self.failure is None:
            is_known = self._connection and self._connection.host
            reason = WAS_LOST if is_known else f"{WAS_LOST}, or it knows another secret than this host"
            self.failure = lost_host(self._cluster.lead.name, reason)
        self.on_left(self._cluster.lead.name)

    def _send_or_queue(self, **message: object) -> None:
        if self._connection and self._connection.host:
            self._connection.send(**message)
        else:
            self._unsent.append(message)


def _is_connected(endpoint: socket.socket) -> bool:
    try:
        # A local port without a listener can be assigned to this very socket, which is then connected to itself.
        own = endpoint.getsockname() == endpoint.getpeername()
        return not own and not endpoint.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    except OSError:  # the connection was lost at once
        return False
