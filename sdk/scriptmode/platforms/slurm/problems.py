"""Failures of Slurm's commands, and reasons for which jobs are pending, as messages with the next step. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from scriptmode.core.machine.data_dir import DATA_DIR_VARIABLE
from scriptmode.core.text.messages import Problem
from scriptmode.errors import PlatformError, TransientError

#: Text of a command that has no slurm.conf.
_NO_CONFIGURATION = ("establish a configuration source", "fetch_config")
#: Text of a command that reached no slurmctld, so that nothing happened and it may be repeated.
_UNREACHABLE = ("Unable to contact slurm controller", "Connection refused", "connect failure")
#: ... and of one whose call may have had an effect.
_UNCERTAIN = ("Socket timed out", "Zero Bytes were transmitted", "Slurm backup controller in standby mode")
#: The "signal" of a batch script that a node could not start, which no system has.
_LAUNCH_FAILURE = 53
_UNKNOWN_JOB = ("Invalid job id", "Job/step already completing or completed")
_NO_ACCOUNTING = ("accounting storage is disabled", "Problem talking to the database")
#: What ``sbatch --test-only`` refuses, although the job would start some time.
_PASSING = ("Required node not available", "Required partition not available", "Job dependency")
_LINES = 3
#: The beginning of a refusal of ``sbatch --test-only``.
_TEST = "allocation failure: "
#: srun's own line about the end of a command, whose errors say more.
_ENDED = re.compile(r": task \d+: Exited with exit code \d+$")
_LIMITS = "see your limits: sacctmgr show assoc user=$USER, sacctmgr show qos"


class PendingReason(NamedTuple):
    """Why a job is pending: whether that passes; if it does not, the next step and the argument that is wrong.

    ``stays`` are the seconds for which a reason that does not pass must be seen: Slurm also has it for a moment while
    it starts, or while nodes are not up.
    """

    text: str
    advice: str = ""
    passes: bool = True
    argument: str = ""
    stays: float = 0.0


#: Nodes register with slurmctld within seconds after its start.
_SETTLING_SECONDS = 60.0
#: The reason of a job that needs more nodes than its partition has, or than are up at the moment.
NODE_LIMIT = "PartitionNodeLimit"
_OTHER_PARTITION = "use another partition: sinfo -o '%P %l %D'"


def _never_passes(text: str, advice: str, argument: str = "", stays: float = 0.0) -> PendingReason:
    return PendingReason(text, advice, passes=False, argument=argument, stays=stays)


#: Reasons of squeue(1), "Job reason codes": those that need an explanation, or that never pass.
PENDING_REASONS = {
    "Resources": PendingReason("waiting for free nodes"),
    "Priority": PendingReason("other jobs of the partition have a higher priority"),
    "Dependency": PendingReason("waiting for the jobs that it depends on"),
    "BeginTime": PendingReason("its begin time has not come"),
    "Licenses": PendingReason("waiting for a license"),
    "Reservation": PendingReason("waiting for its reservation"),
    "JobHeldUser": PendingReason("it is held by its user; scontrol release lets it start"),
    "JobHeldAdmin": PendingReason("it is held by an administrator of the cluster"),
    "ReqNodeNotAvail": PendingReason("nodes that it needs are down or reserved; see sinfo -R"),
    "NodeDown": PendingReason("a node that it needs is down; see sinfo -R"),
    "PartitionDown": PendingReason("the partition is down"),
    "PartitionInactive": PendingReason("the partition is inactive"),
    "QOSResourceLimit": PendingReason("the QOS has reached a limit"),
    "PartitionTimeLimit": _never_passes(
        "its time limit is longer than the partition allows", f"give a shorter max_run, or {_OTHER_PARTITION}",
        "max_run"),
    NODE_LIMIT: _never_passes(
        "it needs more nodes than the partition allows, has, or has up", f"use fewer hosts, or {_OTHER_PARTITION}",
        "instance_count", _SETTLING_SECONDS),
    "PartitionConfig": _never_passes(
        "the partition cannot run what it asks for", _OTHER_PARTITION, "partition", _SETTLING_SECONDS),
    "BadConstraints": _never_passes(
        "no nodes meet its constraints", "ask for features and resources that nodes have: sinfo -o '%P %D %c %m %G %f'",
        "constraint", _SETTLING_SECONDS),
    "DependencyNeverSatisfied": _never_passes(
        "a job that it depends on did not end as it requires", "give another dependency, or leave it out",
        "dependency"),
    "InvalidAccount": _never_passes("its account is not valid", _LIMITS, "account"),
    "InvalidQOS": _never_passes("its QOS is not valid", _LIMITS, "qos"),
    "QOSNotAllowed": _never_passes("the QOS is not allowed here", _LIMITS, "qos"),
    "QOSTimeLimit": _never_passes("its time limit is longer than the QOS allows", "give a shorter max_run", "max_run"),
    "ReservationDeleted": _never_passes("its reservation was deleted", "leave reservation out", "reservation"),
    "JobHoldMaxRequeue": _never_passes(
        "it was requeued too often and is held", "see why: scontrol show job {job_id}"),
    "launch_failed_requeued_held": _never_passes(
        "its batch script could not be started on a node, and it is held", "see the log of slurmd there"),
}  # fmt: skip
#: Limits of one job never pass; limits of a group of jobs pass when others of them end.
_OF_ONE_JOB = ("PerJob", "QOSMin", "WallDuration")


def explain_pending(reason: str) -> PendingReason:
    """Return what a reason of a pending job means."""
    code = reason.partition(",")[0].strip()
    if code in PENDING_REASONS:
        return PENDING_REASONS[code]
    if code.startswith(("Assoc", "QOS")) and any(part in code for part in _OF_ONE_JOB):
        return _never_passes(f"a limit of one job does not allow it ({code})", f"ask for less; {_LIMITS}")
    if code.startswith(("AssocGrp", "QOSGrp", "AssocMax", "QOSMax")):
        return PendingReason(f"a limit of your account is reached ({code}); see sacctmgr show assoc user=$USER")
    return PendingReason(code)


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


def is_unreachable(text: str) -> bool:
    """Return whether a command reached no slurmctld, so that it had no effect."""
    return any(each in text for each in _UNREACHABLE)


def is_unknown_job(text: str) -> bool:
    """Return whether a command failed because slurmctld does not know the job any more."""
    return any(each in text for each in _UNKNOWN_JOB)


def has_no_accounting(text: str) -> bool:
    """Return whether a command failed because the cluster records no ended jobs."""
    return any(each in text for each in _NO_ACCOUNTING)


def passes(text: str) -> bool:
    """Return whether what ``sbatch --test-only`` refused passes by itself."""
    return any(each in text for each in _PASSING)


def missing_command_error(program: str) -> PlatformError:
    """Return the error for a machine without Slurm's commands."""
    return PlatformError(
        f"there is no command {program!r}: this machine is not a login node of a Slurm cluster",
        argument="instance_type",
        advice="use a login node, with Slurm's commands on PATH",
    )


