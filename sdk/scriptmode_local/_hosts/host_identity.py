"""What a host that is a process has of its own: ``/opt/ml``, and a loopback address with a name in ``/etc/hosts``."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from scriptmode._core.machine.programs import run_program
from scriptmode._core.text.messages import Problem
from scriptmode_runtime._processes import namespace
from scriptmode_runtime.contract import DEFAULT_BASE_DIR

_ETC_HOSTS = Path("/etc/hosts")
#: Seconds for an interpreter to start and to try a namespace on a loaded machine.
_TRIAL_SECONDS = 10.0
#: Errors of a rule of this machine, such as a setting, AppArmor or a filter of system calls.
_FORBIDDEN = (errno.EPERM, errno.EACCES)


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


def describe_missing_names(refusal: namespace.Refusal) -> Problem:
    """Return what a host lacks that has the machine's ``/etc/hosts``."""
    reason = f"{refusal.reason} ({refusal})"
    message = f"the names of the job's hosts do not resolve: {_ETC_HOSTS} cannot be replaced by the host's: {reason}"
    return Problem(message, f"make {_ETC_HOSTS} a file, which may be empty")


def find_refusal() -> Problem | None:
    """Return why a host of this machine would have no ``/opt/ml`` of its own, tried in another process; else None."""
    try:
        result = run_program((sys.executable, "-m", namespace.__name__), _TRIAL_SECONDS)
        refusal = json.loads(result.output)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        return Problem(
            f"own {DEFAULT_BASE_DIR}: unknown, because the trial did not run: {error}", "run scriptmode doctor again"
        )
    return describe_refusal(namespace.Refusal(*refusal)) if refusal else None


def describe_refusal(refusal: namespace.Refusal) -> Problem:
    """Return what a host lacks whose namespace was refused, and the next step for that error at that step."""
    own = f"own {DEFAULT_BASE_DIR}: no, {refusal}"
    return Problem(f"{own}: {DEFAULT_BASE_DIR} is the directory of this machine, not of the host", _advise(refusal))


def _advise(refusal: namespace.Refusal) -> str:
    elsewhere = "use instance type 'local', or save to the directory that SM_MODEL_DIR names"
    if DEFAULT_BASE_DIR in refusal.step and refusal.number not in _FORBIDDEN:
        return f"make {DEFAULT_BASE_DIR} a directory: mkdir -p {DEFAULT_BASE_DIR}"
    if refusal.number == errno.EROFS:
        return f"make /proc writable in this container, or {elsewhere}"
    if refusal.number not in (*_FORBIDDEN, errno.ENOSPC):
        return elsewhere
    if os.geteuid() == 0:
        return "start the container with: docker run --cap-add SYS_ADMIN --security-opt apparmor=unconfined"
    ubuntu = "on Ubuntu as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    return f"allow user namespaces on this machine ({ubuntu}) or in its container (seccomp), or {elsewhere}"
