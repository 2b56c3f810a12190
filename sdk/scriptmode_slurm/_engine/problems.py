"""Failures of Slurm's commands, and reasons for which jobs are pending, in Slurm's own words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from scriptmode._core.machine.data_dir import DATA_DIR_VARIABLE
from scriptmode._core.text.messages import Problem
from scriptmode.errors import PlatformError, TransientError

#: Texts of a command that reached no slurmctld, so that nothing happened and it may be repeated.
UNREACHABLE = ("Unable to contact slurm controller", "Connection refused", "connect failure")
#: ... and of one whose call may have had an effect.
_UNCERTAIN = ("Socket timed out", "Zero Bytes were transmitted", "Slurm backup controller in standby mode")
#: ... about a job that slurmctld does not know any more.
UNKNOWN_JOB = ("Invalid job id", "Job/step already completing or completed")
#: ... on a machine of no cluster.
_NO_CLUSTER = ("Could not establish a configuration source", "Unable to open slurm.conf")
#: ... of a cluster that records no ended jobs.
NO_ACCOUNTING = ("accounting storage is disabled", "Problem talking to the database")
#: The "signal" of a batch script that a node could not start, which no system has.
_LAUNCH_FAILURE = 53
_LINES = 3
#: Reasons of a pending job that never pass (squeue(1), "JOB REASON CODES") ...
_FINAL = frozenset({
    "DependencyNeverSatisfied", "InvalidAccount", "InvalidQOS", "JobHoldMaxRequeue", "PartitionTimeLimit",
    "QOSNotAllowed", "QOSTimeLimit", "ReservationDeleted", "launch_failed_requeued_held",
})  # fmt: skip
#: ... and those that Slurm also has until its nodes registered, within seconds after its start.
_FINAL_AFTER_A_MINUTE = ("BadConstraints", "PartitionConfig")
_MINUTE = 60.0
#: Limits of one job never pass; limits of a group of jobs pass when others of them end.
_OF_ONE_JOB = ("PerJob", "QOSMin", "WallDuration")


def mentions(text: str, phrases: Iterable[str]) -> bool:
    """Return whether the output of a command has one of the phrases."""
    return any(phrase in text for phrase in phrases)


def pending_problem(reason: str, job_id: int, seconds: float = 0.0) -> Problem | None:
    """Return the problem of a job that is pending for a reason that never passes; ``None`` for one that may pass.

    ``seconds`` is the time for which the reason has been seen.
    """
    code = reason.partition(",")[0].strip()
    is_limit = code.startswith(("Assoc", "QOS")) and mentions(code, _OF_ONE_JOB)
    if code in _FINAL or is_limit or (code in _FINAL_AFTER_A_MINUTE and seconds >= _MINUTE):
        advice = f"ask for what the cluster allows: scontrol show job {job_id}, and squeue(1), JOB REASON CODES"
        return Problem(f"Slurm never starts job {job_id} ({reason})", advice)
    return None


def is_launch_failure(reason: str, signal: int) -> bool:
    """Return whether a job failed because a node could not start its batch script; the accounting has the signal.

    Slurm gives the same reason for a batch script that a signal killed.
    """
    return signal == _LAUNCH_FAILURE or (reason == "JobLaunchFailure" and not signal)


def describe_launch_failure(job_id: int, nodes: str) -> str:
    """Return why a node cannot start a batch script: most often, it does not have the directory of the job."""
    return (
        f"Slurm job {job_id} could not be started on {nodes or 'its node'} (JobLaunchFailure): most likely the node "
        "does not have the job's folder, which must be on a file system that all nodes share; name a data directory "
        f"there ({DATA_DIR_VARIABLE}), and test it: scriptmode doctor --platform slurm"
    )


def no_cluster_error(why: str) -> PlatformError:
    """Return the error for a machine that has no cluster."""
    advice = "use a login node, with Slurm's commands on PATH and the slurm.conf of the cluster"
    what = f"{why}: this machine is not a login node of a Slurm cluster"
    return PlatformError(what, advice, argument="instance_type")


def command_error(program: str, text: str, code: int) -> PlatformError:
    """Return the error for a command that failed, in its words."""
    lines = [line.strip().removeprefix(f"{program}: ").removeprefix("error: ") for line in text.strip().splitlines()]
    shown = ": ".join(lines[-_LINES:]) or f"exit code {code}"
    if mentions(text, _NO_CLUSTER):
        return no_cluster_error(f"{program} finds no slurm.conf")
    if mentions(text, (*UNREACHABLE, *_UNCERTAIN)):
        return TransientError(f"{program}: {shown}", advice="see whether slurmctld runs: scontrol ping; then try again")
    return PlatformError(f"{program}: {shown}", advice="see whether Slurm accepts the same command in a shell")
