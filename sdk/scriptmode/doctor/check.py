"""The result of one check, and a report of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pkgutil import resolve_name
from typing import Callable

from scriptmode.core.spec.hosts import instance_kind, local_instance_types
from scriptmode.errors import ScriptmodeError, SpecError

OK, WARNING, PROBLEM = "ok", "warning", "problem"
#: What a job may use, and the checks that it needs.
_USES = {
    "instance_type='local_process'": ("Python", "scriptmode", "disk", "ports"),
    "instance_type='local'": ("Python", "disk", "ports", "Docker"),
    "instance_type='slurm'": ("Python", "scriptmode", "disk", "Slurm", "shared files"),
    "'ml.*' on Amazon SageMaker": ("credentials", "Region", "clock"),
    "TensorFlow": ("TensorFlow",),
    "ParameterServer()": ("TensorFlow",),
    "MultiWorkerMirrored()": ("TensorFlow",),
    "MPI()": ("MPI",),
    "Horovod": ("MPI", "Horovod"),
}


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        name: Subject of the check, such as ``TensorFlow`` or ``disk``; the table of checks has it.
        outcome: ``"ok"``; ``"warning"`` for something that only some jobs need; ``"problem"`` for something that
            prevents every job, or for damage.
        found: What was found, with versions and paths.
        advice: The next step, ``""`` if none is needed.
        prevents: Whether jobs that need it cannot run.
    """

    name: str
    outcome: str
    found: str
    advice: str = ""
    prevents: bool = False

    def to_dict(self) -> dict[str, str | bool]:
        """Return the fields by their names."""
        return asdict(self)


def engine_checks() -> dict[str, Mapping[str, Callable[[], tuple[str, str]]]]:
    """Return the checks of the engines of other packages that have some, by instance type and name.

    An engine that is broken is told where a job asks for it.
    """
    found = {}
    for name in local_instance_types():
        with suppress(SpecError):
            if checks := instance_kind(name).checks:
                found[name] = resolve_name(checks)
    return found


def ok(found: str) -> Check:
    """Return a result that needs no step."""
    return Check("", OK, found)


def warning(found: str, advice: str, *, prevents: bool = True) -> Check:
    """Return a result that only some jobs need a step for."""
    return Check("", WARNING, found, advice, prevents)


def problem(found: str, advice: str) -> Check:
    """Return a result that prevents every job, or damage."""
    return Check("", PROBLEM, found, advice, prevents=True)


def problem_from_error(error: ScriptmodeError) -> Check:
    """Convert an error of this library to a problem."""
    return problem(error.message, error.advice or "correct it, then run scriptmode doctor again")


def line(check: Check, width: int = 16) -> str:
    """Render one check in columns, its name in ``width`` characters, with the advice below."""
    margin = "\n" + " " * (len(WARNING) + width + 4)
    found = f"{check.outcome:{len(WARNING)}}  {check.name:{width}}  {check.found}".replace("\n", margin)
    return found + (f"{margin}-> " + check.advice.replace("\n", f"{margin}   ") if check.advice else "")


def text(checks: Iterable[Check]) -> str:
    """Render checks, as of `examine`, as a report: a `line` for each, and the `summary`."""
    listed = list(checks)
    width = max((len(check.name) for check in listed), default=0)
    return "\n".join([*(line(check, width) for check in listed), "", summary(listed)])


def summary(checks: Iterable[Check]) -> str:
    """Return the number of each outcome, and what jobs on this machine can use and what not."""
    listed = list(checks)
    counts = Counter(check.outcome for check in listed)
    shown = ((counts[each], each) for each in (OK, WARNING, PROBLEM))
    lines = [", ".join(f"{count} {each}{'' if each == OK or count == 1 else 's'}" for count, each in shown)]
    obstacles = {check.name for check in listed if check.prevents}
    known = {check.name for check in listed}
    engines = engine_checks()
    # Clusters are checked only on demand, and the rest of what they need always.
    on_demand = {"Slurm", *(name for names in engines.values() for name in names)}
    all_uses = {**_USES, **{f"instance_type={name!r}": ("Python", "disk", *names) for name, names in engines.items()}}
    asked = {use: needs for use, needs in all_uses.items() if known & ({*needs} & on_demand or {*needs})}
    uses = {use: [name for name in needs if name in obstacles] for use, needs in asked.items()}
    if can := [use for use, missing in uses.items() if not missing]:
        lines.append(f"You can run: {', '.join(can)}")
    if cannot := [f"{use} (see {', '.join(missing)})" for use, missing in uses.items() if missing]:
        lines.append(f"Not: {', '.join(cannot)}")
    return "\n".join(lines)
