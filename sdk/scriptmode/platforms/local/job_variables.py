"""The variables that every host of a job on this machine has, be it a process or a container. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.local.store import Job


def added(variables: Mapping[str, str], job: Job) -> dict[str, str]:
    """Give a host's variables with those that tell it Region, job and how long a stop may take."""
    given = dict(variables)
    if contract.REGION_VARIABLE not in job.request.get("Environment", {}):
        given[contract.REGION_VARIABLE] = job.region
    given[contract.JOB_NAME_VARIABLE] = str(job.request["TrainingJobName"])
    given[contract.JOB_ARN_VARIABLE] = job.arn
    # A job may ask for less than the platform grants; `train` refuses what is no number of seconds.
    granted, asked = f"{job.stop_grace:g}", given.get(contract.STOP_GRACE_VARIABLE, "")
    if not asked or (asked.isdigit() and int(asked) > job.stop_grace):
        given[contract.STOP_GRACE_VARIABLE] = granted
    return given
