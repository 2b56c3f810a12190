"""Letting a fault happen to a running job of this machine, through its processes."""

from __future__ import annotations

import os
import resource
import signal
import stat
import sys
import time
from contextlib import suppress
from functools import singledispatch
from typing import TYPE_CHECKING, Callable, NamedTuple

from scriptmode.rehearsal.faults import (
    BrokenInput,
    Fault,
    Freeze,
    FullDisk,
    Interrupt,
    Kill,
    LoseHost,
    SlowHost,
    SlowInput,
)
from scriptmode_runtime.processes import process_tree, system

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scriptmode.platforms.local.store.job_store import JobFolder


class Injected(NamedTuple):
    """A fault that happens: what a true reason calls its place, and what goes on with one that lasts.

    ``turn`` is called many times a second; ``place`` is "" for a fault of the whole job.
    """

    place: str = ""
    turn: Callable[[], None] | None = None


#: Variables by which a process of mpirun's knows its rank.
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK")
#: Seconds for which a slow host runs in each turn: longer than it takes to find its processes.
_RUN_SECONDS = 0.1
#: Seconds of one turn of a slow input, and between two changes of the share of it in which data are fed.
_FEED_SECONDS, _CHECK_SECONDS = 0.5, 1.0
_FIRST_SHARE, _LEAST_SHARE = 0.1, 0.04
_FUSE = "/dev/fuse"


class NothingToDisturbError(Exception):
    """The job has nothing that the fault could happen to; the text says what is missing."""


class JobProcesses:
    """The processes of a running job whose hosts are processes of this machine."""

    def __init__(self, folder: JobFolder, hosts: Sequence[str]) -> None:
        self.folder = folder
        self._hosts = hosts

    def choose_host(self, name: str) -> str:
        """Return the host of a fault: the last one where it names none."""
        return name or self._hosts[-1]

    def recorded(self, name: str) -> int:
        """Return the process ID of a host's launcher, ``agent`` or ``agent of algo-1``."""
        identity = self.folder.read_processes().get(name)
        if identity is None or not process_tree.is_running(identity):
            raise NothingToDisturbError(f"{name} does not run")
        return identity.pid

    def hosts_agent(self) -> int:
        """Return the process ID of the agent of the hosts."""
        return self.recorded(f"agent of {self._hosts[0]}")

    def of_host(self, name: str) -> list[int]:
        """Return all processes of a host, its launcher first, and those below its ranks where mpirun is on another."""
        launcher = self.recorded(self.choose_host(name))
        below = process_tree.descendants(launcher)
        if not below:
            below = [each for pid in self._ranks(name).values() for each in (pid, *process_tree.descendants(pid))]
        return [launcher, *below]

    def of_script(self, name: str) -> dict[str, int]:
        """Return the first process of each program of the script on a host, by what a reason calls it.

        These are its ranks, in order, or what the launcher started.
        """
        ranks = self._ranks(name)
        host = self.choose_host(name)
        found = ranks or {f"{host}:{pid}": pid for pid in sorted(process_tree.children(self.recorded(host)))}
        if not found:
            raise NothingToDisturbError(f"the script does not run on {host}")
        return found

    def _ranks(self, name: str) -> dict[str, int]:
        """Return the ranks of a host. On this machine one mpirun, on the first host, starts those of all hosts."""
        found: dict[int, int] = {}
        for pid in process_tree.descendants(self.recorded(self._hosts[0])):
            variables = system.environ(pid)
            rank = next((variables[each] for each in _RANKS if each in variables), "")
            if rank.isdecimal() and (program := process_tree.children(pid)):
                # The runtime's process of a rank starts the script.
                found.setdefault(int(rank), program[0])
        of_each = len(found) // len(self._hosts)
        first = self._hosts.index(self.choose_host(name)) * of_each
        return {f"rank {rank}": pid for rank, pid in sorted(found.items())[first : first + of_each]}

    def feeders(self) -> list[int]:
        """Return the processes that feed inputs: those below the hosts' agent that hold a FIFO or a FUSE mount."""
        launchers = {identity.pid for identity in self.folder.read_processes().values()}
        candidates = [pid for pid in process_tree.children(self.hosts_agent()) if pid not in launchers]
        found = [pid for pid in candidates if self._feeds(pid)]
        if not found:
            raise NothingToDisturbError("nothing is fed: inputs in File mode are copied before the script starts")
        return found

    def _feeds(self, pid: int) -> bool:
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with suppress(OSError):
                    target = os.readlink(entry.path)  # noqa: PTH115 - a text
                    is_fifo = target.startswith(str(self.folder.path)) and stat.S_ISFIFO(entry.stat().st_mode)
                    if is_fifo or target == _FUSE:
                        return True
        return False


