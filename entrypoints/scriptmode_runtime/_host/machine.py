"""Processors and accelerators of this machine, read from the kernel's files without starting a program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from scriptmode_runtime._processes import proc

#: CUDA's selection of visible GPUs ("CUDA Environment Variables", CUDA C++ Programming Guide).
_VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
#: Mount points of the two versions of control groups that limit processors (cgroups(7), systemd's FILE-HIERARCHY).
_CGROUP_MOUNTS = {"": ("", "unified"), "cpu": ("cpu", "cpu,cpuacct")}


class Machine(NamedTuple):
    """The values of ``SM_NUM_CPUS``, ``SM_NUM_GPUS`` and ``SM_NUM_NEURONS``."""

    cpus: int
    gpus: int
    neurons: int
    #: Whether programs would see more CPUs than these, or the platform named their number.
    is_limited: bool = False


def inspect(root: str = "/", environ: Mapping[str, str] | None = None, most_cpus: str = "") -> Machine:
    """Return the counts that this process may use; ``root`` is the parent of ``/dev``, ``/proc`` and ``/sys``.

    ``most_cpus``: the CPUs that it has where the kernel does not know of a limit; "" without one.
    """
    shown = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cpus = max(1, min([shown, *_quotas(root), *([int(most_cpus)] if most_cpus.isdecimal() else [])]))
    return Machine(cpus, _gpus(root, environ or {}), _neurons(root), is_limited=bool(most_cpus) or cpus < shown)


def _quotas(root: str) -> Iterator[int]:
    """Yield the processors granted by this process's control group and each of its ancestors that has a limit."""
    lines = proc.read_text(os.path.join(root, "proc/self/cgroup")).splitlines() or ["0::/", "1:cpu:/"]
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in {"", "cpu"} & set(controllers.split(",")):
            for name in _CGROUP_MOUNTS[controller]:
                mount = os.path.normpath(os.path.join(root, "sys/fs/cgroup", name))
                yield from _quotas_up(mount, path)


def _quotas_up(mount: str, path: str) -> Iterator[int]:
    group = os.path.normpath(mount + path)
    if not group.startswith(mount):
        # A container may see only its own part of the tree: it cannot read groups outside of it ("/../x").
        group = mount
    while group.startswith(mount):
        quota = _quota(group)
        if quota:
            yield quota
        group = os.path.dirname(group)


def _quota(group: str) -> int:
    """Return the processors that one control group grants, rounded up; 0 where it sets no limit."""
    limit = _words(os.path.join(group, "cpu.max"))
    if not limit:
        limit = [*_words(os.path.join(group, "cpu.cfs_quota_us")), *_words(os.path.join(group, "cpu.cfs_period_us"))]
    if len(limit) != 2 or not all(word.isdigit() for word in limit) or not int(limit[1]):  # noqa: PLR2004 - "<quota> <period>"
        return 0
    return -(-int(limit[0]) // int(limit[1]))


def _gpus(root: str, environ: Mapping[str, str]) -> int:
    """Return the number of NVIDIA device nodes, one for each GPU of a container; fewer where CUDA is restricted.

    ``NVIDIA_VISIBLE_DEVICES`` is ignored: a container runtime has applied it, and where GPUs are passed in another way
    (Container Device Interface) its value is ``void`` although there are GPUs.
    """
    nodes = sum(name[:6] == "nvidia" and name[6:].isdigit() for name in _names(os.path.join(root, "dev")))
    if _VISIBLE_GPUS not in environ:
        return nodes
    seen = 0
    for name in environ[_VISIBLE_GPUS].split(","):
        # By number or by name; CUDA ignores the entries after the first invalid one.
        if not (name.strip().isdigit() and int(name) < nodes) and not name.strip().startswith(("GPU-", "MIG-")):
            break
        seen += 1
    return min(seen, nodes)


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
    return proc.read_text(path).split()
