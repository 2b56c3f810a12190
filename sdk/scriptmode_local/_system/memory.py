"""The memory of this machine, as far as its control group allows it to this process (Linux)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

#: The limit and the use of the control group of a container or a session, in both versions of control groups.
_CONTROL_GROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
_ROOT = Path("/sys/fs/cgroup")


class Memory(NamedTuple):
    """Memory in bytes: all of it, and what programs can have without pushing others to the disk."""

    total: int
    free: int
    #: The limit of the control group; 0 without one.
    limit: int


def read_memory() -> Memory | None:
    """Return the memory that this process may use (proc(5), meminfo); None where the kernel does not tell."""
    try:
        lines = [line.split() for line in Path("/proc/meminfo").read_text("ascii").splitlines()]
        sizes = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines}
        total, free, limit = sizes["MemTotal"], sizes["MemAvailable"], 0
    except (OSError, ValueError, KeyError, IndexError):
        return None
    for most, used in _CONTROL_GROUPS:
        # The file has "max", or more than all memory, where there is no limit.
        with suppress(OSError, ValueError):
            allowed = int((_ROOT / most).read_text("ascii"))
            if allowed < total:
                limit, free = allowed, min(free, max(0, allowed - int((_ROOT / used).read_text("ascii"))))
    return Memory(min(total, limit or total), free, limit)
