"""Keeps TensorFlow's servers of hosts on one machine to its loopback interface.

TensorFlow binds a server's port on every interface, whatever address the cluster names, and serves whatever graph any
client sends. Where all hosts are processes of one machine nothing but the machine needs to reach them. So the launcher
listens on the same ports at each other address of the machine, and resets what connects there: Linux gives a connection
to the listener with the most exact address. Both can listen because both set SO_REUSEPORT, TensorFlow by the variable
`REUSE_PORT`; only processes of the same user can do so.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scriptmode_runtime.plan import LaunchPlan

#: Whether TensorFlow's servers set SO_REUSEPORT (tensorflow/core/distributed_runtime/rpc/grpc_server_lib.cc).
REUSE_PORT = "TF_GRPC_REUSE_PORT"
#: Seconds between two looks at which addresses the machine has.
_LOOK = 2.0
#: ``SO_LINGER`` on, for no time: the connection is reset.
_RESET = struct.pack("ii", 1, 0)
_LOOPBACK = ("127.", "::1", "localhost")

#: Family, address as it is bound without its port, and what else belongs to it.
Address = tuple[socket.AddressFamily, str, tuple[int, ...]]


class LoopbackOnly:
    """Listens at every address but the loopback ones; a `loop.Ticker`, for addresses that the machine gets later."""

    def __init__(
        self,
        ports: Iterable[int],
        selector: selectors.BaseSelector,
        clock: Callable[[], float],
        addresses: Callable[[], Iterable[Address]] | None = None,
    ) -> None:
        self._ports = tuple(ports)
        self._selector = selector
        self._clock = clock
        self._addresses = addresses or other_addresses
        self._listeners: dict[tuple[Address, int], socket.socket | None] = {}
        self._look_at = clock()
        self.tick()

    def deadline(self) -> float | None:
        """Return when to look for addresses again."""
        return self._look_at

    def tick(self) -> None:
        """Look for addresses, if it is time to."""
        if self._clock() >= self._look_at:
            self._look_at = self._clock() + _LOOK
            there = {(address, port) for address in self._addresses() for port in self._ports}
            for gone in self._listeners.keys() - there:
                self._end(self._listeners.pop(gone))
            # An address that has just come is not ready at once (IPv6 looks for duplicates for a second or two).
            for missing in sorted(each for each in there if not self._listeners.get(each)):
                self._listeners[missing] = self._listen(*missing)

    @property
    def exposed(self) -> list[str]:
        """Return the endpoints that others can reach, because no listener could be had there."""
        return [f"{address[1]} port {port}" for (address, port), listener in self._listeners.items() if not listener]

    def close(self) -> None:
        """Listen no more."""
        for listener in self._listeners.values():
            self._end(listener)
        self._listeners.clear()

    def _listen(self, address: Address, port: int) -> socket.socket | None:
        family, name, rest = address
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((name, port, *rest))
            listener.listen()
        except OSError:  # an address that is not ready or has gone, or a port of another user
            listener.close()
            return None
        listener.settimeout(0)
        self._selector.register(listener, selectors.EVENT_READ, lambda: _refuse(listener))
        return listener

    def _end(self, listener: socket.socket | None) -> None:
        if listener:
            self._selector.unregister(listener)
            listener.close()


def loopback_ports(plan: LaunchPlan) -> list[int]:
    """Return the ports at the loopback interface where this plan's processes may have a TensorFlow server."""
    ports = []
    for spec in (*([plan.main] if plan.main else []), *plan.side_processes, *plan.services):
        config = json.loads(spec.env.get("TF_CONFIG", "{}"))
        role, index = config.get("task", {}).get("type"), config.get("task", {}).get("index", 0)
        for endpoint in config.get("cluster", {}).get(role, [])[index : index + 1]:
            place, _, port = str(endpoint).rpartition(":")
            if place.strip("[]").startswith(_LOOPBACK) and port.isdigit():
                ports.append(int(port))
    return ports


def is_taken(port: int, *, shared: bool = False) -> bool:
    """Return whether another program listens on a port of any interface; ``shared``: one that does not share it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As gRPC does it: connections of an earlier run that still close are no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            if shared:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            probe.bind(("", port))
            probe.listen(1)
        except OSError:
            return True
    return False


def other_addresses() -> set[Address]:
    """Return this machine's addresses that are not loopback ones; none where ``/proc/net`` does not tell."""
    return {*_ipv4(_lines("fib_trie")), *_ipv6(_lines("if_inet6"))}


def _ipv4(lines: Iterable[str]) -> Iterator[Address]:
    """Yield the addresses in the kernel's routing table: a line with each, and below it what it is."""
    address = ""
    for line in lines:
        words = line.split()
        if words[:1] == ["|--"]:
            address = words[1]
        elif words == ["/32", "host", "LOCAL"] and not address.startswith(_LOOPBACK):
            yield socket.AF_INET, address, ()


def _ipv6(lines: Iterable[str]) -> Iterator[Address]:
    """Yield the addresses of ``/proc/net/if_inet6``: address, number of the interface, prefix, scope, flags, name."""
    for line in lines:
        digits, interface, *_ = line.split()
        address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
        if not address.startswith(_LOOPBACK):
            # Addresses of a link alone belong to an interface; to others it does no harm.
            yield socket.AF_INET6, address, (0, int(interface, 16) if address.startswith("fe80:") else 0)


def _lines(name: str) -> list[str]:
    try:
        with open(f"/proc/net/{name}", encoding="ascii") as file:
            return file.read().splitlines()
    except OSError:
        return []


def _refuse(listener: socket.socket) -> None:
    try:
        stranger, _ = listener.accept()
    except OSError:  # it has gone already
        return
    stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    stranger.close()
