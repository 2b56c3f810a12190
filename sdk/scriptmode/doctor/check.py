"""What was found about one subject, and how it is shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

OK, WARNING, PROBLEM = "ok", "warning", "problem"


@dataclass(frozen=True)
class Check:
    """One subject: ``outcome`` is ``"ok"``, ``"warning"`` or ``"problem"``.

    ``found`` is what was found, with versions and paths; ``advice`` is what to do about it, "" where there is nothing.
    A warning is about what only some jobs need; a problem lets no job start, or is damage.
    """

    name: str
    outcome: str
    found: str
    advice: str = ""

    def to_dict(self) -> dict[str, str]:
        """Give the four fields by their names."""
        return asdict(self)


def ok(name: str, found: str) -> Check:
    """Say that nothing is to be done."""
    return Check(name, OK, found)


def warning(name: str, found: str, advice: str) -> Check:
    """Say what only some jobs need."""
    return Check(name, WARNING, found, advice)


def problem(name: str, found: str, advice: str) -> Check:
    """Return what lets no job start, or is damage."""
    return Check(name, PROBLEM, found, advice)


def problem_from_error(name: str, error: Exception) -> Check:
    """Make a problem of one of this library's errors."""
    return problem(name, *split_advice(str(error)))


def split_advice(text: str) -> tuple[str, str]:
    """Part one of this library's texts into what was found and the next step, which stands after the last semicolon."""
    found, _, advice = text.rpartition("; ")
    return (found, advice) if found else (advice, "mend it, then look again")


def text(checks: Iterable[Check]) -> str:
    """Lay checks out: outcome, name and what was found in columns, the advice below, and at last how many of each."""
    listed = list(checks)
    outcomes = max((len(check.outcome) for check in listed), default=0)
    names = max((len(check.name) for check in listed), default=0)
    margin = " " * (outcomes + names + 4)
    lines = []
    for check in listed:
        head = f"{check.outcome:{outcomes}}  {check.name:{names}}  "
        lines.append(head + check.found.replace("\n", f"\n{margin}"))
        if check.advice:
            lines.append(f"{margin}-> " + check.advice.replace("\n", f"\n{margin}   "))
    counts = Counter(check.outcome for check in listed)
    total = ", ".join(f"{counts[outcome]} {_plural(outcome, counts[outcome])}" for outcome in (OK, WARNING, PROBLEM))
    return "\n".join([*lines, "", total])


def _plural(outcome: str, count: int) -> str:
    return outcome if outcome == OK or count == 1 else f"{outcome}s"
