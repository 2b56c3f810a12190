"""Linux system calls that Python does not wrap, and processes in ``/proc``. On other systems they do nothing."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIGKILL = 9
#: Indexes among the fields of ``/proc/<pid>/stat`` after the process's name (proc(5)): its start time; utime, stime,
#: cutime and cstime; the resident set.
_STARTED, _CPU, _RESIDENT = 19, slice(11, 15), 21
_file_limits: tuple[int, int] | None = None
_boot_id = ""


def die_with_parent() -> None:
    """Set the kernel to kill this process when the thread that started it ends; it stays set after exec."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def adopt_orphans() -> None:
    """Set this process as the parent of all descendants whose own parent ended, like process 1: it can reap them."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def raise_file_limit(count: int) -> None:
    """Raise the limit of open files to ``count``, or to the hard limit; child processes keep the original limit."""
    global _file_limits  # noqa: PLW0603 - a property of the process
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        _file_limits = _file_limits or (soft, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def restore_limits() -> None:
    """Restore the original limit of open files, in a process before exec."""
    if _file_limits:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, _file_limits)


def end_by_signal(number: int) -> None:
    """Stop this process by the signal that ended its child; only the child dumps core."""
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
    os.kill(os.getpid(), number)


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
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def process(pid: int) -> Process | None:
    """Return a process; None where no process has that id, or ``/proc`` is missing."""
    try:
        # As bytes, which is faster: it is read of every process, many times a second.
        with open(f"/proc/{pid}/stat", "rb") as file:
            content = file.read()
    except OSError:
        return None
    # "pid (name) state parent group session ...": the name may hold blanks and brackets.
    fields = content.rpartition(b")")[2].split()
    if len(fields) <= _RESIDENT:
        return None
    parent, group, session = map(int, fields[1:4])
    running = fields[0] not in (b"Z", b"X")
    return Process(
        parent, group, session, int(fields[_STARTED]), running, sum(map(int, fields[_CPU])), int(fields[_RESIDENT])
    )


def processes() -> dict[int, Process]:
    """Return all processes by their ids, also those that wait to be reaped; none where ``/proc`` is missing."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()] if has_processes() else []
    return {pid: record for pid in pids if (record := process(pid))}


def boot_id() -> str:
    """Return the ID of this machine's current boot; "" if it is unknown."""
    global _boot_id  # noqa: PLW0603 - a property of the machine
    _boot_id = _boot_id or read_text("/proc/sys/kernel/random/boot_id").strip()
    return _boot_id


def has_handler(process: int, number: int) -> bool:
    """Return whether a process has a handler for a signal."""
    for line in _read(process, "status").splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


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
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def _read(process: int, name: str) -> str:
    return read_text(f"/proc/{process}/{name}")


def call(name: str, *arguments: int | bytes) -> None:
    """Run a function of the C library; raise ``OSError`` where it fails or is missing."""
    if sys.platform != "linux":
        raise OSError(0, "this system is not Linux")
    try:
        import ctypes

        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (ImportError, AttributeError) as error:  # a Python without ctypes, a C library without the function
        raise OSError(0, f"Python cannot call {name}()") from error
    if function(*(ctypes.c_ulong(argument) if isinstance(argument, int) else argument for argument in arguments)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _prctl(option: int, value: int) -> None:
    with suppress(OSError):
        call("prctl", option, value, 0, 0, 0)
