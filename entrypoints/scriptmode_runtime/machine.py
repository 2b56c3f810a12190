"""What this machine has: processors and accelerators, read from the kernel's files, without starting anything."""

from __future__ import annotations

import os
from typing import NamedTuple


class Machine(NamedTuple):
    """Counts that the script sees as ``SM_NUM_CPUS``, ``SM_NUM_GPUS`` and ``SM_NUM_NEURONS``."""

    cpus: int
    gpus: int
    neurons: int


def inspect(root: str = "/") -> Machine:
    """Count what this process may use; ``root`` is where ``/dev`` and ``/sys`` stand."""
    return Machine(cpus=_cpus(root), gpus=_gpus(root), neurons=_neurons(root))


def _cpus(root: str) -> int:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota(os.path.join(root, "sys/fs/cgroup"))
    return max(1, min(allowed, quota)) if quota else allowed


def _cgroup_quota(cgroup: str) -> int:
    """Give the processors the control group grants, rounded up; 0 where it sets no limit."""
    version_two = _words(os.path.join(cgroup, "cpu.max"))
    if len(version_two) == 2:  # noqa: PLR2004 - "<quota> <period>"
        quota, period = version_two
    else:
        quota = "".join(_words(os.path.join(cgroup, "cpu/cpu.cfs_quota_us"))[:1])
        period = "".join(_words(os.path.join(cgroup, "cpu/cpu.cfs_period_us"))[:1])
    if not (quota.isdigit() and period.isdigit() and int(period)):
        return 0
    return -(-int(quota) // int(period))


def _gpus(root: str) -> int:
    """Count NVIDIA device nodes: a container is given one for each GPU it may use."""
    return sum(name[:6] == "nvidia" and name[6:].isdigit() for name in _names(os.path.join(root, "dev")))


def _neurons(root: str) -> int:
    devices = os.path.join(root, "sys/devices/virtual/neuron_device")
    counts = ("".join(_words(os.path.join(devices, name, "core_count"))[:1]) for name in _names(devices))
    return sum(int(count) for count in counts if count.isdigit())


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _words(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().split()
    except OSError:
        return []
