"""What a person can do about a verdict: what is wrong with it, and what to change, by line where a script shows it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from scriptmode.core.spec.service_values import COMPLETED
from scriptmode.core.text.messages import pluralize
from scriptmode.rehearsal.faults import Freeze, Interrupt, LoseHost
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode.rehearsal.faults import Fault
    from scriptmode.rehearsal.findings import ScriptFindings
    from scriptmode.rehearsal.followed import FollowedJob
    from scriptmode.rehearsal.verdict import Verdict

#: The last line of a stack that a launcher logs of a process that hangs.
_SOURCE_LINE = re.compile(r'File "[^"]*/code/([^"]+)", line (\d+)')


def of_hang(fault: Fault, job: FollowedJob) -> tuple[str, ...]:
    """Return what to change for a job that hung after a fault, or without one."""
    found = [
        f"{host} waits in {where[1]}, line {where[2]}"
        if (where := _SOURCE_LINE.search(line))
        else f"{host} wrote last: {line}"
        for host, line in job.watch.last.items()
    ]
    silent = [f"{host} wrote nothing" for host in job.hosts if host not in job.watch.last]
    if isinstance(fault, Freeze):
        found.insert(0, f"environment={{'{contract.HANG_SECONDS_VARIABLE}': '60'}} ends a job of which no host writes")
    return (*silent, *found)


class Judge(NamedTuple):
    """What is known of one fault beside its verdict: ``has_saved`` is whether there was a checkpoint when it happened.

    ``first`` is the job that met it, ``last`` the one that was started after it, or the same.
    """

    fault: Fault
    findings: ScriptFindings
    has_saved: bool
    first: FollowedJob
    last: FollowedJob

    def judge(self, verdict: Verdict) -> Verdict:
        """Return the verdict with its problems and what to change."""
        problems, changes = [], []
        if self.last.description.status != COMPLETED:
            reason = self.last.description.failure_reason or self.last.description.message
            problems.append(f"it did not complete after it was started again: {reason.partition(chr(10))[0]}")
        if verdict.is_cause_named is False:
            problems.append(f"the reason names another cause: {verdict.reason.partition(chr(10))[0]}")
        if verdict.orphans:
            problems.append(f"{pluralize(verdict.orphans, 'process')} of the job were left")
        if verdict.resumed == 0 and verdict.lost:
            problems.append(f"all of its {pluralize(verdict.lost, verdict.unit)} were lost")
            changes.append(self._advise_checkpoints())
        if isinstance(self.fault, Interrupt) and self.first.watch.killed:
            problems.append(f"the script ran until SIGKILL, {self.fault.notice:g} s after SIGTERM")
            changes.append(self._advise_handler())
        limits = self.first.description.job.limits
        is_interruption = isinstance(self.fault, (Interrupt, LoseHost))
        if is_interruption and verdict.again and not (limits.max_retry_attempts or limits.use_spot_instances):
            changes.append("max_retry_attempts=3 starts a job again by itself after an interruption")
        return replace(verdict, problems=tuple(problems), advice=tuple(changes))

    def _advise_checkpoints(self) -> str:
        output, found = self.first.description.job.output, self.findings
        path = output.checkpoint_local_path or f"{contract.DEFAULT_BASE_DIR}/{contract.CHECKPOINTS_DIR}"
        if not output.checkpoint_uri:
            return f"give the estimator checkpoint_s3_uri, and write a checkpoint to {path} every N steps"
        if self.has_saved:
            return f"{found.name}: checkpoints were in {path}, and it began at its start: restore the newest one first"
        if found.saves_once:
            return f"{found.at(found.saves_once)} saves once, outside of the loop: save to {path} every N steps"
        return f"{found.name}: nothing was in {path} when it happened: save a checkpoint there every N steps"

    def _advise_handler(self) -> str:
        where = self.findings.at(self.findings.handlers)
        what = "handles SIGTERM and goes on" if self.findings.handlers else "goes on after SIGTERM"
        return f"{where} {what}: save, and end with exit code 143"
