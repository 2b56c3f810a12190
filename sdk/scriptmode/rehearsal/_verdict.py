"""What a rehearsal found: a verdict for each fault, as values and as a table. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from scriptmode._core.text.messages import pluralize
from scriptmode._core.text.terminal_text import align_columns


@dataclass(frozen=True)
class Verdict:
    """What one fault did to a job.

    Attributes:
        fault: The fault as text.
        job: The name of the job that it happened to, and ``again`` the one that was started after it, "" without one.
        status: ``Failed``, ``Stopped``, or ``Interrupted`` for a job that started again by itself.
        before: The last step before the fault; ``None`` where nothing happened.
        first: The first step after it; ``None`` where none was named.
        lost: The steps that were made twice, on the host that lost the most.
        last: The last step of the job after it, which is that of the undisturbed job if nothing is missing.
        files_before: The number of checkpoint files when it happened, and ``files_after`` at the end.
        problems: What must not happen, and what to change.
        note: Why the fault did not happen; "" for one that did.
    """

    fault: str
    job: str
    again: str = ""
    status: str = ""
    before: int | None = None
    first: int | None = None
    lost: int | None = None
    last: int | None = None
    files_before: int = 0
    files_after: int = 0
    problems: tuple[str, ...] = ()
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the job recovered."""
        return not self.problems

    def cells(self) -> tuple[str, ...]:
        """Return what a table shows: the fault, what followed, where it went on, its last step, its checkpoints."""
        if self.note:
            return self.fault, self.note, "", "", ""
        went_on = "" if self.first is None else f"step {self.before}, then {self.first}: {self.lost} lost"
        files = f"checkpoint files: {self.files_before}, then {self.files_after}"
        return self.fault, self.status, went_on, "" if self.last is None else f"last step {self.last}", files


@dataclass(frozen=True)
class Rehearsal:
    """Verdicts on what faults do to a job; its text is a table with the problems.

    Attributes:
        job: The name of the undisturbed job.
        steps: Its last step, 0 where its metric has no value.
        seconds: Seconds in which it ended.
        verdicts: A verdict for each fault.
        problems: Why the job cannot be rehearsed: it failed or hung without a fault, or names no step.
    """

    job: str
    steps: int = 0
    seconds: float = 0.0
    verdicts: tuple[Verdict, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether each fault happened, and the job recovered from it without losing all that it had done."""
        known = bool(self.verdicts) and not self.problems
        return known and all(verdict.ok and not verdict.note for verdict in self.verdicts)

    def to_dict(self) -> dict[str, object]:
        """Return the rehearsal as JSON has it, with ``ok``."""
        return {
            **asdict(self),
            "ok": self.ok,
            "verdicts": [{**asdict(verdict), "ok": verdict.ok} for verdict in self.verdicts],
        }

    def __str__(self) -> str:
        return "\n".join([self.head(), *align_columns([verdict.cells() for verdict in self.verdicts]), *self._end()])

    def head(self) -> str:
        """Return the line about the undisturbed job."""
        return f"undisturbed: {self.job}, last step {self.steps}, {self.seconds:.1f} s"

    def _end(self) -> list[str]:
        faults = (f"{verdict.fault}: {text}" for verdict in self.verdicts for text in verdict.problems)
        problems = [*self.problems, *faults]
        lines = [f"problem: {text}" for text in problems]
        if problems:
            return [*lines, f"verdict: not ready: {pluralize(len(problems), 'problem')}"]
        if not self.ok:
            return ["verdict: not tested: a fault did not happen"]
        return [f"verdict: ready: lost at most {pluralize(max(row.lost or 0 for row in self.verdicts), 'step')}"]
