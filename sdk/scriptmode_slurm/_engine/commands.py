"""The commands of Slurm, and their output as values.

Only output that is the same from Slurm 21.08 to 25.05 is read: ``squeue -o``, ``sacct -P`` and ``scontrol -o``, never
``--json``. Times are read in UTC. A command that cannot reach slurmctld is repeated while it restarts.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Callable, TypeVar

from scriptmode._core.machine.clock import SYSTEM, Clock
from scriptmode._core.machine.programs import ProgramResult, run_program
from scriptmode.errors import PlatformError, TransientError
from scriptmode_runtime._terminal_line import sanitize
from scriptmode_slurm._engine import problems
from scriptmode_slurm._engine.partitions import FORMAT, Partition, parse_partitions

_Answer = TypeVar("_Answer")
#: Seconds of one command. Slurm's own waiting (MessageTimeout) is 10 s by default, and some sites double it.
_COMMAND_SECONDS = 45.0
#: A job has its end only after the try to set its comment.
_COMMENT_SECONDS = 5.0
#: Exit codes of a command in a process of a job that Slurm ends: the signals are for all processes of the step.
_ENDED_WITH_THE_JOB = (-signal.SIGTERM, -signal.SIGKILL)
#: Seconds in which slurmctld may restart, and between two attempts.
RETRY_SECONDS, _RETRY_INTERVAL = 60.0, 2.0
#: Seconds between two requests for the state of a job by one process, at least, and where the queue stays as it is.
STATUS_SECONDS, _LONGEST_SECONDS = 3.0, 60.0
#: Variables that change what these commands print or select.
_FOREIGN = ("SQUEUE_", "SACCT_", "SCONTROL_", "SINFO_", "SLURM_CLUSTERS")
_ENVIRONMENT = {"TZ": "UTC0", "SLURM_TIME_FORMAT": "standard", "LC_ALL": "C"}
_FIELD = re.compile(r"(?:^|\s)([A-Za-z][\w:/]*)=(.*?)(?=\s+[A-Za-z][\w:/]*=|\s*$)", re.DOTALL)
#: What ``sbatch --verbose`` writes of each component of a job.
_DEFINED_OPTIONS = re.compile(
    r"^sbatch: defined options$(.*?)^sbatch: end of defined options$", re.DOTALL | re.MULTILINE
)
_DEFINED_OPTION = re.compile(r"^sbatch: ([a-z][a-z0-9-]*) *: (.*)$", re.MULTILINE)
_SEPARATOR = "|"
#: Fields of squeue and sacct, and scontrol's names for them. A job's name may have any characters, so it is the last.
_SQUEUE = {
    "JobId": "%i", "JobState": "%T", "StartTime": "%S", "Partition": "%P", "NodeList": "%N", "Reason": "%r",
    "JobName": "%j",
}  # fmt: skip
_SACCT = {
    "JobID": "JobId", "State": "JobState", "ExitCode": "ExitCode", "Start": "StartTime", "Partition": "Partition",
    "NodeList": "NodeList", "Reason": "Reason", "JobName": "JobName",
}  # fmt: skip
PENDING, RUNNING = "PENDING", "RUNNING"
#: Options of scancel: only a pending job, and SIGKILL to the batch script and all steps of a running one.
ONLY_PENDING, KILL = (f"--state={PENDING}",), ("--full", "--signal=KILL")
#: States in which Slurm still has something to do for a job (squeue(1), "Job state codes").
ACTIVE = frozenset(
    {"CONFIGURING", "COMPLETING", PENDING, "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD",
     RUNNING, "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "SUSPENDED"}
)  # fmt: skip


@dataclass(frozen=True)
class JobStatus:
    """A job as Slurm knows it; times are seconds since the epoch.

    Attributes:
        job_id: Number of the job; of a heterogeneous job that of its first component.
        state: Slurm's long name of the state, such as ``PENDING``, ``RUNNING``, ``NODE_FAIL`` or ``CANCELLED``.
        reason: Why the job is pending, such as ``Resources``; "" for none.
        start: Expected start while it is pending, else its start.
        partition: The partition, or a list of them while it is pending.
        nodes: The nodes as Slurm lists them: ``n[1-2]``; "" while there are none.
        position: Position among the pending jobs of its partition, from 1 on; 0 where it is unknown.
        reason_seconds: For how long this process has seen the reason.
        exit_code: Exit code of the batch script; 0 also where ``signal`` ended it.
        preempted: Time of its last preemption.
        cancelled_by: Number of the user who cancelled it.
        name: Name of the training job. Another cluster has another job of the same number.
        end: Time of its end, of a running job that of its time limit.
    """

    job_id: int
    state: str
    reason: str = ""
    start: float | None = None
    partition: str = ""
    nodes: str = ""
    position: int = 0
    reason_seconds: float = 0.0
    exit_code: int | None = None
    signal: int = 0
    restarts: int = 0
    preempted: float | None = None
    cancelled_by: int | None = None
    name: str = ""
    end: float | None = None


def submit(script: Path, *, environ: Mapping[str, str] | None = None) -> int:
    """Submit a batch script; return the job's number. ``environ`` is the environment of the job, by default this one.

    Raises `PlatformError` for a job that Slurm refuses, `TransientError` where slurmctld does not answer.
    """
    output = _run(("sbatch", "--parsable", str(script)), environ=environ, wait=0, is_repeatable=False)
    number = output.strip().rpartition("\n")[2].partition(";")[0]
    if not number.isdigit():
        raise PlatformError(f"sbatch printed no job number: {output.strip()!r}", advice="see squeue --me")
    return int(number)


def read_header(script: Path) -> list[dict[str, str]]:
    """Return the options in the header of a batch script, as sbatch reads them, by long names with "_" for "-".

    A heterogeneous job has several components. Raises `PlatformError` in the words of sbatch; nothing is submitted.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SBATCH_")}
    # Once more than the header may be --quiet. Whether the job could start at the moment does not matter.
    command = ("sbatch", "--test-only", "--verbose", "--verbose", str(script.absolute()))
    done = _run_once(command, _COMMAND_SECONDS, _without_foreign(variables))
    components = _DEFINED_OPTIONS.findall(done.errors)
    if not components:
        raise problems.command_error("sbatch", done.errors or done.output, done.code)
    return [{name.replace("-", "_"): value for name, value in _DEFINED_OPTION.findall(text)} for text in components]


