"""One job of a rehearsal: it is followed to its end, meets a fault, is started again where it ended, gets a verdict."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Callable

from scriptmode._core.spec.failure_text import describe_in_one_line
from scriptmode._core.spec.service_values import COMPLETED
from scriptmode._core.text.messages import pluralize
from scriptmode.errors import JobNotFoundError
from scriptmode.rehearsal._faults import Interrupt, Kill
from scriptmode.rehearsal._steps import Resumption, StepReader, find_resumption
from scriptmode.rehearsal._verdict import Verdict
from scriptmode_local._opt_ml.opt_ml import checkpoints_path
from scriptmode_local._store.job_store import JobStore
from scriptmode_runtime import contract
from scriptmode_runtime._processes import proc, process_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from scriptmode._core.spec.job_description import JobDescription
    from scriptmode._job import TrainingJob
    from scriptmode.rehearsal._faults import Fault
    from scriptmode_local._store.job_store import JobFolder

#: Seconds between two looks at the logs, and between two at the job's state.
_POLL_SECONDS, _DESCRIBE_SECONDS = 0.02, 0.1
#: Seconds in which a job ends whose processes were killed: its agent copies the last checkpoints.
_END_SECONDS = 30.0
#: Variables by which a process of mpirun's knows its rank.
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK")


class HungError(Exception):
    """A job did not end within its bound, and was stopped."""


class FollowedJob:
    """A job that is followed by its logs and its state."""

    def __init__(self, job: TrainingJob, data_dir: Path, metric: str) -> None:
        self.job = job
        self.folder = JobStore(data_dir).find(job.name)
        self.description: JobDescription = job.platform.describe(job.name)
        self.hosts = self.description.job.resources.hosts
        definitions = self.description.job.algorithm.metric_definitions
        self.steps = StepReader(self.folder, self.hosts, [pair for pair in definitions if pair[0] == metric])
        self.began = time.monotonic()

    def follow(self, bound: float, look: Callable[[], None] = lambda: None) -> None:
        """Follow the job to its end, and call ``look`` all the time; raise `HungError` after ``bound`` seconds."""
        described = self.began
        try:
            while not self.description.has_ended:
                self._require_in_time(bound)
                look()
                time.sleep(_POLL_SECONDS)
                if time.monotonic() >= described + _DESCRIBE_SECONDS:
                    described = time.monotonic()
                    self.description = self.job.platform.describe(self.job.name)
                self.steps.read(final=self.description.has_ended)
            self.steps.read(final=True)
        except BaseException:
            # Also after Ctrl-C: nothing else knows of the job.
            self._end()
            raise
        finally:
            self.steps.close()

    def _require_in_time(self, bound: float) -> None:
        if time.monotonic() > self.began + bound:
            raise HungError(f"{self.job.name} had not ended after {bound:.0f} s, and was stopped")

    def _end(self) -> None:
        """Stop a job, kill its processes, and wait for its end: its agent uses its directories."""
        platform, name = self.job.platform, self.job.name
        with suppress(JobNotFoundError):
            platform.stop(name)
            for pid in process_tree.find_by_variable(f"{contract.BASE_DIR_VARIABLE}={self.folder.hosts}"):
                process_tree.kill_tree(pid)
            process_tree.wait_until(lambda: platform.describe(name).has_ended, _END_SECONDS)

    def checkpoint_files(self) -> set[str]:
        """Return the names of the files in the checkpoint directories of the hosts."""
        path = checkpoints_path(self.description.job.output)
        return find_files(self.folder.host(host) / path for host in self.hosts)

    def problem(self) -> str:
        """Return why the job did not complete, in one line; "" for one that did."""
        description, failure = self.description, self.job.failure
        if description.status == COMPLETED:
            return ""
        text = describe_in_one_line(failure) if failure else description.message
        return f"{self.job.name} is {description.status}: {text} (its log: scriptmode logs {self.job.name})"


def find_files(folders: Iterable[Path]) -> set[str]:
    """Return the names of the files below the folders, each relative to its folder."""
    return {
        os.path.relpath(os.path.join(place, name), folder)  # noqa: PTH118 - texts
        for folder in folders
        for place, _, names in os.walk(folder)
        for name in names
    }


class Trial:
    """A fault, the job that meets it, and the undisturbed job with the steps that it made."""

    def __init__(self, fault: Fault, undisturbed: FollowedJob, bound: float, checkpoints: Path | None) -> None:
        self._fault = fault
        self._undisturbed = undisturbed
        self._numbers = undisturbed.steps.numbers
        self._at = max(1, max(self._numbers) * 53 // 100) if fault.at is None else fault.at
        self._bound = bound
        self._checkpoints = checkpoints
        self._has_happened = False
        self._files: set[str] = set()

    def run(self, first: FollowedJob, start_again: Callable[[TrainingJob], FollowedJob]) -> Verdict:
        """Follow the job through its fault to the end, and a second job after one that did not complete."""
        verdict, last = Verdict(str(self._fault), first.job.name), first
        try:
            first.follow(self._bound, lambda: self._disturb(first))
            if not self._has_happened:
                return replace(verdict, note=f"the job ended before step {self._at}")
            passed = [transition.status for transition in first.description.transitions]
            status = "Interrupted" if "Interrupted" in passed else first.description.status
            verdict = replace(verdict, status=status)
            if first.description.status != COMPLETED:
                last = start_again(first.job)
                verdict = replace(verdict, again=last.job.name)
                last.follow(self._bound)
        except HungError as error:
            return replace(verdict, problems=(str(error),))
        return self._judge(verdict, first, last)

    def _disturb(self, job: FollowedJob) -> None:
        """Inject the fault once its step was made."""
        if self._has_happened or max(job.steps.numbers, default=0) < self._at:
            return
        self._files = job.checkpoint_files()
        self._has_happened = _inject(self._fault, job.folder, job.hosts)

    def _judge(self, verdict: Verdict, first: FollowedJob, last: FollowedJob) -> Verdict:
        """Return the verdict with the steps and the checkpoint files of before and after the fault."""
        after = find_files([self._checkpoints]) if self._checkpoints else set()
        reached = max([*first.steps.numbers, *last.steps.numbers])
        verdict = replace(verdict, last=reached, files_before=len(self._files), files_after=len(after))
        resumptions = []
        for host in first.hosts:
            runs = first.steps.runs[host]
            runs = runs if first is last else [[*chain(*runs)], *last.steps.runs[host]]
            if resumption := find_resumption(runs, self._interval(host)):
                resumptions.append(resumption)
        if resumptions:
            worst = max(resumptions, key=lambda resumption: resumption.lost)
            verdict = replace(verdict, before=worst.before, first=worst.first, lost=worst.lost)
        return replace(verdict, problems=tuple(self._find_problems(verdict, last, resumptions)))

    def _interval(self, host: str) -> int:
        """Return the steps between two lines of the undisturbed job that name one."""
        numbers = [*chain(*self._undisturbed.steps.runs[host])]
        return min((later - earlier for earlier, later in zip(numbers, numbers[1:]) if later > earlier), default=1)

    def _find_problems(self, verdict: Verdict, last: FollowedJob, resumptions: list[Resumption]) -> Iterable[str]:
        if problem := last.problem():
            yield f"it did not recover: {problem}"
        if (expected := max(self._numbers)) > (verdict.last or 0):
            yield f"its last step is {verdict.last}, that of the undisturbed job {expected}"
        lost = [resumption.lost for resumption in resumptions if resumption.first <= min(self._numbers)]
        if any(lost):
            yield f"all {pluralize(max(lost), 'step')} were lost: {self._advise(last)}"
        elif resumptions and not self._files:
            yield f"it went on at step {verdict.first} without a checkpoint file: the metric does not count its steps"
        if self._checkpoints and self._files and not verdict.files_after:
            yield f"all {pluralize(len(self._files), 'checkpoint file')} were gone at its end"

    def _advise(self, last: FollowedJob) -> str:
        path = last.description.job.output.checkpoint_local_path or "/opt/ml/checkpoints"
        if self._checkpoints is None:
            return f"give checkpoint_s3_uri (--checkpoint-s3-uri), and save a checkpoint to {path} every N steps"
        if not self._files:
            return f"save a checkpoint to {path} every N steps"
        return f"restore the newest checkpoint of {path} first"


def _inject(fault: Fault, folder: JobFolder, hosts: Sequence[str]) -> bool:
    """Inject a fault into the job of a folder; return whether the process runs that it happens to."""
    if isinstance(fault, Kill):
        pid = _find_script(folder, hosts, fault.host or hosts[-1])
    else:
        pid = _recorded(folder, "agent" if isinstance(fault, Interrupt) else f"agent of {hosts[0]}")
    if not pid:
        return False
    if isinstance(fault, Kill):
        process_tree.kill_all([pid])
    elif isinstance(fault, Interrupt):
        process_tree.signal_all([pid], signal.SIGTERM)
    else:
        process_tree.kill_tree(pid)
    return True


def _recorded(folder: JobFolder, name: str) -> int:
    """Return the process ID of a host's launcher, ``agent`` or ``agent of algo-1``; 0 for one that does not run."""
    identity = folder.read_processes().get(name)
    return identity.pid if identity and proc.is_running(identity) else 0


def _find_script(folder: JobFolder, hosts: Sequence[str], host: str) -> int:
    """Return the first process of the script on a host, its first rank or what its launcher started; 0 without."""
    ranks: dict[int, int] = {}
    # On this machine one mpirun, on the first host, starts the ranks of all hosts.
    first, launcher = _recorded(folder, hosts[0]), _recorded(folder, host)
    for pid in process_tree.descendants(first) if first else ():
        variables = proc.environ(pid)
        rank = next((variables[name] for name in _RANKS if name in variables), "")
        if rank.isdecimal() and (program := process_tree.children(pid)):
            # The runtime's process of a rank starts the script.
            ranks.setdefault(int(rank), program[0])
    if ranks:
        return [pid for _, pid in sorted(ranks.items())][hosts.index(host) * len(ranks) // len(hosts)]
    return min(process_tree.children(launcher), default=0) if launcher else 0
