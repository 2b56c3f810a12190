"""Processes of this machine: found by descent or environment, signalled, waited for.

Without ``/proc`` no process is found.

`ProcessTree` has all processes of a started program, from the first signal to stop it. A shell ends at SIGTERM at once,
and so does a Python program without a handler; what they started may be saving then. A program has therefore ended when
its last process has, not its first.

Its processes are those of its own session (`children.start` makes one) or process group (`rank` makes one), and all
below them. One signal to the group reaches most of them. A process in another group (``set -m``, ``setsid``,
``timeout``, ``start_new_session``) is signalled by its parent; once that parent has ended, it is signalled here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from scriptmode_runtime._processes import proc

if TYPE_CHECKING:
    import subprocess

    from scriptmode_runtime._processes.proc import Process, ProcessIdentity

#: Seconds between two checks for processes that are left.
POLL_SECONDS = 0.1
#: Seconds in which killed processes must end; the kernel needs milliseconds.
KILL_SECONDS = 5.0
_KILL_POLL_SECONDS = 0.005


def send_signal(identity: ProcessIdentity, number: int) -> bool:
    """Send a signal to exactly that process; return whether it still runs and permissions allow it."""
    return proc.is_running(identity) and signal_all([identity.pid], number)


def signal_all(pids: Iterable[int], number: int) -> bool:
    """Send a signal to processes, and return whether all got it; ignore ended ones and those of other users."""
    are_sent = True
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):  # noqa: PERF203 - the others get it
            are_sent = False
    return are_sent


def signal_group(group: int, number: int) -> None:
    """Send a signal to a process group; ignore one that has ended, or that is another user's."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def kill_all(pids: Iterable[int]) -> None:
    """Kill processes; ignore those that have ended, and those of other users."""
    signal_all(pids, signal.SIGKILL)


def kill_tree(pid: int) -> None:
    """Kill a running process and all its descendants, the process first."""
    kill_all([pid, *descendants(pid)])


def wait_until(reached: Callable[[], bool], seconds: float, poll: float = 0.05) -> bool:
    """Wait until ``reached``, which is called every ``poll`` seconds; return False after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() >= deadline:
            return False
        time.sleep(poll)
    return True


def kill_until_gone(find: Callable[[], list[int]], reap: Callable[[], None] = lambda: None) -> bool:
    """Kill the processes that ``find`` returns until it returns none; return False after `KILL_SECONDS`."""

    def are_gone() -> bool:
        pids = find()
        kill_all(pids)
        reap()
        return not pids

    return wait_until(are_gone, KILL_SECONDS, _KILL_POLL_SECONDS)


def stop_group(leader: subprocess.Popen[bytes]) -> None:
    """Kill a child with all processes of the group that it leads, and reap it.

    It is reaped last, because its number, and with it the group's, may then be another process's; a child that has been
    reaped is left for the same reason.
    """
    if leader.returncode is None:
        signal_group(leader.pid, signal.SIGKILL)
        leader.wait()


def children(parent: int) -> list[int]:
    """Return the running children of a process."""
    return [pid for pid, process in proc.processes().items() if process.parent == parent and process.running]


def descendants(ancestor: int) -> list[int]:
    """Return all running descendants of a process, nearest first, also those that left its session."""
    processes = proc.processes()
    return [pid for pid in _reachable(processes, [ancestor])[1:] if processes[pid].running]


class TreeUsage(NamedTuple):
    """Resources of a process and all its running descendants."""

    pids: tuple[int, ...]
    #: CPU time so far, with that of ended processes that were waited for in the tree.
    cpu_seconds: float
    #: Resident bytes; pages that processes share count for each.
    memory: int


def measure_trees(roots: Mapping[str, int]) -> dict[str, TreeUsage]:
    """Return the resources of each tree, by the name of its first process; trees that have ended are left out."""
    processes = {pid: process for pid, process in proc.processes().items() if process.running}
    usages = {}
    for name, root in roots.items():
        if root in processes:
            pids = _reachable(processes, [root])
            ticks, pages = (sum(getattr(processes[pid], field) for pid in pids) for field in ("cpu", "memory"))
            usages[name] = TreeUsage(tuple(pids), ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE"))
    return usages


def find_by_variable(prefix: str) -> list[int]:
    """Return every other running process whose readable environment has an entry that begins with ``prefix``."""
    others = (pid for pid, process in proc.processes().items() if process.running and pid != os.getpid())
    return [
        pid for pid in others if any(f"{name}={value}".startswith(prefix) for name, value in proc.environ(pid).items())
    ]


class ProcessTree:
    """The processes of the program whose first process is, or was, ``leader``.

    Create it before the program is signalled: a process's parent is known only as long as both live. Where the leader
    ``has_ended`` and was reaped, its number may be another program's by now: then only processes below this one, which
    adopts orphans (`system.adopt_orphans`), belong to the program.
    """

    def __init__(self, leader: int, *, has_ended: bool = False) -> None:
        self._leader = leader
        self._has_ended = has_ended
        #: Start time by process id: both together identify a process.
        self._known: dict[int, int] = {}
        #: Processes that a signal to the leader's group does not reach.
        self._unsignalled = {pid for pid, process in self._members().items() if process.group != leader}

    def is_alive(self) -> bool:
        """Return whether any process is left, apart from those that only wait to be reaped."""
        return bool(self._members()) if proc.has_processes() else _exists(self._leader)

    def pids(self) -> list[int]:
        """Return the processes that are left."""
        return list(self._members())

    def signal_orphans(self, number: int) -> None:
        """Send a signal to each process outside the leader's group whose parent has ended, once."""
        members = self._members() if self._unsignalled else {}
        for pid in sorted(self._unsignalled):
            if pid not in members or members[pid].parent not in members:
                self._unsignalled.discard(pid)
                if pid in members:
                    signal_all([pid], number)

    def _members(self) -> dict[int, Process]:
        """Return the living processes of the program, and remember them."""
        processes = {pid: process for pid, process in proc.processes().items() if process.running}
        own = set(_reachable(processes, [os.getpid()])) if self._has_ended else processes.keys()
        roots = [pid for pid, process in processes.items() if pid in own and self._is_known(pid, process)]
        members = {pid: processes[pid] for pid in _reachable(processes, roots)}
        self._known = {pid: process.started for pid, process in members.items()}
        return members

    def _is_known(self, pid: int, process: Process) -> bool:
        return self._leader in (process.group, process.session) or self._known.get(pid) == process.started


def _reachable(processes: Mapping[int, Process], roots: Iterable[int]) -> list[int]:
    """Return the roots and all that is below them, nearest first."""
    below: dict[int, list[int]] = {}
    for pid, process in processes.items():
        below.setdefault(process.parent, []).append(pid)
    pids = list(roots)
    known = set(pids)
    for pid in pids:  # grows while it is walked
        new = [child for child in below.get(pid, ()) if child not in known]
        pids += new
        known.update(new)
    return pids


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True