def run_step(options: Sequence[str], command: Sequence[str], seconds: int) -> str:
    """Run a command on one node that is free within ``seconds``; return its output.

    Raises `PlatformError` with the last lines of its errors.
    """
    alone = ("--nodes=1", "--ntasks=1", "--time=1", "--chdir=/", "--job-name=scriptmode")
    return _run(("srun", *alone, f"--immediate={seconds}", "--mpi=none", "--quiet", *options, *command))


def requeue(job_id: int) -> None:
    """Return a running or ended job to the queue; raise `PlatformError`."""
    _run(("scontrol", "requeue", str(job_id)))


def set_comment(job_id: int, text: str) -> None:
    """Set the comment of a job of this user; a cluster that refuses or does not answer is ignored."""
    with suppress(PlatformError):
        command = ("scontrol", "update", f"JobId={job_id}", f"Comment={sanitize(text)}")
        _run(command, wait=0, seconds=_COMMENT_SECONDS)


def cancel(job_id: int, *options: str, wait: float = RETRY_SECONDS) -> None:
    """Cancel a job, with the options `ONLY_PENDING` or `KILL`; leave one that has ended. Raises `PlatformError`."""
    _run(("scancel", "--quiet", *options, str(job_id)), wait=wait)


def find_status(job_id: int, *, wait: float = RETRY_SECONDS) -> JobStatus | None:
    """Return a job by scontrol, and by sacct if slurmctld forgot it; ``None`` if neither knows it.

    Raises `PlatformError` where Slurm does not answer, after at least ``wait`` seconds.
    """
    return find_details(job_id, wait=wait) or find_record(job_id, wait=wait)


def find_details(job_id: int, *, wait: float = RETRY_SECONDS) -> JobStatus | None:
    """Return a job by scontrol, with its restarts, preemption and exit code; ``None`` if slurmctld forgot it."""
    return parse_job(_ask(("scontrol", "--oneliner", "show", "job", str(job_id)), problems.UNKNOWN_JOB, wait))


def find_record(job_id: int, *, wait: float = RETRY_SECONDS) -> JobStatus | None:
    """Return a job by sacct; ``None`` where the accounting does not know the job, or there is none."""
    argv = ("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job_id}", f"--format={','.join(_SACCT)}")
    return next(parse_lines(_ask(argv, problems.NO_ACCOUNTING, wait), _SACCT.values()), None)


def _ask(argv: Sequence[str], unknown: Sequence[str], wait: float) -> str:
    """Return the output of a command; "" for an error with one of the texts ``unknown``."""
    try:
        return _run(argv, wait=wait)
    except PlatformError as error:
        if isinstance(error, TransientError) or not problems.mentions(error.message, unknown):
            raise
        return ""


def find_queue() -> dict[int, JobStatus]:
    """Return this user's jobs that slurmctld knows, by their numbers; raise `PlatformError` without any retry."""
    form = _SEPARATOR.join(_SQUEUE.values())
    argv = ("squeue", "--noheader", "--states=all", f"--user={os.getuid()}", f"--format={form}")
    return {status.job_id: status for status in reversed(list(parse_lines(_run(argv, wait=0), _SQUEUE)))}


