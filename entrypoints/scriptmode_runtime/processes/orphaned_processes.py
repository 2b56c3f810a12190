"""Kills the processes that MPI ranks leave behind: ``mpirun`` would wait for the end of their output for ever.

A `rank` does so itself, unless it was killed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime.processes import children, process_tree, system

if TYPE_CHECKING:
    from scriptmode_runtime.processes.host_processes import HostProcesses

_POLL_SECONDS = 1.0


class OrphanedProcesses:
    """A check once a second, while ``mpirun`` or one of its daemons runs here, whether all its ranks have ended."""

    def __init__(self, processes: HostProcesses) -> None:
        self._processes = processes
        self._clock = processes.loop.clock
        self._check_at = self._clock() + _POLL_SECONDS

    def deadline(self) -> float | None:
        """Return when to check again."""
        return self._check_at if self._processes.rank_starters() else None

    def tick(self) -> None:
        """Check, if it is due."""
        if self._clock() >= self._check_at:
            self._check_at = self._clock() + _POLL_SECONDS
            starters = self._processes.rank_starters()
            if starters and not any(children.mpi_ranks(starter.pid) for starter in starters):
                for orphan in self._orphans():
                    process_tree.kill_tree(orphan)

    def _orphans(self) -> list[int]:
        """Return the processes that ranks started and that this launcher adopted."""
        own = {child.pid for child in self._processes.started}
        adopted = [pid for pid in process_tree.children(os.getpid()) if pid not in own]
        return [pid for pid in adopted if contract.RANK_VARIABLE in system.environ(pid)]
