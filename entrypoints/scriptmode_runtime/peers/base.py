"""The hosts of one job tell each other how it goes: ready, ended, failed. The first failure is everyone's.

The first host (`lead.Lead`) listens and decides; the others (`member.Member`) join it. Each side proves that it knows
the job's secret, and everything said afterwards carries a seal made from it. A lost connection, or one on which
nothing comes, is a lost host.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode_runtime.failure import LAUNCHER_FAILED, Failure

if TYPE_CHECKING:
    import selectors
    from collections.abc import Callable, Iterable, Mapping

    from scriptmode_runtime.cluster import Cluster
    from scriptmode_runtime.peers.connection import Connection

#: Seconds until it is said that a host has not come, and then between two such words; and how many are named.
_FIRST_REMINDER, _REMINDER, _SHOWN = 10.0, 60.0, 5
#: A host whose connection breaks.
WAS_LOST = "its launcher was lost: killed, or its machine went away"


class Times(NamedTuple):
    """Deadlines between hosts, in seconds."""

    #: Hosts of one job may start minutes apart.
    join: float = 600.0
    #: Nothing was heard for so long: the host is lost.
    silence: float = 60.0
    heartbeat: float = 5.0
    #: A connection that did not prove to be a host's for so long is closed; a host tries again.
    authenticate: float = 10.0


class Peers:
    """The other hosts, as one of them sees them. What both sides share."""

    #: Why the job must end, as all hosts agree on it.
    failure: Failure | None = None

    def __init__(
        self,
        cluster: Cluster,
        secret: bytes,
        selector: selectors.BaseSelector,
        clock: Callable[[], float],
        times: Times | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        self._cluster = cluster
        self._secret = secret
        self._selector = selector
        self._clock = clock
        self._times = times or Times()
        #: What this host says of itself when it joins, or is joined.
        self._facts = dict(facts or {})
        self._reached: set[str] = set()
        self._join_by = clock() + self._times.join
        self._heartbeat_at = clock() + self._times.heartbeat
        self._remind_at = clock() + _FIRST_REMINDER
        #: Called with a host's name and facts once it proved itself.
        self.on_joined: Callable[[str, Mapping[str, str]], None] = lambda _host, _facts: None
        #: Called with who is waited for, when that takes long.
        self.on_wait: Callable[[str], None] = lambda _text: None
        #: Called with a host's name once it is lost, or has left.
        self.on_left: Callable[[str], None] = lambda _host: None
        #: By type of message: called with the name of the host that sent it, and the message.
        self.handlers: dict[str, Callable[[str, Mapping[str, Any]], None]] = {}

    def start(self) -> None:
        """Begin to listen, or to join."""
        raise NotImplementedError

    def announce(self, event: str) -> None:
        """Say that this host reached an event of `plan`."""
        raise NotImplementedError

    def fail(self, failure: Failure) -> None:
        """Say why the job must end; the first such word of any host becomes ``self.failure`` on all of them."""
        raise NotImplementedError

    def send(self, host: str, /, **message: object) -> bool:
        """Send a message to a host's handlers; false where this one is not connected to it."""
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
    def disconnected(self) -> bool:
        """Whether no other host is connected."""
        raise NotImplementedError

    @property
    def finished(self) -> bool:
        """Whether nothing is left to say or to hear."""
        raise NotImplementedError

    def reached(self, event: str) -> bool:
        """Tell whether every host reached an event."""
        return event in self._reached

    def _heartbeat_due(self) -> bool:
        """Tell whether it is time to say that this host lives, and to see who else does; at most once a beat."""
        now = self._clock()
        if now < self._heartbeat_at:
            return False
        self._heartbeat_at = now + self._times.heartbeat
        return True

    def _remind(self, hosts: Iterable[str]) -> None:
        """Say who has not come, now and then."""
        if self._clock() >= self._remind_at:
            self._remind_at = self._clock() + _REMINDER
            names = list(hosts)
            shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
            left = max(0.0, self._join_by - self._clock())
            self.on_wait(f"{self._cluster.this.name} waits for {shown}, for {left:.0f} s more at most")

    def _is_silent(self, connection: Connection) -> bool:
        return self._clock() - connection.last_received >= self._times.silence

    def _handle(self, host: str, message: Mapping[str, Any]) -> None:
        handler = self.handlers.get(str(message["type"]))
        if handler:
            handler(host, message)

    def _proof(self, side: str, host: str, nonce: str, facts: Mapping[str, str]) -> str:
        """Give what only a host with the secret can: one for each side, host, connection and facts."""
        return _digest(self._secret, side, host, nonce, json.dumps(facts, sort_keys=True))

    def _is_proven(self, message: Mapping[str, Any], side: str, host: str, nonce: str) -> bool:
        proof = self._proof(side, host, nonce, facts_from(message))
        return hmac.compare_digest(proof.encode(), _bytes(str(message.get("proof"))))

    def _start_signing(self, connection: Connection, host: str, nonces: tuple[str, str]) -> None:
        """From now on both sides seal what they say: ``nonces`` are the lead's and the member's."""
        key = _digest(self._secret, "seal", host, *nonces).encode()
        connection.sign_messages(key, leads=self._cluster.leads)


def facts_from(message: Mapping[str, Any]) -> dict[str, str]:
    """Give what a host says of itself in a message."""
    facts = message.get("facts")
    return {str(key): str(value) for key, value in facts.items()} if isinstance(facts, dict) else {}


def lost_host(host: str, reason: str) -> Failure:
    """Give the cause of a host that went away."""
    return Failure(host, "launcher", LAUNCHER_FAILED, f"{host}: {reason}")


def failure_from(message: Mapping[str, Any]) -> Failure:
    """Give the cause that a message carries."""
    return Failure(
        host=str(message.get("host")),
        process=str(message.get("process")),
        exit_code=int(message.get("exit_code") or LAUNCHER_FAILED),
        message=str(message.get("message")),
        graceful=bool(message.get("graceful")),
    )


def _digest(secret: bytes, *words: str) -> str:
    return hmac.new(secret, _bytes("\n".join(words)), "sha256").hexdigest()


def _bytes(text: str) -> bytes:
    """Encode whatever a stranger says: JSON carries halves of characters too."""
    return text.encode("utf-8", "backslashreplace")
