"""What a host that is a process has of its own: ``/opt/ml``, and a loopback address with a name in ``/etc/hosts``."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.messages import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

_ETC_HOSTS = Path("/etc/hosts")
#: Settings with which Linux distributions forbid namespaces of plain users, and the value that allows them.
_SETTINGS = {
    "kernel.apparmor_restrict_unprivileged_userns": "0",
    "kernel.unprivileged_userns_clone": "1",
    "user.max_user_namespaces": "10000",
}


def write_hosts_file(path: Path, addresses: Mapping[str, str]) -> None:
    """Write a copy of the machine's ``/etc/hosts`` that begins with the addresses of the job's hosts, by name."""
    machine = ""
    with suppress(OSError):
        machine = _ETC_HOSTS.read_text(encoding="utf-8", errors="surrogateescape")
    lines = "".join(f"{address} {name}\n" for name, address in addresses.items())
    path.write_text(f"{lines}{machine}", encoding="utf-8", errors="surrogateescape")


def loopback_address(port: int) -> str:
    """Return the loopback address that no other host of this machine has as long as it has the port reserved."""
    return f"127.{port >> 8}.{port & 255}.1"


def describe_missing_names(error: str) -> Problem:
    """Return what a host lacks that has the machine's ``/etc/hosts``."""
    message = f"the names of the job's hosts do not resolve: {_ETC_HOSTS} cannot be replaced by the host's: {error}"
    return Problem(message, f"make {_ETC_HOSTS} a file, which may be empty")


def describe_refusal(error: str) -> Problem:
    """Return what a host lacks whose mount namespace was refused, and the setting that allows one."""
    message = f"/opt/ml is the directory of this machine, not of the host: a mount namespace was refused: {error}"
    if os.geteuid() == 0:
        return Problem(
            message, "start the container with: docker run --cap-add SYS_ADMIN --security-opt apparmor=unconfined"
        )
    for name, value in _SETTINGS.items():
        with suppress(OSError):
            found = Path("/proc/sys", *name.split(".")).read_text(encoding="ascii").strip()
            if (found == "0") != (value == "0"):
                return Problem(message, f"run as root: sysctl {name}={value}")
    return Problem(message, "allow user namespaces on this machine or in its container, or use instance type 'local'")
