"""Calls of Linux that Python does not wrap, and what ``/proc`` tells of processes. Elsewhere they do nothing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIGKILL = 9
#: Where the time of a process's start stands among the fields of ``/proc/<pid>/stat`` behind its name (proc(5)).
_STARTED = 19
_file_limits: tuple[int, int] | None = None


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends; holds over exec."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ended, as process 1 is: they are reaped, not lost."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def raise_file_limit(count: int) -> None:
    """Let this process open so many files at once, as far as it may; what it starts has the limit it would have had."""
    global _file_limits  # noqa: PLW0603 - a property of the process
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        _file_limits = _file_limits or (soft, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def restore_limits() -> None:
    """Undo `raise_file_limit`, in a process that will be a program."""
    if _file_limits:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, _file_limits)


def children(parent: int) -> list[int]:
    """Give the direct children of a process; none where ``/proc`` does not tell."""
    return [child for child, its_parent in _parents().items() if its_parent == parent]


def descendants(ancestor: int) -> list[int]:
    """Give all processes below a process, nearest first."""
    parents = _parents()
    found = [ancestor]
    for process in found:  # grows while it is walked
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


class Process(NamedTuple):
    """What the kernel tells of a living process."""

    parent: int
    group: int
    session: int
    #: In clock ticks since the machine came up.
    started: int


def has_processes() -> bool:
    """Return whether ``/proc`` is there and numbers processes as this one does: not that of another namespace."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def processes() -> dict[int, Process]:
    """Return all living processes, without those that only wait to be reaped; none where ``/proc`` does not tell."""
    found = {}
    for pid, fields in _stats() if has_processes() else ():
        if fields[0] not in (b"Z", b"X"):
            parent, group, session = map(int, fields[1:4])
            found[pid] = Process(parent, group, session, int(fields[_STARTED]))
    return found


def has_handler(process: int, number: int) -> bool:
    """Tell whether a process has a handler of its own for a signal; any other signal of the kind would end it."""
    for line in _read(process, "status").splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def state(process: int) -> str:
    """Give the letter that ps shows for a process's state; "" where it is gone."""
    return _read(process, "stat").rpartition(")")[2].strip()[:1]


def command_line(process: int) -> list[str]:
    """Give the words a process was started with; none where it has ended."""
    return [word for word in _read(process, "cmdline").split("\0") if word]


def environ(process: int) -> dict[str, str]:
    """Give the variables a process was started with; none where they are not shown."""
    pairs = (pair.partition("=") for pair in _read(process, "environ").split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def _read(process: int, name: str) -> str:
    try:
        with open(f"/proc/{process}/{name}", encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def _parents() -> dict[int, int]:
    return {pid: int(fields[1]) for pid, fields in _stats()}


def _stats() -> Iterator[tuple[int, list[bytes]]]:
    """Yield each process and what follows its name in ``/proc/<pid>/stat``: state, parent, group, session ..."""
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # "pid (name) state parent ...": the name may hold blanks and brackets.
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if len(fields) > _STARTED:
                yield int(name), fields


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    try:
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):  # a Python without ctypes, a C library without prctl
        return