def find_order(partition: str) -> list[int]:
    """Return the numbers of a partition's pending jobs, the one with the highest priority first."""
    argv = ["squeue", "--noheader", "--states=PENDING", "--sort=-p,i", "--format=%i"]
    queue = _run([*argv, f"--partition={partition}"] if partition else argv, wait=0).split()
    return [_job_number(job) for job in queue]


def expand_nodes(nodes: str) -> list[str]:
    """Return the names of a list of nodes such as ``n[1-2]``, in its order; raise `PlatformError`."""
    return _run(("scontrol", "show", "hostnames", nodes)).split()


def find_nodes(
    nodes: Iterable[str], *, wait: float = RETRY_SECONDS, seconds: float = _COMMAND_SECONDS
) -> dict[str, Mapping[str, str]]:
    """Return the records of nodes by their names; raise `PlatformError` where Slurm does not answer."""
    command = ("scontrol", "--oneliner", "show", "node", ",".join(nodes))
    return {record["NodeName"]: record for record in parse_records(_run(command, wait=wait, seconds=seconds))}


def list_partitions() -> list[Partition]:
    """Return all partitions, hidden ones too; raise `PlatformError` without any retry."""
    return list(parse_partitions(_run(("sinfo", "--noheader", "--all", f"--format={FORMAT}"), wait=0)))


def find_config(*, wait: float) -> dict[str, str]:
    """Return the configuration of this machine's cluster, as ``scontrol show config`` prints it."""
    lines = (line.partition("=") for line in _run(("scontrol", "show", "config"), wait=wait).splitlines())
    return {name.strip(): value.strip() for name, separator, value in lines if separator}


def parse_lines(output: str, names: Collection[str]) -> Iterator[JobStatus]:
    """Parse the line of each job, with these fields; a heterogeneous one has several, the first component's first.

    The name of another job may have line ends: what is not the beginning of a job's line is skipped.
    """
    for line in output.splitlines():
        fields = line.strip().split(_SEPARATOR, len(names) - 1)
        if len(fields) == len(names) and fields[0][:1].isdigit():
            yield _parse_status(dict(zip(names, fields)))


def parse_job(output: str) -> JobStatus | None:
    """Parse the first record of ``scontrol --oneliner show job``."""
    return next(map(_parse_status, parse_records(output)), None)


def _parse_status(record: Mapping[str, str]) -> JobStatus:
    """Return a job of a record with the names that scontrol has; any of them but the first two may be missing."""
    state, _, cancelled_by = record["JobState"].partition(" by ")
    code, _, signal = record.get("ExitCode", "").partition(":")
    return JobStatus(
        _job_number(record["JobId"]),
        state.partition(" ")[0],
        _value(record.get("Reason", "")).strip("()"),
        parse_time(record.get("StartTime", "")),
        record.get("Partition", ""),
        _value(record.get("NodeList", "")),
        exit_code=int(code) if code.isdigit() else None,
        signal=int(signal) if signal.isdigit() else 0,
        restarts=int(record.get("Restarts", 0)),
        preempted=parse_time(record.get("PreemptTime", "")),
        cancelled_by=int(cancelled_by) if cancelled_by.isdigit() else None,
        name=record.get("JobName", ""),
        end=parse_time(record.get("EndTime", "")),
    )


def parse_records(output: str) -> Iterator[dict[str, str]]:
    """Parse the records of ``scontrol --oneliner``, one each line; of a field that occurs twice the first counts."""
    for line in output.splitlines():
        fields: dict[str, str] = {}
        for name, value in _FIELD.findall(line):
            fields.setdefault(name, value.strip())
        if fields:
            yield fields


def parse_time(text: str) -> float | None:
    """Return a time in UTC as Slurm prints it, in seconds since the epoch; ``None`` for ``N/A``, ``Unknown`` ..."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def _value(text: str) -> str:
    """Return a reason or a list of nodes; "" for what Slurm prints where there is none."""
    return "" if text in ("None", "None assigned", "(null)") else text


def _job_number(text: str) -> int:
    """Return a job's number of ``12``, or of ``12+0``, a component of a heterogeneous job."""
    return int(re.match(r"\d+", text)[0]) if text[:1].isdigit() else 0  # type: ignore[index]


