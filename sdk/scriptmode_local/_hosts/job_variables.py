"""Environment variables of every host of a job on this machine, a process or a container. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode_local._store.job_record import Job


#: The user's credentials, Region and endpoints, which hosts with an environment of their own get. SageMaker gives its
#: hosts those of the role.
CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)


def with_job_variables(variables: Mapping[str, str], job: Job) -> dict[str, str]:
    """Return a host's variables with the Region, the job's name and ARN, and the grace period of a stop."""
    given = dict(variables)
    if contract.REGION_VARIABLE not in job.request.environment:
        given[contract.REGION_VARIABLE] = job.region
    given[contract.JOB_NAME_VARIABLE] = job.request.name
    given[contract.JOB_ARN_VARIABLE] = job.arn
    asked = given.get(contract.STOP_GRACE_VARIABLE, "")
    if not asked or _is_more(asked, job.stop_grace):
        given[contract.STOP_GRACE_VARIABLE] = f"{job.stop_grace:g}"
    return given


def _is_more(asked: str, granted: float) -> bool:
    """Return whether a job requests more seconds than the platform grants; `train` refuses other text."""
    try:
        return granted < float(asked) < float("inf")
    except ValueError:
        return False
