"""The result of one check, and a report of results."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scriptmode.errors import ScriptmodeError

OK, WARNING, PROBLEM = "ok", "warning", "problem"


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        name: Subject of the check, such as ``TensorFlow`` or ``disk``.
        outcome: ``"ok"``; ``"warning"`` for something that only some jobs need; ``"problem"`` for something that
            prevents every job, or for damage.
        found: What was found, with versions and paths.
        advice: The next step, ``""`` if none is needed.

    """

    name: str
    outcome: str
    found: str
    advice: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the four fields by their names."""
        return asdict(self)


def ok(name: str, found: str) -> Check:
    """Return a check that needs no step."""
    return Check(name, OK, found)


def warning(name: str, found: str, advice: str) -> Check:
    """Return a check of something that only some jobs need."""
    return Check(name, WARNING, found, advice)


def problem(name: str, found: str, advice: str) -> Check:
    """Return a check of something that prevents every job, or of damage."""
    return Check(name, PROBLEM, found, advice)


def problem_from_error(name: str, error: ScriptmodeError) -> Check:
    """Convert an error of this library to a problem."""
    return problem(name, error.message, error.advice or "correct it, then run scriptmode doctor again")


def text(checks: Iterable[Check]) -> str:
    """Render checks as a report.

    Args:
        checks: Results, as of `examine`.

    Returns:
        Lines with outcome, name and what was found in columns, the advice below, and the number of each outcome.

    """
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
