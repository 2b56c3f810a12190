"""Faults as values: what happens to a job, and at which step. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from scriptmode._core.spec.whole_numbers import whole_number
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import SpecError, invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Fault:
    """A fault of a job. ``at`` is its step; ``None`` is 53 % of the steps, where a job has rarely just saved."""

    at: int | None
    #: Its name in a text.
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.at is not None:
            whole_number("at", self.at, 1)

    def __str__(self) -> str:
        details = [f"{field.name}={value}" for field in fields(self) if (value := getattr(self, field.name))]  # type: ignore[arg-type]
        return self.name + (f":{','.join(details)}" if details else "")


@dataclass(frozen=True)
class Kill(Fault):
    """SIGKILL for a process of the script, as when memory runs out; ``host`` is the last one by default."""

    host: str = ""
    at: int | None = None
    name = "kill"


@dataclass(frozen=True)
class LoseHost(Fault):
    """SIGKILL for the agent of the hosts and all their processes, as a machine that is lost.

    Hosts that are processes of this machine have one agent, and are lost together.
    """

    at: int | None = None
    name = "lose-host"


@dataclass(frozen=True)
class Interrupt(Fault):
    """SIGTERM for the job's agent, as when a machine goes down: each script gets it, and SIGKILL ``notice`` s later."""

    notice: float = 30.0
    at: int | None = None
    name = "interrupt"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.notice, bool) or not isinstance(self.notice, (int, float)) or not 0 < self.notice < math.inf:
            raise invalid("notice", f"is {self.notice!r}", "give a number of seconds above 0")


_KINDS: Mapping[str, Any] = {kind.name: kind for kind in (Kill, LoseHost, Interrupt)}
_TYPES = {"host": str, "at": int, "notice": float}


def parse_fault(text: str) -> Fault:
    """Parse a fault as text, such as ``kill`` or ``kill:host=algo-2,at=60``; raise `SpecError`."""
    name, _, rest = text.partition(":")
    if name not in _KINDS:
        raise invalid("faults", f"has {text!r}", did_you_mean(name, _KINDS))
    kind, values = _KINDS[name], {}
    names = [field.name for field in fields(kind)]
    for pair in filter(None, rest.split(",")):
        key, _, value = pair.partition("=")
        if key not in names:
            raise invalid("faults", f"has {text!r}, and {name} has no {key!r}", did_you_mean(key, names))
        try:
            values[key] = _TYPES[key](value)
        except ValueError as error:
            raise invalid("faults", f"has {text!r}, whose {key} is {value!r}", f"give a number as {key}") from error
    try:
        fault: Fault = kind(**values)
    except SpecError as error:
        raise invalid("faults", f"has {text!r}: {error}") from error
    return fault


def parse_faults(faults: Iterable[Fault | str] | None, hosts: Sequence[str]) -> list[Fault]:
    """Return the faults of a rehearsal of a job with these hosts: one of each kind for None. Raise `SpecError`."""
    if isinstance(faults, (str, Fault)):
        faults = [faults]
    given = [kind() for kind in _KINDS.values()] if faults is None else faults
    parsed = [parse_fault(fault) if isinstance(fault, str) else fault for fault in given]
    if not parsed or not all(type(fault) in _KINDS.values() for fault in parsed):
        raise invalid("faults", f"is {faults!r}", "give faults of scriptmode.rehearsal, such as Kill(at=60)")
    for fault in parsed:
        if (host := getattr(fault, "host", "")) and host not in hosts:
            raise invalid("faults", f"has the host {host!r}", f"use one of {', '.join(hosts)}")
    return parsed
