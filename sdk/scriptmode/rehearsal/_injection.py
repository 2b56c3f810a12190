"""Letting a fault happen to a running job of this machine, through its processes."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from scriptmode.rehearsal._faults import Fault, Interrupt, Kill
from scriptmode_runtime._processes import process_tree, system

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scriptmode_local._store.job_store import JobFolder

#: Variables by which a process of mpirun's knows its rank.
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK")


def inject(fault: Fault, folder: JobFolder, hosts: Sequence[str]) -> bool:
    """Inject a fault into the job of a folder; return whether the process runs that it happens to."""
    if isinstance(fault, Kill):
        pid = _find_script(folder, hosts, fault.host or hosts[-1])
    else:
        pid = _recorded(folder, "agent" if isinstance(fault, Interrupt) else f"agent of {hosts[0]}")
    if not pid:
        return False
    if isinstance(fault, Kill):
        process_tree.kill_all([pid])
    elif isinstance(fault, Interrupt):
        process_tree.signal_all([pid], signal.SIGTERM)
    else:
        process_tree.kill_tree(pid)
    return True


def _recorded(folder: JobFolder, name: str) -> int:
    """Return the process ID of a host's launcher, ``agent`` or ``agent of algo-1``; 0 for one that does not run."""
    identity = folder.read_processes().get(name)
    return identity.pid if identity and process_tree.is_running(identity) else 0


def _find_script(folder: JobFolder, hosts: Sequence[str], host: str) -> int:
    """Return the first process of the script on a host, its first rank or what its launcher started; 0 without."""
    ranks: dict[int, int] = {}
    # On this machine one mpirun, on the first host, starts the ranks of all hosts.
    first, launcher = _recorded(folder, hosts[0]), _recorded(folder, host)
    for pid in process_tree.descendants(first) if first else ():
        variables = system.environ(pid)
        rank = next((variables[name] for name in _RANKS if name in variables), "")
        if rank.isdecimal() and (program := process_tree.children(pid)):
            # The runtime's process of a rank starts the script.
            ranks.setdefault(int(rank), program[0])
    if ranks:
        return [pid for _, pid in sorted(ranks.items())][hosts.index(host) * len(ranks) // len(hosts)]
    return min(process_tree.children(launcher), default=0) if launcher else 0
