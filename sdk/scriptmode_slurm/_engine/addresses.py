"""Addresses, interfaces and ports of a job's hosts on the nodes of a cluster.

``python -m scriptmode_slurm._engine.addresses INTERFACE`` writes this node's address in an interface or a network.
"""

from __future__ import annotations

import array
import fcntl
import ipaddress
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from scriptmode.errors import DataError
from scriptmode_local._system.ports import DEFAULT_EPHEMERAL, LOWEST, ROLES

#: The first port of each block. Nodes may have other ephemeral ranges than this machine: Linux's default is assumed.
_BLOCKS = range(LOWEST, DEFAULT_EPHEMERAL - len(ROLES) + 1, len(ROLES))
#: ``SIOCGIFCONF`` and the size of its ``struct ifreq`` on 64-bit Linux (netdevice(7)).
_SIOCGIFCONF, _IFREQ_BYTES = 0x8912, 40
_MOST_INTERFACES = 256
_IPV6_INTERFACES = "/proc/net/if_inet6"
#: An address of the world, for documentation (RFC 5737), and the port of the service "discard".
_ELSEWHERE, _DISCARD_PORT = "198.51.100.1", 9


class Interface(NamedTuple):
    """One address of a network interface."""

    name: str
    address: str


def port_block(job: int) -> dict[str, int]:
    """Return the port of each role for the hosts of a Slurm job.

    Jobs that share a node have different numbers, and so different blocks; a number's block is that of the number
    2,529 below it.
    """
    first = _BLOCKS[job % len(_BLOCKS)]
    return {role: first + offset for offset, role in enumerate(ROLES)}


def resolve_address(node: str, address: str) -> str:
    """Return the IP address of a node from its NodeAddr, which may be a name; raise `DataError` for an unknown one."""
    try:
        answers = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise DataError(
            f"node {node} has the address {address!r}, which does not resolve: {error}",
            advice="give Slurm(interface=...), the name or the network of the interface between the nodes",
        ) from error
    # A name may have an address of each family: IPv4 needs no scope.
    return str(min(answers, key=lambda answer: answer[0] != socket.AF_INET)[4][0])


def is_loopback(address: str) -> bool:
    """Return whether only the machine itself reaches an address, such as 127.0.1.1, Debian's for the own name."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def find_own_address(other: str = "") -> str:
    """Return the address by which this machine reaches the address ``other``, or the world; "" if it has none."""
    with (
        suppress(OSError),
        socket.socket(socket.AF_INET6 if ":" in other else socket.AF_INET, socket.SOCK_DGRAM) as probe,
    ):
        # Without a packet: the kernel looks up the route.
        probe.connect((other or _ELSEWHERE, _DISCARD_PORT))
        address = str(probe.getsockname()[0])
        if not is_loopback(address):
            return address
    return min((nic.address for nic in list_interfaces()), key=lambda address: ":" in address, default="")


def find_interface(address: str, interfaces: Iterable[Interface]) -> str:
    """Return the name of the interface that has an address; "" if this machine has no such address."""
    return next((nic.name for nic in interfaces if nic.address == address), "")


def choose_address(wanted: str, interfaces: Iterable[Interface]) -> str:
    """Return this machine's address of the interface ``wanted``, its name or a network such as ``10.1.0.0/16``.

    Returns "" if it has none. IPv4 is preferred where an interface has both.
    """
    with suppress(ValueError):
        network = ipaddress.ip_network(wanted)
        return next((nic.address for nic in interfaces if ipaddress.ip_address(nic.address) in network), "")
    named = [nic.address for nic in interfaces if nic.name == wanted]
    return min(named, key=lambda address: ":" in address, default="")


def list_interfaces() -> list[Interface]:
    """Return the addresses of this machine's interfaces that are up, except for loopback and link-local ones."""
    nics = [*_ipv4_interfaces(), *_ipv6_interfaces()]
    return [nic for nic in nics if nic.name != "lo" and not ipaddress.ip_address(nic.address).is_link_local]


def _ipv4_interfaces() -> Iterator[Interface]:
    """Yield the IPv4 addresses; an alias such as ``eth0:1`` has the name of its interface."""
    buffer = array.array("B", bytes(_MOST_INTERFACES * _IFREQ_BYTES))
    address, size = buffer.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        answer = fcntl.ioctl(query, _SIOCGIFCONF, struct.pack("iL", size, address))
    length = struct.unpack("iL", answer)[0]
    for start in range(0, length, _IFREQ_BYTES):
        request = buffer[start : start + _IFREQ_BYTES].tobytes()
        name = request[:16].partition(b"\0")[0].decode(errors="replace")
        yield Interface(name.partition(":")[0], socket.inet_ntoa(request[20:24]))


def _ipv6_interfaces() -> Iterator[Interface]:
    """Yield the IPv6 addresses; none where the kernel has no IPv6."""
    with suppress(OSError), open(_IPV6_INTERFACES, encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            digits, *_, name = line.split()
            yield Interface(name, socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits)))


if __name__ == "__main__":
    sys.stdout.write(choose_address(sys.argv[1], list_interfaces()) + "\n")
