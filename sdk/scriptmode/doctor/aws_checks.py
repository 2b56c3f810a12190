"""Checks for jobs on Amazon SageMaker: credentials, Region, clock and config file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

from scriptmode.doctor.check import Check, ok, problem, problem_from_error, warning
from scriptmode.errors import DataError, PlatformError

_NEEDED = "Amazon SageMaker and s3:// URIs need them"
#: Seconds from which on AWS refuses a signature as too old or too new (IAM User Guide, "Signing AWS API requests").
_MOST_AWS_SECONDS = 5 * 60
#: Difference of clocks in seconds that rounding and a slow disk can explain.
_MOST_DISK_SECONDS = 2.0


def account(asks_service: bool) -> Iterator[Check]:  # noqa: FBT001 - `check_runner` binds it
    """Query the identity of the credentials, compare the clocks, and with ``asks_service`` list a training job."""
    from scriptmode.core.aws.s3_errors import HOW_TO_GIVE_CREDENTIALS
    from scriptmode.core.aws.session import Connection

    connection, source, response = Connection(), "", {}
    is_valid = False
    try:
        if source := connection.credentials_source:
            client = connection.brief_client("sts")
            response = connection.call("the caller's identity", client.get_caller_identity)
            is_valid = True
            yield ok(f"{response['Arn']}, from {source}")
        else:
            yield problem(f"none; {_NEEDED}", HOW_TO_GIVE_CREDENTIALS)
    except PlatformError as error:
        response = getattr(error.__cause__, "response", None) or {}
        found = f"from {source}, but {error.message}" if source else error.message
        yield problem(f"{found}; {_NEEDED}", error.advice or HOW_TO_GIVE_CREDENTIALS)
    try:
        yield ok(connection.region)
    except PlatformError as error:
        yield problem_from_error(error)
    yield _clock(_clock_offset(response))
    if asks_service and not is_valid:
        yield problem("not called: it needs valid credentials", "see credentials")
    elif asks_service:
        # The credentials must allow the call.
        client = connection.brief_client("sagemaker")
        connection.call("training jobs cannot be listed", lambda: client.list_training_jobs(MaxResults=1))
        yield ok(f"answers in {connection.region}")


def _clock_offset(response: Any) -> float | None:
    """Return the seconds by which the service's clock is ahead; ``None`` if the response has no date."""
    date = response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    with suppress(TypeError, ValueError):
        return parsedate_to_datetime(date).timestamp() - time.time()
    return None


def _clock(aws: float | None) -> Check:
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    if aws is not None and abs(aws) > _MOST_AWS_SECONDS:
        what = f"{now}, {_format_offset(aws)} AWS's clock, which refuses requests from 5 minutes on"
        return problem(what, "set the clock: timedatectl set-ntp true, or in a virtual machine the host's")
    disk = _disk_clock_offset()
    if disk is not None and abs(disk) > _MOST_DISK_SECONDS:
        what = f"{now}, {_format_offset(disk)} that of the data directory's file system; times of jobs come from both"
        return warning(what, "synchronize both clocks: timedatectl set-ntp true", prevents=False)
    known = [text for text, each in (("AWS's", aws), ("the data directory's", disk)) if each is not None]
    return ok(f"{now}" + (f", as {' and '.join(known)}" if known else ""))


def _format_offset(ahead: float) -> str:
    return f"{abs(ahead):,.0f} s {'behind' if ahead > 0 else 'ahead of'}"


def _disk_clock_offset() -> float | None:
    """Return the seconds by which the clock of the data directory's file system is ahead; ``None`` if unknown."""
    from scriptmode.core.machine.data_dir import default_data_dir

    with suppress(OSError, ImportError, DataError):
        from scriptmode.platforms.local.store import data_dir_checks

        if (folder := default_data_dir()).is_dir():
            return data_dir_checks.probe_writable(folder)
    return None


def config_file() -> Iterator[Check]:
    """Read the SageMaker config files like a job."""
    from scriptmode.core.aws import sagemaker_config
    from scriptmode.core.aws.s3 import S3

    found = sagemaker_config.read_config(os.environ, S3().read_bytes)
    role = f"role {found.role}" if found.role else "no role: give role= to the estimator"
    yield ok(f"can be read, or does not exist; it has {role}")
