"""The processes of this machine as Linux tells them: who descends from whom, and how to end them all.

Where there is no ``/proc`` nothing is found, and a job's processes are only those the agent started itself.
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
#: Seconds that killed processes are given to vanish; the kernel needs milliseconds.
VANISHING_SECONDS = 5.0
_POLL_SECONDS = 0.005


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that a reused number cannot be mistaken for."""

    pid: int
    #: Clock ticks from boot to the process's start.
    started: int
    #: The boot it lives in.
    boot: str


@dataclass(frozen=True)
class _Status:
    parent: int
    started: int
    running: bool


def identify(pid: int) -> ProcessIdentity | None:
    """Give the identity of a running process; None when there is none of that number."""
    status = _status(pid)
    return ProcessIdentity(pid, status.started, boot_id()) if status and status.running else None


def is_running(identity: ProcessIdentity) -> bool:
    """Say whether that very process still runs."""
    return identify(identity.pid) == identity


def send_signal(identity: ProcessIdentity, number: signal.Signals) -> None:
    """Send a signal to that very process, if it still runs and this one may."""
    if is_running(identity):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(identity.pid, number)


def descendants(ancestor: int) -> list[int]:
    """Give every running process below ``ancestor``, daemons that left their session included."""
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
    """Give every running process of this user whose environment has an entry beginning with ``prefix``."""
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
    """Kill what ``find`` gives until it gives nothing more; False when something outlived `VANISHING_SECONDS`."""
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
    """Make orphans below this process its own children, so that none is lost."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that forked it dies; keeps through ``exec``."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _load_prctl() -> Callable[..., int] | None:
    # Looked up once, at import: between fork and exec nothing should allocate or lock more than it must.
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
        for name in os.listdir("/proc"):  # noqa: PTH208 - names are all that is wanted
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
    """Return what names the boot that this machine is in; "" where the kernel does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""