@singledispatch
def inject(fault: Fault, job: JobProcesses) -> Injected:
    """Inject a fault now; raise `NothingToDisturbError`."""
    raise TypeError(f"{fault!r} cannot happen to {job!r}")


@inject.register
def _(fault: Kill, job: JobProcesses) -> Injected:
    found = job.of_script(fault.host)
    if fault.process >= len(found):
        what = f"{job.choose_host(fault.host)} has no process {fault.process} of the script, only {len(found)}"
        raise NothingToDisturbError(what)
    place, pid = list(found.items())[fault.process]
    process_tree.kill_all([pid])
    return Injected(place.partition(":")[0])


@inject.register
def _(fault: Freeze, job: JobProcesses) -> Injected:
    process_tree.signal_all(job.of_host(fault.host), signal.SIGSTOP)
    return Injected(job.choose_host(fault.host))


@inject.register
def _(_fault: LoseHost, job: JobProcesses) -> Injected:
    process_tree.kill_tree(job.hosts_agent())
    return Injected()


@inject.register
def _(_fault: Interrupt, job: JobProcesses) -> Injected:
    process_tree.signal_all([job.recorded("agent")], signal.SIGTERM)
    return Injected()


@inject.register
def _(fault: FullDisk, job: JobProcesses) -> Injected:
    if sys.platform != "linux":
        raise NothingToDisturbError("limits of another process need Linux")
    job.of_script(fault.host)
    for pid in job.of_host(fault.host)[1:]:
        with suppress(ProcessLookupError, PermissionError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]))
    return Injected(job.choose_host(fault.host))


@inject.register
def _(_fault: BrokenInput, job: JobProcesses) -> Injected:
    process_tree.kill_all(job.feeders())
    return Injected()


@inject.register
def _(fault: SlowHost, job: JobProcesses) -> Injected:
    began, seconds = time.monotonic(), fault.factor * _RUN_SECONDS

    def turn() -> None:
        is_running = (time.monotonic() - began) % seconds < _RUN_SECONDS
        _set_stopped(_below(job, fault.host), stopped=not is_running)

    job.of_script(fault.host)
    return Injected(turn=turn)


@inject.register
def _(fault: SlowInput, job: JobProcesses) -> Injected:
    job.feeders()
    began, first = time.monotonic(), _fed(job)
    share, checked, last = _FIRST_SHARE, began, first

    def turn() -> None:
        nonlocal share, checked, last
        now, total = time.monotonic(), _fed(job)
        if now - checked >= _CHECK_SECONDS:
            # What is recorded is up to half a second old: the share of the time in which they run follows the rate.
            measured = max(1.0, (total - last) / (now - checked))
            share = min(1.0, max(_LEAST_SHARE, share * min(2.0, fault.rate / measured)))
            checked, last = now, total
        is_ahead = total - first > fault.rate * (now - began)
        with suppress(NothingToDisturbError):
            is_running = (now - began) % _FEED_SECONDS < share * _FEED_SECONDS
            _set_stopped(job.feeders(), stopped=is_ahead or not is_running)

    return Injected(turn=turn)


def _fed(job: JobProcesses) -> int:
    """Return the bytes of all channels that the script has got so far."""
    return sum(each.done for each in job.folder.read_progress())


def _below(job: JobProcesses, host: str) -> list[int]:
    """Return the processes below a host's launcher, which keeps its connections; none once the host has ended."""
    with suppress(NothingToDisturbError):
        return job.of_host(host)[1:]
    return []


def _set_stopped(pids: Iterable[int], *, stopped: bool) -> None:
    process_tree.signal_all(pids, signal.SIGSTOP if stopped else signal.SIGCONT)
