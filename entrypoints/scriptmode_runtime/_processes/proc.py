"""Processes in Linux's ``/proc`` (proc(5)), and their identities. On other systems none is found."""

from __future__ import annotations

import contextlib
import functools
import os
from typing import NamedTuple

#: Indexes among the fields of ``/proc/<pid>/stat`` after the process's name (proc(5)): its start time; utime, stime,
#: cutime and cstime; the resident set.
_STARTED, _CPU, _RESIDENT = 19, slice(11, 15), 21


class Process(NamedTuple):
    """A process in ``/proc``."""

    parent: int
    group: int
    session: int
    #: Start time in clock ticks since the machine was booted.
    started: int
    #: False where it only waits to be reaped.
    running: bool
    #: CPU time in clock ticks, with that of ended children that it waited for.
    cpu: int
    #: Resident memory in pages.
    memory: int


def has_processes() -> bool:
    """Return whether ``/proc`` exists and belongs to this process's namespace of process ids."""
    with contextlib.suppress(OSError):
        return os.readlink("/proc/self") == str(os.getpid())
    return False


def process(pid: int) -> Process | None:
    """Return a process; None where no process has that id, or ``/proc`` is missing."""
    content = b""
    # As bytes, which is faster: it is read of every process, many times a second.
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        content = file.read()
    # "pid (name) state parent group session ...": the name may hold blanks and brackets.
    fields = content.rpartition(b")")[2].split()
    if len(fields) <= _RESIDENT:
        return None
    parent, group, session = map(int, fields[1:4])
    started, memory = int(fields[_STARTED]), int(fields[_RESIDENT])
    return Process(parent, group, session, started, fields[0] not in (b"Z", b"X"), sum(map(int, fields[_CPU])), memory)


def processes() -> dict[int, Process]:
    """Return all processes by their ids, also those that wait to be reaped; none where ``/proc`` is missing."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()] if has_processes() else []
    return {pid: record for pid in pids if (record := process(pid))}


def boot_id() -> str:
    """Return the ID of this machine's current boot; "" if it is unknown."""
    if not _boot_id():
        _boot_id.cache_clear()  # it may be read again, as after too many open files
    return _boot_id()


@functools.cache
def _boot_id() -> str:
    return read_text("/proc/sys/kernel/random/boot_id").strip()


def has_handler(process: int, number: int) -> bool:
    """Return whether a process has a handler for a signal."""
    return _has_signal(_read(process, "status"), ("SigCgt:",), number)


def has_pending(thread: int, number: int) -> bool:
    """Return whether a signal is pending for a thread, or it has ended."""
    status = _read(thread, "status")
    return not status or _has_signal(status, ("SigPnd:", "ShdPnd:"), number)


def _has_signal(status: str, masks: tuple[str, ...], number: int) -> bool:
    lines = (line for line in status.splitlines() if line.startswith(masks))
    return any(int(line.split()[1], 16) >> (number - 1) & 1 for line in lines)


def state(process: int) -> str:
    """Return the letter that ps shows for a process's state; "" where it has ended."""
    return _read(process, "stat").rpartition(")")[2].strip()[:1]


def command_line(process: int) -> list[str]:
    """Return the words of a process's command line; none where it has ended."""
    return [word for word in _read(process, "cmdline").split("\0") if word]


def environ(process: int) -> dict[str, str]:
    """Return the initial environment of a process; empty where it cannot be read."""
    pairs = (pair.partition("=") for pair in _read(process, "environ").split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def control_groups(process: int) -> str:
    """Return the paths of a process's control groups; "" where it has ended."""
    return _read(process, "cgroup")


def read_text(path: str) -> str:
    """Return the text of a file of the kernel; "" where it cannot be read."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()
    return ""


def _read(process: int, name: str) -> str:
    return read_text(f"/proc/{process}/{name}")


class ProcessIdentity(NamedTuple):
    """Identity of a process, which another process with the same ID does not share."""

    pid: int
    #: Clock ticks from boot to the process's start.
    started: int
    #: The ID of the boot in which it runs.
    boot: str


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of a running process; None if no process has that ID."""
    found = process(pid)
    return ProcessIdentity(pid, found.started, boot_id()) if found and found.running else None


def is_running(identity: ProcessIdentity) -> bool:
    """Return whether exactly that process still runs."""
    return identify(identity.pid) == identity


def is_stopped(identity: ProcessIdentity) -> bool:
    """Return whether exactly that process is stopped, as by SIGSTOP."""
    return state(identity.pid) == "T" and is_running(identity)
