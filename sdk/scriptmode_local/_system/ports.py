"""Ports of this machine for one job's hosts, reserved while the job runs."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from scriptmode._core.machine.data_dir import make_private
from scriptmode.errors import DataError
from scriptmode_local._system.directory_lock import try_lock
from scriptmode_runtime.contract import DEFAULT_PORTS

ROLES = tuple(DEFAULT_PORTS)
#: The lowest port used; well-known services use lower ones.
LOWEST = 10000
#: Linux's default start of the ephemeral range, used if the kernel's is unknown or leaves no ports below it.
DEFAULT_EPHEMERAL = 32768
EPHEMERAL_FILE = "/proc/sys/net/ipv4/ip_local_port_range"


class Ports:
    """Blocks of ports, one for each host, each reserved by a locked file that all jobs of the data directory respect.

    They lie below the kernel's ephemeral range, so no outgoing connection gets one between the reservation and the
    moment when the host binds it. The kernel releases the locks when the process ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: list[int] = []

    def reserve(self, hosts: Sequence[str]) -> dict[str, Mapping[str, int]]:
        """Reserve a port of each of `ROLES` for every host; raise `DataError` when none are left."""
        make_private(self._folder, self._folder.parent)
        blocks = _blocks(_ephemeral_start())
        reserved: dict[str, Mapping[str, int]] = {}
        for host in hosts:
            first = next((block for block in blocks if self._take(block)), None)
            if first is None:
                what = f"{host}: no block of {len(ROLES)} free ports between {LOWEST} and {_ephemeral_start() - 1}"
                raise DataError(what, advice="stop other jobs or programs")
            reserved[host] = {role: first + offset for offset, role in enumerate(ROLES)}
        return reserved

    def release(self) -> None:
        """Release all blocks."""
        while self._locks:
            os.close(self._locks.pop())

    def _take(self, first: int) -> bool:
        lock = os.open(self._folder / str(first), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if try_lock(lock) and all(_free(port) for port in range(first, first + len(ROLES))):
            self._locks.append(lock)
            return True
        os.close(lock)
        return False


def free_ports(count: int) -> list[int]:
    """Return ports for a program that keeps them while it is started again: no connection gets one in between."""
    ports = (first + offset for first in _blocks(_ephemeral_start()) for offset in range(len(ROLES)))
    return list(islice(filter(_free, ports), count))


def _blocks(end: int) -> Iterator[int]:
    """Yield the first port of every block once, from a random one on, as other data directories do."""
    blocks = range(LOWEST, end - len(ROLES) + 1, len(ROLES))
    start = random.randrange(len(blocks))  # noqa: S311 - no secret
    yield from blocks[start:]
    yield from blocks[:start]


def _ephemeral_start() -> int:
    with suppress(OSError, ValueError), open(EPHEMERAL_FILE, encoding="ascii") as file:  # noqa: PTH123
        start = int(file.read().split()[0])
        if start >= LOWEST + 1000:
            return start
    return DEFAULT_EPHEMERAL


def _free(port: int) -> bool:
    # TensorFlow's servers bind all interfaces.
    has_ipv6 = _bindable(socket.AF_INET6, "::1", 0)
    is_free = _bindable(socket.AF_INET, "0.0.0.0", port)  # noqa: S104
    return is_free and (not has_ipv6 or _bindable(socket.AF_INET6, "::", port))


def _bindable(family: socket.AddressFamily, address: str, port: int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind((address, port))
    except OSError:
        return False
    return True
