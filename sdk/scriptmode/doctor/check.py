"""The result of one check, and a report of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from scriptmode.errors import ScriptmodeError

OK, WARNING, PROBLEM = "ok", "warning", "problem"
#: What a job may use, and the checks that it needs.
_USES = {
    "instance_type='local_process'": ("Python", "scriptmode", "disk", "ports"),
    "instance_type='local'": ("Python", "disk", "ports", "Docker"),
    "instance_type='slurm'": ("Python", "scriptmode", "disk", "Slurm", "shared files"),
    "instance_type='kubernetes'": ("Python", "disk", "cluster", "rights", "pod image", "trial pod"),
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
    # Slurm is checked only on demand, and the rest of what it needs always.
    asked = {use: needs for use, needs in _USES.items() if known & ({*needs} & {"Slurm", "cluster"} or {*needs})}
    uses = {use: [name for name in needs if name in obstacles] for use, needs in asked.items()}
    if can := [use for use, missing in uses.items() if not missing]:
        lines.append(f"You can run: {', '.join(can)}")
    if cannot := [f"{use} (see {', '.join(missing)})" for use, missing in uses.items() if missing]:
        lines.append(f"Not: {', '.join(cannot)}")
    return "\n".join(lines)
