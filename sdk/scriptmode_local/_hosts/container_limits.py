"""Resource limits of containers of this machine: parsing and defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Callable

from scriptmode._core.text.messages import validate_keys
from scriptmode.errors import SpecError, invalid
from scriptmode_local._system.file_systems import parse_entries

#: ``memory=8g,cpus=2,shm_size=4g``
LIMITS_VARIABLE = "SCRIPTMODE_CONTAINER_LIMITS"
#: Docker's notation: a number of bytes, or of KiB, MiB or GiB.
_SIZE = re.compile(r"(\d+)([kmg]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
#: The least that Docker accepts. (docker run documentation, "Memory")
_LEAST_MEMORY = 6 * 1024**2
#: Enough for a shell, Python and the runtime with its threads.
_LEAST_PIDS = 32
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
#: The default of ``pids``: a base for each host plus a number for each CPU of the machine, because TensorFlow has
#: thread pools of one thread for each CPU, and MPI one rank for each. (The kernel's ``pid_max`` grows by 1024 for each
#: CPU, too.)
_PIDS, _PIDS_OF_CPU = 4096, 1024
#: Enough for TensorFlow, however many hosts share the machine.
_FEWEST_PIDS = 1024
#: The kernel's limits of all processes and threads together, and the value assumed if they cannot be read. (proc(5))
_KERNEL_LIMITS = (Path("/proc/sys/kernel/pid_max"), Path("/proc/sys/kernel/threads-max"))
_KERNEL_DEFAULT = 32768


@dataclass(frozen=True)
class ContainerLimits:
    """Limits that the user set; ``None`` for a limit that was not set.

    ``shm_size`` and ``memory`` are bytes, ``pids`` a number of processes and threads. ``no_new_privileges``: whether no
    program, such as sudo, gives its process more rights than it has (prctl(2), PR_SET_NO_NEW_PRIVS).
    """

    shm_size: int | None = None
    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None
    no_new_privileges: bool = True


def default_pids(hosts: int, cpus: int | None = None, kernel: int | None = None) -> int:
    """Return the default of ``pids``, the number of processes and threads that each of a job's hosts may have.

    All hosts together get at most half of the kernel's limit, so that the machine stays usable.
    """
    of_cpus = _PIDS + _PIDS_OF_CPU * (cpus or os.cpu_count() or 1)
    half = (kernel or min(map(_kernel_limit, _KERNEL_LIMITS))) // 2
    return max(_FEWEST_PIDS, min(of_cpus, half // max(1, hosts)))


def _kernel_limit(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return _KERNEL_DEFAULT


def parse_limits(given: Mapping[str, object] | None, environ: Mapping[str, str]) -> ContainerLimits:
    """Parse limits, sizes in bytes or as ``"512m"`` and ``"8g"``; raise `SpecError` naming a wrong value.

    ``given`` takes precedence over the variable `LIMITS_VARIABLE`.
    """
    if given is not None and not isinstance(given, Mapping):
        advice = "give a dict: {'memory': '8g', 'cpus': 2, 'shm_size': '4g'}"
        raise invalid("container_limits", f"is {given!r}", advice)
    entries = parse_entries(LIMITS_VARIABLE, environ.get(LIMITS_VARIABLE, "").split(","), "memory=8g")
    asked: dict[str, tuple[str, object]] = {
        **{name: (LIMITS_VARIABLE, value.strip()) for name, value in entries},
        **{name: ("container_limits", value) for name, value in (given or {}).items()},
    }
    known = [field.name for field in fields(ContainerLimits)]
    limits: dict[str, Any] = {}
    for name, (owner, value) in asked.items():
        validate_keys(owner, [name], known)
        try:
            limits[name] = _PARSERS[name](str(value))
        except ValueError as error:
            where = f"{owner}: {name}" if owner == LIMITS_VARIABLE else f"{owner}[{name!r}]"
            raise SpecError(f"{where} is {value!r}", argument="container_limits", advice=str(error)) from error
    return ContainerLimits(**limits)


# The parsers of the limits raise ``ValueError`` with the advice.


def _cpus(text: str) -> float:
    with suppress(ValueError):
        # The smallest unit of Docker is a hundredth of a CPU.
        if 0.01 <= (number := float(text)) < float("inf"):  # noqa: PLR2004
            return number
    raise ValueError("give the number of CPUs that a host may use, such as 2 or 0.5")


def _size(text: str, *, least: int = 1) -> int:
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _UNITS[match[2].lower()] if match else 0
    if size == 0:
        raise ValueError("give a number of bytes, or a size such as '512m' or '8g'")
    if size < least:
        raise ValueError("a container needs 6m, TensorFlow about 1g")
    return size


def _pids(text: str) -> int:
    number = int(text) if re.fullmatch(r"\d{1,9}", text) else 0
    if number < _LEAST_PIDS:
        what = f"give the number of processes and threads that a host may have, {_LEAST_PIDS} or more"
        raise ValueError(f"{what}; TensorFlow needs some hundreds")
    return number


def _flag(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError("give True or False")
    return _BOOLEANS[text.lower()]


_PARSERS: dict[str, Callable[[str], object]] = {
    "shm_size": _size,
    "memory": partial(_size, least=_LEAST_MEMORY),
    "cpus": _cpus,
    "pids": _pids,
    "no_new_privileges": _flag,
}
