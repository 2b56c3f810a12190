"""What a rehearsal found: a verdict for each fault, as values and as a table. Pure."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from scriptmode.core.spec.service_values import COMPLETED
from scriptmode.core.text.messages import pluralize
from scriptmode.core.text.terminal_text import align_columns

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Verdict:
    """What one fault did to a job.

    Attributes:
        fault: The fault and its moment, as text.
        job: The name of the job that it happened to, and ``again`` the one that was started after it, "" without one.
        status: The status or secondary status that followed first: ``Failed``, ``Stopped``, ``Interrupted``, or
            ``Completed`` for a job that went on.
        noticed: Seconds from the fault to that status; ``None`` where nothing happened.
        reason: The job's reason for it.
        is_cause_named: Whether the reason names what the fault happened to; ``None`` where it does not apply.
        unit: What ``resumed`` and ``lost`` count: ``step`` or ``epoch``.
        resumed: The step from which the next run went on; ``None`` without one, and where its log names no step.
        lost: Steps that were made twice, and ``lost_seconds`` the seconds that they had taken.
        host: The host that lost the most, where others went on from another step; "" otherwise.
        restart: Seconds from the first status to the first step of the next run.
        slowdown: For a job that went on, how many times as long as the undisturbed job it trained.
        orphans: Processes of the job that were left at its end; ``None`` where they were not counted.
        is_same_model: Whether its model has the same files as that of the undisturbed job; ``None`` without a model.
        problems: What must not happen: something hung, was told wrongly or was lost.
        advice: What to change.
        note: Why the fault did not happen; "" for one that did.
    """

    fault: str
    job: str
    again: str = ""
    status: str = ""
    noticed: float | None = None
    reason: str = ""
    is_cause_named: bool | None = None
    unit: str = "step"
    resumed: int | None = None
    lost: int | None = None
    lost_seconds: float | None = None
    host: str = ""
    restart: float | None = None
    slowdown: float | None = None
    orphans: int | None = None
    is_same_model: bool | None = None
    problems: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing hung, was told wrongly or was lost."""
        return not self.problems

    def cells(self) -> tuple[str, str, str, str]:
        """Return what a table shows: the fault, what followed, from where it went on, what was left."""
        return self.fault, self._followed(), self._went_on(), "" if self.orphans is None else f"orphans {self.orphans}"

    def _followed(self) -> str:
        if self.note:
            return self.note
        if self.noticed is None:
            return "not noticed"
        if self.status == COMPLETED:
            return f"went on, {self.slowdown:.1f} times as long" if self.slowdown else "went on"
        cause: dict[bool | None, str] = {True: ", first cause named", False: ", another cause named"}
        return f"{self.status} after {self.noticed:.1f} s{cause.get(self.is_cause_named, '')}"

    def _went_on(self) -> str:
        if self.resumed is None:
            return ""
        how = f"{self.host} {'resumed' if self.resumed else 'began again'}".lstrip()
        if not self.lost:
            return f"{how} at {self.resumed}: 0 lost"
        seconds = "" if self.lost_seconds is None else f" ({self.lost_seconds:.1f} s)"
        return f"{how} at {self.resumed}: {pluralize(self.lost, self.unit)}{seconds} lost"


@dataclass(frozen=True)
class Rehearsal:
    """Verdicts on what faults do to a job; its text is a table with what to change.

    Attributes:
        job: The name of the undisturbed job.
        hosts: What it ran on, such as ``2 x local_process``.
        steps: How many steps it made, 0 where its log names none; ``unit`` is ``step`` or ``epoch``.
        seconds: Its seconds of training.
        save_steps: Steps from one of its checkpoints to the next, and ``save_seconds`` the seconds; the medians.
            ``None`` for a job that wrote fewer than two.
        verdicts: A verdict for each fault.
        problems: Why the job cannot be rehearsed: it failed or hung without a fault.
        advice: What to change then.
    """

    job: str
    hosts: str
    steps: int = 0
    unit: str = "step"
    seconds: float = 0.0
    save_steps: int | None = None
    save_seconds: float | None = None
    verdicts: tuple[Verdict, ...] = ()
    problems: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether a fault happened, no job hung, no reason was wrong, and no job lost all that it had done."""
        return bool(self._happened) and not self.problems and all(each.ok for each in self.verdicts)

    @property
    def _happened(self) -> list[Verdict]:
        return [each for each in self.verdicts if not each.note]

    def to_dict(self) -> dict[str, Any]:
        """Return the rehearsal as JSON has it, with ``ok`` and the texts of the table."""
        verdicts = [{**asdict(each), "ok": each.ok, "cells": list(each.cells())} for each in self.verdicts]
        return {**asdict(self), "ok": self.ok, "verdicts": verdicts, "conclusion": self._conclusion()}

    def __str__(self) -> str:
        return "\n".join([*self._head(), *self._table(), *self._conclusion()])

    def _head(self) -> list[str]:
        made = f", {pluralize(self.steps, self.unit)}" if self.steps else ""
        trained = f" in {self.seconds:.1f} s of training" if self.seconds else ""
        lines = [f"undisturbed: {self.job} on {self.hosts}{made}{trained}"]
        if self.save_seconds is not None:
            lines[0] += f", a checkpoint every {self._interval()}"
        return lines

    def _interval(self) -> str:
        steps = f"{pluralize(self.save_steps, self.unit)}, " if self.save_steps else ""
        return f"{steps}{self.save_seconds:.1f} s"

    def _table(self) -> list[str]:
        return align_columns([each.cells() for each in self.verdicts]) if self.verdicts else []

    def _conclusion(self) -> list[str]:
        problems = [*self.problems, *(f"{each.fault}: {text}" for each in self.verdicts for text in each.problems)]
        advice = dict.fromkeys([*self.advice, *(text for each in self.verdicts for text in each.advice)])
        lines = [f"problem: {text}" for text in problems] + [f"change: {text}" for text in advice]
        return [*lines, f"verdict: {self._verdict(problems)}"]

    def _verdict(self, problems: Sequence[str]) -> str:
        if problems:
            return f"not ready: {pluralize(len(problems), 'problem')}"
        if not self._happened:
            return "not tested: no fault happened"
        losses = [each.lost for each in self._happened if each.lost is not None]
        text = "ready: the job completed after each fault"
        if losses:
            text = f"ready: lost at most {pluralize(max(losses), self.unit)}"
        elif all(each.status == COMPLETED for each in self._happened):
            text = "ready: no fault ended the job"
        if left := len(self.verdicts) - len(self._happened):
            text += f"; {left} of {pluralize(len(self.verdicts), 'fault')} did not happen"
        if self.save_seconds is not None and any(each.resumed for each in self._happened):
            text += f"; a lost host costs up to the time between two checkpoints: {self._interval()}"
        known = [each.is_same_model for each in self.verdicts if each.is_same_model is not None]
        if known:
            answer = "yes" if all(known) else "no, as of a program without fixed seeds"
            text += f". Model equal to that of the undisturbed job: {answer}"
        return text

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in each.cells())}</tr>" for each in self.verdicts
        )
        head, end = (html.escape("\n".join(lines)) for lines in (self._head(), self._conclusion()))
        return f"<pre>{head}</pre><table>{rows}</table><pre>{end}</pre>"
