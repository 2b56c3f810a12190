"""The secret that the hosts of one training job share to authenticate each other's messages. Pure, except random."""

from __future__ import annotations

import os

from scriptmode._core.request.fields import changed
from scriptmode._core.spec.job_request import JobRequest
from scriptmode_runtime.contract import DISTRIBUTION_SWITCHES, SECRET_VARIABLE, enabled

#: Entries of ``Environment`` that the service takes (TrainingEnvironmentMap).
_MOST_VARIABLES = 100


def with_host_secret(job: JobRequest) -> JobRequest:
    """Return the request with a new secret in its ``Environment``, where several hosts train together and have none.

    Amazon SageMaker gives hosts nothing that others do not know. Every caller that may describe the job can read the
    variable; a process that only reaches the hosts' ports may not. The runtime keeps it from the script. A job with as
    many variables as the service takes goes without: with one more it would be refused.
    """
    together = any(enabled(job.parameter(switch)) for switch in DISTRIBUTION_SWITCHES) and job.resources.count > 1
    if not together or SECRET_VARIABLE in job.environment or len(job.environment) >= _MOST_VARIABLES:
        return job
    return changed(job, environment={**job.environment, SECRET_VARIABLE: os.urandom(32).hex()})
