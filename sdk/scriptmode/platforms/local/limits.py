"""What a container of this machine may use. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from scriptmode.errors import SpecError, suggestion

#: ``memory=8g,cpus=2,shm_size=4g``
VARIABLE = "SCRIPTMODE_CONTAINER_LIMITS"
#: Docker's own spelling: a number of bytes, or of the unit's 1024s.
_SIZE = re.compile(r"(\d+)([kmg]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
#: Docker refuses less. (docker run documentation, "Memory")
_LEAST_MEMORY = 6 * 1024**2


@dataclass(frozen=True)
class ContainerLimits:
    """Bytes of ``/dev/shm`` and of memory, and a number of CPUs; ``None`` where nothing was asked."""

    shm_size: int | None = None
    memory: int | None = None
    cpus: float | None = None


def limits(given: Mapping[str, object] | None, environ: Mapping[str, str]) -> ContainerLimits:
    """Check what was asked for: sizes in bytes or as ``"512m"`` and ``"8g"``; raise `SpecError` naming the value.

    What was given goes before `VARIABLE`.
    """
    if given is not None and not isinstance(given, Mapping):
        raise SpecError(f"container_limits is {given!r}; give a dict: {{'memory': '8g', 'cpus': 2, 'shm_size': '4g'}}")
    asked: dict[str, tuple[str, object]] = {
        name: (VARIABLE, value) for name, value in _entries(environ.get(VARIABLE, ""))
    }
    asked.update({name: ("container_limits", value) for name, value in (given or {}).items()})
    known = [field.name for field in fields(ContainerLimits)]
    found: dict[str, float] = {}
    for name, (owner, value) in asked.items():
        if name not in known:
            hint = suggestion(str(name), known)
            raise SpecError(f"{owner} has no key {name!r}{hint}; there are {', '.join(known)}")
        where = f"{owner}: {name}" if owner == VARIABLE else f"{owner}[{name!r}]"
        found[name] = (
            _cpus(where, value)
            if name == "cpus"
            else _size(where, value, least=_LEAST_MEMORY if name == "memory" else 1)
        )
    return ContainerLimits(
        shm_size=_whole(found.get("shm_size")), memory=_whole(found.get("memory")), cpus=found.get("cpus")
    )


def _entries(text: str) -> list[tuple[str, str]]:
    entries = []
    for entry in filter(None, text.split(",")):
        name, separator, value = entry.partition("=")
        if not separator:
            raise SpecError(f"{VARIABLE}: {entry!r} is not of the form memory=8g; correct the entry")
        entries.append((name.strip(), value.strip()))
    return entries


def _cpus(where: str, value: object) -> float:
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else 0.0
    except ValueError:
        number = 0.0
    # Docker counts in hundredths of one.
    if not 0.01 <= number < float("inf"):  # noqa: PLR2004
        raise SpecError(f"{where} is {value!r}; give the number of CPUs that a host may use, such as 2 or 0.5")
    return number


def _size(where: str, value: object, *, least: int) -> int:
    found = _SIZE.fullmatch(str(value)) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    size = int(found[1]) * _UNITS[found[2].lower()] if found else 0
    if size == 0:
        raise SpecError(f"{where} is {value!r}; give a number of bytes, or a size such as '512m' or '8g'")
    if size < least:
        raise SpecError(f"{where} is {value!r}; a container needs 6m, TensorFlow about 1g")
    return size


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
