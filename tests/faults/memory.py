"""Memory groups of the kernel: processes that may have less memory than the machine has."""

import contextlib
import itertools
import os
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_NAME = "scriptmode-faults"
_NUMBERS = itertools.count()


class MemoryGroup:
    """A control group with a limit, in bytes. Raises OSError where this process may make none."""

    def __init__(self, limit):
        parent, limits = _place()
        _sweep(parent)
        self._path = parent / f"{_NAME}-{os.getpid()}-{next(_NUMBERS)}"
        self._path.mkdir()
        for name, value in limits.items():
            # Without swap there is no limit to it.
            with contextlib.suppress(FileNotFoundError):
                (self._path / name).write_text(str(limit if value is None else value))

    def add(self, pid):
        """Take a process in: from now on what it allocates counts."""
        (self._path / "cgroup.procs").write_text(str(pid))

    def close(self):
        """Remove the group; its processes have ended."""
        self._path.rmdir()


def _place():
    """Give the folder in which groups are made and the files of a limit, for control groups version 1 or 2."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            mounted = _CGROUPS / "memory"
            own = mounted / path.lstrip("/")
            return own if own.is_dir() else mounted, {
                "memory.limit_in_bytes": None,
                "memory.memsw.limit_in_bytes": None,
            }
    limits = {"memory.max": None, "memory.swap.max": 0}
    # Version 2 lets processes live in leaves only: beside this process's own group, or at the top.
    own = _CGROUPS / lines[-1][2].lstrip("/")
    for folder in (own.parent if own != _CGROUPS else own, _CGROUPS):
        if "memory" in (folder / "cgroup.subtree_control").read_text().split():
            return folder, limits
    (_CGROUPS / "cgroup.subtree_control").write_text("+memory")
    return _CGROUPS, limits


def _sweep(parent):
    """Remove the groups of runs that ended."""
    for path in parent.glob(f"{_NAME}-*"):
        if not Path("/proc", path.name.split("-")[2]).exists():
            with contextlib.suppress(OSError):
                path.rmdir()
