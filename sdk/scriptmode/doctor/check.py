"""The result of one check, and a report of results."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scriptmode.errors import ScriptmodeError

OK, WARNING, PROBLEM = "ok", "warning", "problem"


class Finding(NamedTuple):
    """The result of a check that has no name yet; the fields are those of `Check`."""

    outcome: str
    found: str
    advice: str = ""


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


def ok(found: str) -> Finding:
    """Return a finding that needs no step."""
    return Finding(OK, found)


def warning(found: str, advice: str) -> Finding:
    """Return a finding that only some jobs need a step for."""
    return Finding(WARNING, found, advice)


def problem(found: str, advice: str) -> Finding:
    """Return a finding that prevents every job, or damage."""
    return Finding(PROBLEM, found, advice)


def problem_from_error(error: ScriptmodeError) -> Finding:
    """Convert an error of this library to a problem."""
    return problem(error.message, error.advice or "correct it, then run scriptmode doctor again")


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
    margin = "\n" + " " * (outcomes + names + 4)
    lines = []
    for check in listed:
        line = f"{check.outcome:{outcomes}}  {check.name:{names}}  {check.found}".replace("\n", margin)
        advice = f"{margin}-> " + check.advice.replace("\n", f"{margin}   ") if check.advice else ""
        lines.append(line + advice)
    counts = Counter(check.outcome for check in listed)
    shown = ((counts[each], each) for each in (OK, WARNING, PROBLEM))
    totals = ", ".join(f"{count} {each}{'' if each == OK or count == 1 else 's'}" for count, each in shown)
    return "\n".join([*lines, "", totals])
