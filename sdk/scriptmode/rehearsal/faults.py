"""Faults as values: what happens to which host of a job, and when. Pure."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from scriptmode.core.spec.whole_numbers import whole_number
from scriptmode.core.text.messages import did_you_mean
from scriptmode.errors import SpecError, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A little after half of the steps, where a job has rarely just saved.
_HALF = "53%"
_MOMENT = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>s|%)")
_WHOLE = 100
_STATUSES = ("Starting", "Downloading", "Training", "Uploading")


class Moment(NamedTuple):
    """When a fault happens: ``unit`` is "step", "s" (seconds of training), "%", or a secondary status."""

    unit: str
    number: float = 0.0

    @classmethod
    def parse(cls, value: object) -> Moment:
        """Parse ``at`` of a fault; raise `SpecError`."""
        text = str(value)
        if text.isdecimal():
            return cls("step", int(text))
        found = _MOMENT.fullmatch(text)
        if found and (found["unit"] == "s" or float(found["number"]) <= _WHOLE):
            return cls(found["unit"], float(found["number"]))
        if text in _STATUSES:
            return cls(text)
        advice = "give a step, such as 60, seconds of training as '5s', a part of the job as '50%', or 'Downloading'"
        raise invalid("at", f"is {value!r}", advice)

    def __str__(self) -> str:
        if self.unit == "step":
            return f"at step {self.number:g}"
        return {"s": f"after {self.number:g} s", "%": f"at {self.number:g} %"}.get(self.unit, f"in {self.unit}")


class Fault:
    """A fault of a host or of a job.

    ``at``, which each kind has, is when it happens: a step that the log names, seconds of training (``"5s"``), a part
    of the steps of the undisturbed job (``"50%"``), or a secondary status (``"Downloading"``).
    """

    at: int | str
    #: Its name in a text.
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        Moment.parse(self.at)
        for name, least in (("notice", 0), ("rate", 0), ("factor", 1)):
            value = getattr(self, name, 2)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not least < value < float("inf"):
                raise invalid(name, f"is {value!r}", f"give a number above {least}")
        whole_number("process", getattr(self, "process", 0), 0)

    def __str__(self) -> str:
        host, number, factor = (getattr(self, name, "") for name in ("host", "process", "factor"))
        details = (str(host), f"process {number}" if number else "", f"{factor:g} times" if factor else "")
        return " ".join(filter(None, (type(self).__name__, *details, str(Moment.parse(self.at)))))


@dataclass(frozen=True)
class Kill(Fault):
    """SIGKILL for a process of the script, as when memory runs out.

    Args:
        host: The host; by default the last one.
        process: Which of the script's processes on that host, from 0 on: its ranks with MPI.
        at: When, as `Fault` describes.
    """

    host: str = ""
    process: int = 0
    at: int | str = _HALF
    name = "kill"


@dataclass(frozen=True)
class Freeze(Fault):
    """SIGSTOP for all processes of a host, as a machine that hangs."""

    host: str = ""
    at: int | str = _HALF
    name = "freeze"


@dataclass(frozen=True)
class LoseHost(Fault):
    """SIGKILL for the agent of the hosts and all their processes, as a machine that is lost.

    Hosts that are processes of this machine have one agent, and are lost together.
    """

    at: int | str = _HALF
    name = "lose-host"


@dataclass(frozen=True)
class Interrupt(Fault):
    """SIGTERM for the job's agent, as when a machine goes down: each script gets it, and has time to save.

    Args:
        notice: Seconds until SIGKILL.
        at: When, as `Fault` describes.
    """

    notice: float = 30.0
    at: int | str = _HALF
    name = "interrupt"

    def __str__(self) -> str:
        return f"Interrupt, {self.notice:g} s notice, {Moment.parse(self.at)}"


@dataclass(frozen=True)
class FullDisk(Fault):
    """No process of the script on a host can write to a file any more: EFBIG, as RLIMIT_FSIZE is 0."""

    host: str = ""
    at: int | str = _HALF
    name = "full-disk"


@dataclass(frozen=True)
class SlowInput(Fault):
    """Inputs in Pipe and FastFile mode arrive slowly until the end.

    Args:
        rate: Bytes a second.
        at: When, as `Fault` describes.
    """

    rate: float = 1e6
    at: int | str = _HALF
    name = "slow-input"


@dataclass(frozen=True)
class BrokenInput(Fault):
    """SIGKILL for what feeds inputs in Pipe and FastFile mode, as a connection to the data that is lost for good."""

    at: int | str = _HALF
    name = "broken-input"


@dataclass(frozen=True)
class SlowHost(Fault):
    """A host's processes run only a part of the time until the end.

    Args:
        host: The host; by default the last one.
        factor: How many times as long they take, above 1.
        at: When, as `Fault` describes.
    """

    host: str = ""
    factor: float = 2.0
    at: int | str = _HALF
    name = "slow-host"


_KINDS: Mapping[str, Any] = {
    kind.name: kind for kind in (Kill, Freeze, LoseHost, Interrupt, FullDisk, SlowInput, BrokenInput, SlowHost)
}
#: What every job may meet: a process is killed, a machine is lost, a machine goes down.
DEFAULT = (Kill(), LoseHost(), Interrupt())
#: What `random_faults` draws: faults that end a job.
_DRAWN = (Kill, Freeze, LoseHost, Interrupt, FullDisk, BrokenInput)


def random_faults(n: int, seed: int = 0) -> list[Fault]:
    """Return ``n`` faults of random kinds at random moments, the same for the same seed."""
    whole_number("n", n, 1)
    chance = random.Random(seed)  # noqa: S311 - the same seed gives the same faults
    return [chance.choice(_DRAWN)(at=f"{chance.randint(10, 90)}%") for _ in range(n)]


def parse_faults(text: str) -> list[Fault]:
    """Parse faults as text: ``kill``, ``kill:host=algo-2,at=60``, or ``random:n=6,seed=1``; raise `SpecError`."""
    name, _, rest = text.partition(":")
    if name != "random" and name not in _KINDS:
        advice = "give each fault by itself" if "," in name else did_you_mean(name, (*_KINDS, "random"))
        raise invalid("faults", f"has {text!r}", advice)
    kind = _KINDS.get(name)
    types: Mapping[str, Any] = (
        {each.name: type(each.default) for each in fields(kind)} if kind else {"n": int, "seed": int}
    )
    values = {}
    for pair in filter(None, rest.split(",")):
        key, _, value = pair.partition("=")
        if key not in types:
            raise invalid("faults", f"has {text!r}, and {name} has no {key!r}", did_you_mean(key, types))
        try:
            values[key] = types[key](value)
        except ValueError as error:
            raise invalid("faults", f"has {text!r}, whose {key} is {value!r}", f"give a number as {key}") from error
    try:
        return [kind(**values)] if kind else random_faults(values.get("n", len(_DRAWN)), values.get("seed", 0))
    except SpecError as error:
        raise invalid("faults", f"has {text!r}: {error}") from error
