"""Whether this machine is large enough for the processes that jobs run at once.

Only hosts that have its processors and memory count (`HostKind.is_here`): a scheduler decides by itself what fits. The
memory of a process is assumed: one that trains a small model with TensorFlow has 450 MB, and shares 240 MB of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scriptmode.core.text.messages import format_bytes, pluralize
from scriptmode.errors import QuotaError
from scriptmode.platforms.local.system import memory
from scriptmode_runtime.host import machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scriptmode.core.spec.job_request import JobRequest

#: Processes that may run at once on the smallest machine: they also wait for one another and for their data.
_FEWEST = 4


class _Level(NamedTuple):
    """A number of processes: that of a core, the bytes of memory of each, and what more of them are."""

    of_core: int
    of_memory: int
    more: str = ""

    def most(self) -> int:
        """Return how many processes this machine has cores and memory for."""
        has, by_cores = memory.read_memory(), max(_FEWEST, self.of_core * machine.inspect().cpus)
        return min(by_cores, max(1, has.total // self.of_memory)) if has else by_cores


_QUEUE, _SLOW = _Level(1, 512 * 1024**2), _Level(4, 512 * 1024**2, "slow on")
#: Others on the machine stand still.
_REFUSED = _Level(64, 256 * 1024**2, "too many for")


def fits_beside(running: Sequence[int], processes: int) -> bool:
    """Return whether a job's processes need not wait for those of ``running`` jobs; alone, every job may start."""
    has = memory.read_memory()
    is_free = has is None or processes * _QUEUE.of_memory <= has.free
    return not running or (is_free and sum(running) + processes <= _QUEUE.most())


def require_capacity(request: JobRequest, jobs: int = 1) -> None:
    """Raise `QuotaError` where ``jobs`` copies of a job at once have too many processes for this machine."""
    if what := _excess(request, jobs, _REFUSED):
        advice = "use fewer, or go past the limit with LocalPlatform(force=True), on the command line --force"
        is_of_hosts = len(request.resources.hosts) >= request.processes_of_host
        raise QuotaError(what, advice, argument="instance_count" if is_of_hosts else "distribution")


def describe_crowding(request: JobRequest, jobs: int = 1, *, is_refused: bool = False) -> str:
    """Return why ``jobs`` copies of a job at once are slow on this machine, or are refused; "" where they are not."""
    return _excess(request, jobs, _REFUSED if is_refused else _SLOW)


def _excess(request: JobRequest, jobs: int, level: _Level) -> str:
    hosts, of_host = len(request.resources.hosts), request.processes_of_host
    if not request.resources.host_kind.is_here or jobs * hosts * of_host <= (most := level.most()):
        return ""
    parts = f"{f'{jobs:,} jobs of ' if jobs > 1 else ''}{pluralize(hosts, 'host')} with {of_host:,} each"
    has = memory.read_memory()
    size = f" and {format_bytes(has.total)} of memory" if has else ""
    return (
        f"{jobs * hosts * of_host:,} processes at once ({parts}) are {level.more} this machine with "
        f"{pluralize(machine.inspect().cpus, 'core')}{size}: up to {most:,} are not, {level.of_core} for each core and "
        f"{format_bytes(level.of_memory)} for each process"
    )
