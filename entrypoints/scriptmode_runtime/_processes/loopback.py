"""Restrict TensorFlow's servers to the loopback interface where all hosts are on one machine.

TensorFlow binds a server's port on every interface, whatever address the cluster names, and serves every graph that
any client sends. Where all hosts are processes of one machine only that machine needs to reach them. So the launcher
listens on the same ports at each other address of the machine, and resets what connects there: Linux gives a connection
to the listener with the most exact address. Both can listen because both set SO_REUSEPORT, TensorFlow by the variable
`REUSE_PORT`; only processes of the same user can do so.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Callable

from scriptmode_runtime._processes import proc

if TYPE_CHECKING:
    from scriptmode_runtime.plan import LaunchPlan

#: Whether TensorFlow's servers set SO_REUSEPORT (tensorflow/core/distributed_runtime/rpc/grpc_server_lib.cc).
REUSE_PORT = "TF_GRPC_REUSE_PORT"
#: Seconds between two checks of the machine's addresses.
_POLL_SECONDS = 2.0
#: ``SO_LINGER`` on, with a timeout of 0: the connection is reset.
_RESET = struct.pack("ii", 1, 0)
_LOOPBACK = ("127.", "::1", "localhost")

#: Family, address without its port, and the further members of the address tuple.
Address = tuple[socket.AddressFamily, str, tuple[int, ...]]


class LoopbackOnly:
    """Listeners at every address except the loopback ones; a `loop.Ticker`, for addresses that are added later."""

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
        self._check_at = clock()
        self.tick()

    def deadline(self) -> float | None:
        """Return when to check the addresses again."""
        return self._check_at

    def tick(self) -> None:
        """Check the addresses, if it is due."""
        if self._clock() >= self._check_at:
            self._check_at = self._clock() + _POLL_SECONDS
            current = {(address, port) for address in self._addresses() for port in self._ports}
            for gone in self._listeners.keys() - current:
                self._end(self._listeners.pop(gone))
            # A new address is not ready at once (IPv6 checks for duplicates for a second or two).
            for missing in sorted(endpoint for endpoint in current if not self._listeners.get(endpoint)):
                self._listeners[missing] = self._listen(*missing)

    @property
    def exposed(self) -> list[str]:
        """Return the endpoints that other machines can reach, because no listener could be bound there."""
        return [f"{address[1]} port {port}" for (address, port), listener in self._listeners.items() if not listener]

    def close(self) -> None:
        """Close all listeners."""
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
        except OSError:  # an address that is not ready or was removed, or a port of another user
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
    """Return the loopback ports at which this plan's processes may run a TensorFlow server."""
    ports = []
    for spec in (*plan.trainers, *plan.services):
        config = json.loads(spec.env.get("TF_CONFIG", "{}"))
        role, index = config.get("task", {}).get("type"), config.get("task", {}).get("index", 0)
        for endpoint in config.get("cluster", {}).get(role, [])[index : index + 1]:
            address, _, port = str(endpoint).rpartition(":")
            if address.strip("[]").startswith(_LOOPBACK) and port.isdigit():
                ports.append(int(port))
    return ports


def is_taken(port: int, *, shared: bool = False) -> bool:
    """Return whether another program listens on a port of any interface; ``shared``: one that does not share it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As gRPC does: connections of an earlier run that are still closing do not matter.
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
    """Return this machine's addresses except the loopback ones; none where ``/proc/net`` cannot be read."""
    return {
        *_ipv4(proc.read_text("/proc/net/fib_trie").splitlines()),
        *_ipv6(proc.read_text("/proc/net/if_inet6").splitlines()),
    }


def _ipv4(lines: Iterable[str]) -> Iterator[Address]:
    """Yield the addresses in the kernel's routing table: a line with each, and below it a line with its kind."""
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
            # Link-local addresses need the number of their interface.
            yield socket.AF_INET6, address, (0, int(interface, 16) if address.startswith("fe80:") else 0)


def _refuse(listener: socket.socket) -> None:
    try:
        connection, _ = listener.accept()
    except OSError:  # the connection was closed already
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    connection.close()
