"""One fault of a rehearsal: the job that meets it, is started again where it ended, and gets a verdict."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Callable, NamedTuple

from scriptmode.core.spec.service_values import COMPLETED, FAILED
from scriptmode.rehearsal import advice
from scriptmode.rehearsal.faults import Moment
from scriptmode.rehearsal.followed import FollowedJob, HungError
from scriptmode.rehearsal.injection import Injected, JobProcesses, NothingToDisturbError, inject
from scriptmode.rehearsal.steps import Count
from scriptmode.rehearsal.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from scriptmode.job import TrainingJob
    from scriptmode.rehearsal.faults import Fault
    from scriptmode.rehearsal.findings import ScriptFindings

#: A disturbed job ends within three times the seconds of the undisturbed one, and these.
_TIMES, _MARGIN_SECONDS = 3, 120.0


@dataclass(frozen=True)
class Baseline:
    """The undisturbed job, against which the others are measured; times in seconds."""

    #: How each host that names steps counts them.
    counts: Mapping[str, Count]
    training: float
    whole: float
    model: dict[str, str] | None
    has_saved: bool

    @property
    def leaves_files(self) -> bool:
        """Whether it wrote checkpoints or a model."""
        return self.has_saved or bool(self.model)

    @property
    def count(self) -> Count:
        """How the first host that names steps counts them."""
        return next(iter(self.counts.values()), Count([]))


class _Loss(NamedTuple):
    """What one host made twice, and from where it went on."""

    lost: int
    resumed: int
    seconds: float
    began: float
    host: str


class Trial:
    """A job, its fault, and when that happened."""

    def __init__(self, fault: Fault, baseline: Baseline, data_dir: Path, findings: ScriptFindings) -> None:
        self.fault = fault
        #: The fault as text, with what the script counts.
        self.title = str(fault).replace("at step", f"at {baseline.count.unit}")
        self._moment = Moment.parse(fault.at)
        self._baseline = baseline
        self._data_dir = data_dir
        self._findings = findings
        self._happened: float | None = None
        self._injected = Injected()
        self._obstacle = ""
        #: Whether there was a checkpoint when it happened.
        self.has_saved = False
        #: Seconds in which the job ends.
        self.bound = (_TIMES * baseline.whole + _MARGIN_SECONDS) * getattr(fault, "factor", 1)

    def run(self, job: TrainingJob, start_again: Callable[[TrainingJob], TrainingJob]) -> Verdict:
        """Follow the job through its fault to the end, and a second job after one that did not complete."""
        first = FollowedJob(job, self._data_dir)
        try:
            first.follow(self.bound, lambda: self._disturb(first))
        except HungError as error:
            problem = f"{error}; {advice.describe_last_lines(first)}"
            return replace(self._first_verdict(first), problems=(problem,), advice=advice.of_hang(self.fault))
        verdict = self._first_verdict(first)
        if self._happened is None:
            return verdict
        if first.description.status == COMPLETED:
            return self._judge(self._with_next_run(verdict, first, first), first, first)
        second = FollowedJob(start_again(job), self._data_dir)
        try:
            second.follow(self.bound)
        except HungError as error:
            return replace(verdict, again=second.job.name, problems=(str(error),))
        verdict = self._with_next_run(replace(verdict, again=second.job.name), first, second)
        return self._judge(verdict, first, second)

    def _judge(self, verdict: Verdict, first: FollowedJob, last: FollowedJob) -> Verdict:
        known = self.has_saved, bool(self._baseline.counts), self._baseline.leaves_files
        return advice.Judge(self.fault, self._findings, *known, first, last).judge(verdict)

    def _disturb(self, job: FollowedJob) -> None:
        """Inject the fault at its moment; continue one that lasts."""
        if self._injected.turn is not None:
            self._injected.turn()
        if self._happened is not None or not self._is_due(job):
            return
        self.has_saved = job.has_saved
        try:
            self._injected = inject(self.fault, JobProcesses(job.folder, job.hosts))
            self._happened = time.monotonic()
        except NothingToDisturbError as error:
            # The script may not have started yet: tried again. The first obstacle is not that the job has ended.
            self._obstacle = self._obstacle or str(error)

    def _is_due(self, job: FollowedJob) -> bool:
        unit, number = self._moment
        began = job.since("Training")
        if unit not in ("step", "s", "%"):
            return job.description.secondary == unit
        if began is None:
            return False
        host, count = self._counted_host(job)
        if unit == "%" and count.total:
            unit, number = "step", max(1, number * count.total // 100)
        if unit == "step":
            return count.done_at(job.watch.runs[host][0], time.monotonic()) >= number
        seconds = number if unit == "s" else number / 100 * self._baseline.training
        return time.monotonic() >= began + seconds

    def _counted_host(self, job: FollowedJob) -> tuple[str, Count]:
        """Return the host whose steps decide when the fault happens: its own, else the first that names steps."""
        counts = self._baseline.counts
        host = getattr(self.fault, "host", "") or job.hosts[-1]
        if host not in counts:
            host = next(iter(counts), job.hosts[0])
        return host, counts.get(host) or self._baseline.count

    def _first_verdict(self, job: FollowedJob) -> Verdict:
        """Return what followed the fault: the first status after it, when, and why; or why it did not happen."""
        verdict = Verdict(self.title, job.job.name, unit=self._baseline.count.unit)
        if self._happened is None:
            note = self._obstacle or "the job ended before"
            if self._moment.unit == "step" and not self._baseline.count.total:
                note = "the log of the undisturbed job names no step"
            return replace(verdict, note=f"did not happen: {note}")
        if (found := _status_after(job, self._happened)) is None:
            return verdict
        status, moment, reason = found
        named = None
        if status == FAILED and (place := self._injected.place):
            named = re.search(rf"{re.escape(place)}\b", job.description.failure_reason) is not None
        return replace(
            verdict, status=status, noticed=moment - self._happened, reason=reason, is_cause_named=named
        )  # fmt: skip

    def _with_next_run(self, verdict: Verdict, first: FollowedJob, last: FollowedJob) -> Verdict:
        """Return the verdict with what a later run says: from where it went on, and its end."""
        same = None
        if self._baseline.model and (model := last.model()) is not None:
            same = model == self._baseline.model
        verdict = replace(verdict, orphans=last.count_orphans(), is_same_model=same)
        losses = [loss for host in self._baseline.counts if (loss := self._loss(host, first, last))]
        if not losses:
            is_one_run = first is last and self._baseline.training > 0
            return (
                replace(verdict, slowdown=last.training_seconds() / self._baseline.training) if is_one_run else verdict
            )
        worst = max(losses, key=lambda each: (each.lost, -each.resumed))
        host = worst.host if worst.lost and len({each.resumed for each in losses}) > 1 else ""
        return replace(
            verdict, host=host, resumed=worst.resumed, lost=worst.lost, lost_seconds=worst.seconds,
            restart=worst.began - (self._happened or 0.0) - (verdict.noticed or 0.0),
        )  # fmt: skip

    def _loss(self, host: str, first: FollowedJob, last: FollowedJob) -> _Loss | None:
        """Return what a host lost, from the last line of the run before to the first one of the next; None without."""
        runs = first.watch.runs[host] if first is last else [first.watch.runs[host][-1], *last.watch.runs[host]]
        before, after = runs[0], next((run for run in runs[1:] if run), None)
        if not after:
            return None
        count = self._baseline.counts[host]
        resumed = max(0, count.start(after[0]))
        made = max([*map(count.done, before), count.done_at(before, (self._happened or 0.0))])
        lost = max(0, made - resumed)
        # The line of the step from which it goes on; the first one where there is none.
        kept = [mark.time for mark in before if count.done(mark) <= resumed] or [mark.time for mark in before[:1]]
        seconds = before[-1].time - kept[-1] if lost else 0.0
        return _Loss(lost, resumed, seconds, after[0].time, host)


def _status_after(job: FollowedJob, moment: float) -> tuple[str, float, str] | None:
    """Return the first end or interruption of a job after a moment, when it was seen, and its reason; None before."""
    ends = ("Interrupted", "Failed", "Stopped", "MaxRuntimeExceeded", "MaxWaitTimeExceeded", "Completed")
    for (status, seen), transition in zip(job.changed, job.description.transitions):
        if seen >= moment and status in ends:
            return status, seen, job.description.failure_reason if status == FAILED else transition.message
    return None
