"""The platform that has a job: this machine, else Amazon SageMaker."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from scriptmode._core.platforms.registry import Platform, explicit_platform, local_platform, session_platform
from scriptmode.errors import CredentialsError, JobNotFoundError, PlatformError, SpecError


def find_job_platform(job_name: str, session: object = None, given: Platform | str | None = None) -> Platform:
    """Return the platform that has a training job: this machine, else Amazon SageMaker; raise `JobNotFoundError`.

    With a ``session``, as `for_instance_types` takes it, Amazon SageMaker alone is asked, or this machine alone; with
    the platform that is ``given`` that one alone. Raises `SpecError` for both, and for a wrong name.
    """
    return _find_platform(job_name, session, given, "training", lambda platform: platform.describe(job_name))


def find_tuning_platform(name: str, session: object = None, given: Platform | str | None = None) -> Platform:
    """Return the platform that has a tuning job, as `find_job_platform` does for a training job."""
    return _find_platform(name, session, given, "tuning", lambda platform: platform.tuning.describe(name))


def _find_platform(
    name: object, session: object, given: Platform | str | None, kind: str, describe: Callable[[Platform], object]
) -> Platform:
    if not isinstance(name, str) or not name:
        what = f"the {kind} job's name is {name!r}"
        raise SpecError(what, f"give a {kind} job's name", argument=f"{kind}_job_name")
    platform = explicit_platform(given, session, f"the {kind} job is") or session_platform(session)
    if given is not None or session is not None or not sys.platform.startswith("linux"):
        describe(platform)
        return platform
    here = local_platform()
    try:
        describe(here)
    except JobNotFoundError as not_here:
        try:
            describe(platform)
        except PlatformError as error:
            error_type = JobNotFoundError if isinstance(error, CredentialsError) else type(error)
            # What boto3's settings select.
            url = os.environ.get("AWS_ENDPOINT_URL_SAGEMAKER") or os.environ.get("AWS_ENDPOINT_URL")
            answer = f"the service at {url}: {error}" if url else f"Amazon SageMaker: {error}"
            if error.argument == "region" or type(error.__cause__).__name__ == "NoCredentialsError":
                unset = "AWS region is" if error.argument == "region" else "AWS credentials are"
                answer = f"Amazon SageMaker was not asked, because no {unset} set"
            raise error_type(f"{not_here.message} ({answer})", not_here.advice) from error
        return platform
    return here
