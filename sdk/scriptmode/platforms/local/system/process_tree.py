"""Processes of this machine, read from ``/proc``: their descent, their environment, and killing all of them.

Without ``/proc`` no process is found, and a job's processes are only those that the agent started itself.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
#: Seconds in which killed processes must end; the kernel needs milliseconds.
VANISHING_SECONDS = 5.0
_POLL_SECONDS = 0.005


@dataclass(frozen=True)
class ProcessIdentity:
    """Identity of a process, which another process with the same ID does not share."""

    pid: int
    #: Clock ticks from boot to the process's start.
    started: int
    #: The ID of the boot in which it runs.
    boot: str


@dataclass(frozen=True)
class _Status:
    parent: int
    started: int
    running: bool


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of a running process; None if no process has that ID."""
    status = _status(pid)
    return ProcessIdentity(pid, status.started, boot_id()) if status and status.running else None


def is_running(identity: ProcessIdentity) -> bool:
    """Return whether exactly that process still runs."""
    return identify(identity.pid) == identity


def send_signal(identity: ProcessIdentity, number: signal.Signals) -> None:
    """Send a signal to exactly that process, if it still runs and permissions allow it."""
    if is_running(identity):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(identity.pid, number)


def descendants(ancestor: int) -> list[int]:
    """Return every running descendant of ``ancestor``, including daemons that left their session."""
    statuses = {pid: status for pid in _pids() if (status := _status(pid))}
    children: dict[int, list[int]] = {}
    for pid, status in statuses.items():
        children.setdefault(status.parent, []).append(pid)
    found: list[int] = []
    generation = children.get(ancestor, [])
    while generation:
        found += generation
        generation = [child for pid in generation for child in children.get(pid, [])]
    return [pid for pid in found if statuses[pid].running]


def find_by_variable(prefix: str) -> list[int]:
    """Return every running process of this user whose environment has an entry that begins with ``prefix``."""
    wanted = os.fsencode(prefix)
    found = []
    for pid in _pids():
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - one of thousands
            environ = file.read()
            if environ.startswith(wanted) or b"\0" + wanted in environ:
                found.append(pid)
    own = os.getpid()
    return [pid for pid in found if pid != own and (status := _status(pid)) and status.running]


def kill_until_gone(find: Callable[[], list[int]], reap: Callable[[], None] = lambda: None) -> bool:
    """Kill the processes that ``find`` returns until it returns none; return False after `VANISHING_SECONDS`."""
    deadline = time.monotonic() + VANISHING_SECONDS
    while pids := find():
        if time.monotonic() > deadline:
            return False
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        reap()
        time.sleep(_POLL_SECONDS)
    return True


def become_subreaper() -> None:
    """Configure this process to adopt orphaned descendants, so that none is lost."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Request that the kernel kill this process when its parent dies; it stays in effect through ``exec``."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _load_prctl() -> Callable[..., int] | None:
    # Looked up once, at import, because code between fork and exec should allocate and lock as little as possible.
    try:
        return ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None


_PRCTL = _load_prctl()


def _prctl(option: int, value: int) -> None:
    if _PRCTL is not None:
        _PRCTL(option, value, 0, 0, 0)


def _pids() -> Iterator[int]:
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - only names are needed
            if name.isdigit():
                yield int(name)


def _status(pid: int) -> _Status | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - one of thousands
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    # proc(5), counted from field 3: state, ppid, ..., starttime is field 22.
    return _Status(int(fields[1]), int(fields[19]), fields[0] not in (b"Z", b"X")) if fields else None


def boot_id() -> str:
    """Return the ID of this machine's current boot; "" if it is unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""
