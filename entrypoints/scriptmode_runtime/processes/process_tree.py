"""All processes of a started program, from the first signal to stop it.

A shell ends at SIGTERM at once, and so does a Python program without a handler; what they started may be saving then.
A program has therefore ended when its last process has, not its first.

Its processes are those of its own session (`children.start` makes one) or process group (`rank` makes one), and all
below them. One signal to the group reaches most of them. A process in another group (``set -m``, ``setsid``,
``timeout``, ``start_new_session``) is signalled by its parent; once that parent has ended, it is signalled here.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from scriptmode_runtime.processes import system

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scriptmode_runtime.processes.system import Process

#: Seconds between two checks for processes that are left.
POLL_SECONDS = 0.1


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
        return bool(self._members()) if system.has_processes() else _exists(self._leader)

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
                    with contextlib.suppress(OSError):
                        os.kill(pid, number)

    def _members(self) -> dict[int, Process]:
        """Return the living processes of the program, and remember them."""
        processes = system.processes()
        below: dict[int, list[int]] = {}
        for pid, process in processes.items():
            below.setdefault(process.parent, []).append(pid)
        own = _reachable(below, [os.getpid()]) if self._has_ended else processes.keys()
        roots = [pid for pid, process in processes.items() if pid in own and self._is_known(pid, process)]
        found = _reachable(below, roots)
        members = {pid: processes[pid] for pid in found}
        self._known = {pid: process.started for pid, process in members.items()}
        return members

    def _is_known(self, pid: int, process: Process) -> bool:
        return self._leader in (process.group, process.session) or self._known.get(pid) == process.started


def _reachable(below: Mapping[int, Iterable[int]], roots: Iterable[int]) -> set[int]:
    """Return the roots and all that is below them."""
    found: set[int] = set()
    pending = list(roots)
    while pending:
        pid = pending.pop()
        if pid not in found:
            found.add(pid)
            pending += below.get(pid, ())
    return found


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True