class StatusCache:
    """What one process asks of Slurm about its user's jobs; for use by several threads.

    However many jobs are asked for, their queue is listed at most every `STATUS_SECONDS`, and less and less often for a
    job that is pending for the same reason; and that of a partition, for the positions, every `_LONGEST_SECONDS`. An
    answer may be an error, which counts for `STATUS_SECONDS`: slurmctld may be back.
    """

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: When each question was asked, and the answer.
        self._answers: dict[object, tuple[float, object]] = {}
        #: The reason of each pending job, and since when it has it.
        self._reasons: dict[int, tuple[str, float]] = {}

    def status(self, job_id: int, *, is_urgent: bool = False) -> JobStatus | None:
        """Return a job's state, a pending job's with its position; raise `PlatformError` without any retry.

        With ``is_urgent`` it is not older than `STATUS_SECONDS`.
        """
        with self._lock:
            now = self._clock.now()
            reason, since = self._reasons.get(job_id, ("", now))
            pause = STATUS_SECONDS if is_urgent else max(STATUS_SECONDS, min((now - since) / 2, _LONGEST_SECONDS))
            status = self._ask("queue", pause, find_queue).get(job_id)
            if status is None or status.state != PENDING:
                self._reasons.pop(job_id, None)
                return self._ask(job_id, STATUS_SECONDS, lambda: find_status(job_id, wait=0)) or status
            self._reasons[job_id] = status.reason, since if reason == status.reason else now
            order = self._ask(("order", status.partition), _LONGEST_SECONDS, lambda: find_order(status.partition))
            position = order.index(job_id) + 1 if job_id in order else 0
            return replace(status, position=position, reason_seconds=now - self._reasons[job_id][1])

    def cluster(self, *, wait: float = 0.0) -> str:
        """Return the name of this machine's cluster, asked again with ``wait``, for so long; raise `PlatformError`."""
        # Of each configuration that this process used; asked for once a day.
        key = os.environ.get("SLURM_CONF", ""), os.environ.get("PATH", "")
        # Nobody waits for an answer that takes long.
        known = find_config(wait=wait).get("ClusterName", "") if wait else ""
        with self._lock:
            if wait:
                self._answers[key] = self._clock.now(), known
            return self._ask(key, 86400.0, lambda: find_config(wait=0).get("ClusterName", ""))

    def forget(self, job_id: int) -> None:
        """Remove what is known of a job, which was submitted, requeued or cancelled."""
        with self._lock:
            self._answers.pop("queue", None)
            self._answers.pop(job_id, None)
            self._reasons.pop(job_id, None)

    def _ask(self, key: object, seconds: float, call: Callable[[], _Answer]) -> _Answer:
        asked, answer = self._answers.get(key, (float("-inf"), None))
        if self._clock.now() >= asked + (STATUS_SECONDS if isinstance(answer, PlatformError) else seconds):
            try:
                answer = call()
            except PlatformError as error:
                answer = error
            self._answers[key] = self._clock.now(), answer
        if isinstance(answer, PlatformError):
            raise answer
        return answer  # type: ignore[return-value]


#: The states that this process asked for.
STATES = StatusCache()


def _run(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    wait: float = RETRY_SECONDS,
    seconds: float = _COMMAND_SECONDS,
    is_repeatable: bool = True,
) -> str:
    """Run a command and return its output; raise `PlatformError`, and `TransientError` where Slurm does not answer.

    ``environ`` is the environment of a job that the command submits; ``wait`` are the seconds in which slurmctld may
    restart, and ``seconds`` those that one try may take. In a process of a job the command may get a signal for all of
    the job, even one that it asks for: it is run once more, unless it is not ``is_repeatable``.
    """
    variables = _without_foreign(environ) if environ is not None else {**_without_foreign(os.environ), **_ENVIRONMENT}
    deadline, was_signalled = SYSTEM.now() + wait, False
    while True:
        done = _run_once(argv, seconds, variables)
        if not done.code:
            return done.output
        if done.code in _ENDED_WITH_THE_JOB and is_repeatable and not was_signalled:
            was_signalled = True
            continue
        if not problems.mentions(done.errors, problems.UNREACHABLE) or SYSTEM.now() >= deadline:
            raise problems.command_error(argv[0], done.errors or done.output, done.code)
        SYSTEM.sleep(_RETRY_INTERVAL)


def _without_foreign(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith(_FOREIGN)}


def _run_once(argv: Sequence[str], seconds: float, variables: Mapping[str, str]) -> ProgramResult:
    try:
        return run_program(argv, seconds, env=variables)
    except FileNotFoundError as error:
        raise problems.no_cluster_error(f"there is no command {argv[0]!r}") from error
    except TimeoutError as error:
        raise TransientError(f"{argv[0]}: {error}", advice="see whether Slurm answers: scontrol ping") from error
    except OSError as error:
        raise PlatformError(f"{argv[0]} cannot be started: {error.strerror or error}") from error
