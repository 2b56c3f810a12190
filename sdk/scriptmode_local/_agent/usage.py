"""Resources that the hosts of a job use: a task of the agent samples and records them for every client.

The record is replaced with each sample. The task is a process of its own: neither a GPU driver nor a Docker daemon
that hangs delays the agent.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from scriptmode._core.spec.host_values import HostActivity
from scriptmode_local._store import host_activity
from scriptmode_local._system.gpus import Gpus, open_gpus
from scriptmode_runtime._processes import proc, process_tree

if TYPE_CHECKING:
    from scriptmode_runtime._processes.proc import ProcessIdentity
    from scriptmode_runtime._processes.process_tree import TreeUsage

#: Seconds between two samples, and until the second one, which is the first with a CPU usage.
SAMPLE_SECONDS, _FIRST_SECONDS = 2.0, 0.5


class UsageSampler:
    """Sampler of the hosts' processes and GPUs: `Fleet.find_process` tells the processes; ``path`` is the record.

    The CPU usage of a host is that of all its processes since the last sample, in percent of one core. Its memory is
    their resident memory, in which pages that processes share count for each.
    """

    def __init__(self, hosts: Collection[str], find_process: Callable[[str], int], path: Path) -> None:
        self._hosts = hosts
        self._find_process = find_process
        self._path = path
        self._gpus: Gpus | None = None
        #: The first process of each host, once it is known.
        self._processes: dict[str, ProcessIdentity] = {}
        self._last: Mapping[str, TreeUsage] = {}
        self._sampled = 0.0

    def run(self) -> None:
        """Record a sample every `SAMPLE_SECONDS`, until this process is killed."""
        self._gpus = open_gpus()
        pause = _FIRST_SECONDS
        while True:
            # The disk is full, or the job was deleted.
            with suppress(OSError):
                host_activity.write_usage(self._path, self.sample(time.monotonic()))
            time.sleep(pause)
            pause = SAMPLE_SECONDS

    def sample(self, now: float) -> dict[str, HostActivity]:
        """Return the usage of the hosts that run; without a CPU usage at the first sample of a host."""
        roots = {name: identity.pid for name in self._hosts if (identity := self._identify(name))}
        trees = process_tree.measure_trees(roots)
        gpus = self._gpus.usage({host: tree.pids for host, tree in trees.items()}) if self._gpus else {}
        usage, seconds = {}, now - self._sampled
        for host, tree in trees.items():
            gpu, before = gpus.get(host), self._last.get(host)
            usage[host] = HostActivity(
                cpu_percent=_percent(before.cpu_seconds if before else None, tree.cpu_seconds, seconds),
                memory_bytes=tree.memory,
                gpu_percent=gpu.percent if gpu else None,
                gpu_memory_bytes=gpu.memory if gpu else None,
            )
        self._last, self._sampled = trees, now
        return usage

    def _identify(self, name: str) -> ProcessIdentity | None:
        if name not in self._processes:
            pid = self._find_process(name)
            identity = proc.identify(pid) if pid else None
            if identity is None:
                return None
            self._processes[name] = identity
        identity = self._processes[name]
        return identity if proc.is_running(identity) else None


def _percent(before: float | None, now: float | None, seconds: float) -> float | None:
    """Return by how much a number of seconds grew, as a percentage of the seconds that passed."""
    if before is None or now is None or seconds <= 0:
        return None
    # The CPU seconds of an orphan that another process reaped are missing.
    return round(100 * max(0.0, now - before) / seconds, 1)
