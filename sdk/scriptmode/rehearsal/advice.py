"""What a person can do about a verdict: what is wrong with it, and what to change, by line where a script shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from scriptmode.core.spec.job_failure import describe_in_one_line
from scriptmode.core.spec.service_values import COMPLETED
from scriptmode.core.text.messages import pluralize
from scriptmode.rehearsal.faults import Freeze, FullDisk, Interrupt, LoseHost
from scriptmode.rehearsal.steps import STACK_LINE
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode.rehearsal.faults import Fault
    from scriptmode.rehearsal.findings import ScriptFindings
    from scriptmode.rehearsal.followed import FollowedJob
    from scriptmode.rehearsal.verdict import Verdict

_PRINT_STEPS = "print(f'step {step}', flush=True) after each step, or define a metric 'step', whose value is its number"


def of_hang(fault: Fault) -> tuple[str, ...]:
    """Return what to change for a job that hung after a fault."""
    if not isinstance(fault, Freeze):
        return ()
    text = "only max_run (--max-run) ends a job whose host hangs, unless a distribution connects the hosts: give one"
    return (f"{text} that is not much longer than the job",)


def describe_last_lines(job: FollowedJob) -> str:
    """Return where each host of a job waits, or what it wrote last."""
    found = []
    for host in job.hosts:
        line = job.watch.last.get(host, "")
        where = STACK_LINE.search(line)
        found.append(
            f"{host} waits in {where[1]}, line {where[2]}" if where else f"{host} wrote last: {line or 'nothing'}"
        )
    return "; ".join(found)


def describe_failure(job: FollowedJob) -> str:
    """Return why a job did not complete, in one line, with what its script wrote last."""
    failure = job.job.failure
    if failure is None:
        return f"{job.job.name} is {job.description.secondary}: {job.description.message}"
    return f"{job.job.name} failed: {describe_in_one_line(failure)} (its log: scriptmode logs {job.job.name})"


class Judge(NamedTuple):
    """What is known of one fault beside its verdict.

    ``has_saved`` is whether there was a checkpoint when it happened, ``is_counted`` whether the log of the undisturbed
    job names steps, ``leaves_files`` whether that job wrote checkpoints or a model. ``first`` is the job that met it,
    ``last`` the one that was started after it, or the same.
    """

    fault: Fault
    findings: ScriptFindings
    has_saved: bool
    is_counted: bool
    leaves_files: bool
    first: FollowedJob
    last: FollowedJob

    def judge(self, verdict: Verdict) -> Verdict:
        """Return the verdict with its problems and what to change."""
        problems, changes = [], []
        if self.last.description.status != COMPLETED:
            problems.append(f"it did not complete after it was started again: {describe_failure(self.last)}")
        if verdict.is_cause_named is False:
            problems.append(f"the reason names another cause: {verdict.reason.partition(chr(10))[0]}")
        if verdict.orphans:
            problems.append(f"{pluralize(verdict.orphans, 'process')} of the job were left")
        if verdict.resumed == 0 and verdict.lost:
            what = f"all {pluralize(verdict.lost, verdict.unit)} of {verdict.host} were lost"
            problems.append(what if verdict.host else f"all of its {pluralize(verdict.lost, verdict.unit)} were lost")
            changes.append(self._advise_checkpoints())
        if not self.is_counted and verdict.status != COMPLETED:
            problems.append("its log names no step, so that what it lost is not known")
            changes.append(_PRINT_STEPS)
        if isinstance(self.fault, FullDisk) and verdict.status == COMPLETED and self.leaves_files:
            problems.append("it completed although none of its files could be written")
            changes.append(f"{self.findings.name}: close each file that it writes, and let errors of writing end it")
        if isinstance(self.fault, Interrupt):
            self._judge_notice(self.fault.notice, problems, changes)
        limits = self.first.description.job.limits
        is_interruption = isinstance(self.fault, (Interrupt, LoseHost))
        if is_interruption and verdict.again and not (limits.max_retry_attempts or limits.use_spot_instances):
            changes.append(
                "max_retry_attempts=3 (--set max_retry_attempts=3) starts a job again by itself after an interruption"
            )
        return replace(verdict, problems=tuple(problems), advice=tuple(changes))

    def _advise_checkpoints(self) -> str:
        output, found = self.first.description.job.output, self.findings
        path = output.checkpoint_local_path or f"{contract.DEFAULT_BASE_DIR}/{contract.CHECKPOINTS_DIR}"
        if not output.checkpoint_uri:
            return f"give checkpoint_s3_uri (--checkpoint-s3-uri), and write a checkpoint to {path} every N steps"
        if self.has_saved:
            return f"{found.name}: checkpoints were in {path}, and it began at its start: restore the newest one first"
        if found.saves_once:
            return f"{found.at(found.saves_once)} saves once, outside of the loop: save to {path} every N steps"
        return f"{found.name}: nothing was in {path} when it happened: save a checkpoint there every N steps"

    def _judge_notice(self, notice: float, problems: list[str], changes: list[str]) -> None:
        where = self.findings.at(self.findings.handlers)
        if self.first.watch.killed:
            problems.append(f"the script ran until SIGKILL, {notice:g} s after SIGTERM")
            changes.append(f"{where}: save within the notice after SIGTERM, and end with exit code 143")
        elif 0 in self.first.watch.exit_codes:
            changes.append(f"{where}: end with exit code 143 after SIGTERM: 0 says that the training is complete")
