"""Whether this machine is large enough for the processes that jobs run at once.

Only hosts that have its processors and memory count (`HostKind.is_here`): a scheduler decides by itself what fits. The
memory of a process is assumed: one that trains a small model with TensorFlow has 450 MB, and shares 240 MB of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from scriptmode._core.text.messages import pluralize
from scriptmode.errors import QuotaError

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest

#: Processes that may run at once on the smallest machine: they also wait for one another and for their data.
_FEWEST = 4


class _Level(NamedTuple):
    """A number of processes: that of a core, the bytes of memory of each, and what more of them are."""

    of_core: int
    of_memory: int
    text: str = ""

    def limits(self) -> dict[str, int]:
        """Return how many processes this machine has cores and memory for, by the text of each of the two."""
        from scriptmode_local._system import memory
        from scriptmode_runtime._host import machine

        has, cores = memory.read_memory(), machine.inspect().cpus
        limits = {f"on {pluralize(cores, 'core')}": max(_FEWEST, self.of_core * cores)}
        if has:
            text = f"in {has.total / 1024**3:.1f} GiB of memory ({self.of_memory // 1024**2} MiB each)"
            limits[text] = max(1, has.total // self.of_memory)
        return limits


_QUEUE, _SLOW = _Level(1, 512 * 1024**2), _Level(4, 512 * 1024**2, "slow on this machine, where at most {:,} run well")
#: Others on the machine stand still.
_REFUSED = _Level(64, 256 * 1024**2, "too many for this machine, where at most {:,} fit")


def fits_beside(running: Sequence[int], processes: int) -> bool:
    """Return whether a job's processes need not wait for those of ``running`` jobs; alone, every job may start."""
    from scriptmode_local._system import memory

    has = memory.read_memory()
    is_free = has is None or processes * _QUEUE.of_memory <= has.free
    return not running or (is_free and sum(running) + processes <= min(_QUEUE.limits().values()))


def require_capacity(request: JobRequest, jobs: int = 1) -> None:
    """Raise `QuotaError` where ``jobs`` copies of a job at once have too many processes for this machine."""
    if what := _excess(request, jobs, _REFUSED):
        is_of_hosts = len(request.resources.hosts) >= request.processes_of_host
        argument = "instance_count" if is_of_hosts else "processes_per_host"
        how = "LocalPlatform(force=True) or --force (of run, plan, and serve for its clients)"
        raise QuotaError(what, f"go past that with {how}, or use fewer", argument=argument)


def describe_crowding(request: JobRequest, jobs: int = 1, *, is_refused: bool = False) -> str:
    """Return why ``jobs`` copies of a job at once are slow on this machine, or are refused; "" where they are not."""
    return _excess(request, jobs, _REFUSED if is_refused else _SLOW)


def _excess(request: JobRequest, jobs: int, level: _Level) -> str:
    hosts, of_host = len(request.resources.hosts), request.processes_of_host
    count = jobs * hosts * of_host
    # One process fits everywhere.
    if not request.resources.host_kind.is_here or count <= 1 or count <= min((limits := level.limits()).values()):
        return ""
    parts = f"{f'{jobs:,} jobs of ' if jobs > 1 else ''}{pluralize(hosts, 'host')} with {of_host:,} each"
    text, by_part = level.text.format(min(limits.values())), [f"{most:,} {part}" for part, most in limits.items()]
    return f"{count:,} processes at once ({parts}) are {text}: {', '.join(by_part)}"