def command_error(program: str, text: str, code: int) -> PlatformError:
    """Return the error for a command that failed, in its words."""
    if any(each in text for each in _NO_CONFIGURATION):
        return PlatformError(
            f"{program} finds no configuration of Slurm on this machine",
            argument="instance_type",
            advice="use a login node, or set SLURM_CONF to the path of slurm.conf",
        )
    lines = [
        line.strip().removeprefix(f"{program}: ").removeprefix("error: ").removeprefix(_TEST)
        for line in text.strip().splitlines()
    ]
    lines = [line for line in lines if not _ENDED.search(line)] or lines
    shown = ": ".join(lines[-_LINES:]) or f"exit code {code}"
    if any(each in text for each in (*_UNREACHABLE, *_UNCERTAIN)):
        return TransientError(f"{program}: {shown}", advice="see whether slurmctld runs: scontrol ping; then try again")
    return PlatformError(f"{program}: {shown}", advice="see whether Slurm accepts the same command in a shell")


def pending_problem(reason: str, job_id: int, seconds: float = 0.0) -> Problem | None:
    """Return the problem of a job that is pending for a reason that never passes; ``None`` for one that may pass.

    ``seconds`` is the time for which the reason has been seen.
    """
    found = explain_pending(reason)
    if found.passes or seconds < found.stays:
        return None
    text = f"Slurm never starts job {job_id} ({reason}): {found.text}"
    return Problem(text, found.advice.format(job_id=job_id), found.argument)
