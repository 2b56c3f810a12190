"""Checks for jobs on Amazon SageMaker: credentials, Region, clock, config file and image look-up."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from importlib import util
from typing import TYPE_CHECKING, Any

from scriptmode.doctor.check import Check, ok, problem, problem_from_error, warning
from scriptmode.errors import DataError, PlatformError, SpecError
from scriptmode.messages import install_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode.aws.session import Connection

CREDENTIALS, REGION, CLOCK, CONFIG_FILE = "credentials", "Region", "clock", "config file"
IMAGES, SAGEMAKER = "image look-up", "Amazon SageMaker"
_UNASKED = ("not called: it needs valid credentials", "see credentials")
_NEEDED = "Amazon SageMaker and s3:// URIs need them"
#: Seconds from which on AWS refuses a signature as too old or too new (IAM User Guide, "Signing AWS API requests").
_MOST_AWS_SECONDS = 5 * 60
#: Difference of clocks in seconds that rounding and a slow disk can explain.
_MOST_DISK_SECONDS = 2.0


@dataclass(frozen=True)
class _Caller:
    """The identity of the credentials: ``source`` is "" without any, ``ahead`` the offset of AWS's clock."""

    source: str = ""
    identity: str = ""
    error: PlatformError | None = None
    ahead: float | None = None


def account(asks_service: bool) -> Iterator[Check]:  # noqa: FBT001 - `examination` binds it
    """Query the identity of the credentials, compare the clocks, and with ``asks_service`` call Amazon SageMaker."""
    from scriptmode.aws.session import Connection

    connection = Connection()
    caller = _caller(connection)
    yield _credentials(caller)
    try:
        yield ok(REGION, connection.region)
    except PlatformError as error:
        yield problem_from_error(REGION, error)
    yield _clock(caller)
    if asks_service:
        yield _service(connection) if caller.identity else problem(SAGEMAKER, *_UNASKED)


def _service(connection: Connection) -> Check:
    """Check whether the service answers and the credentials may list training jobs."""
    try:
        client = connection.brief_client("sagemaker")
        connection.call("training jobs cannot be listed", lambda: client.list_training_jobs(MaxResults=1))
    except PlatformError as error:
        return problem_from_error(SAGEMAKER, error)
    return ok(SAGEMAKER, f"answers in {connection.region}")


def _caller(connection: Connection) -> _Caller:
    source = ""
    try:
        source = connection.credentials_source
        if not source:
            return _Caller()
        client = connection.brief_client("sts")
        answer = connection.call("the caller's identity", client.get_caller_identity)
    except PlatformError as error:
        response = getattr(error.__cause__, "response", None) or {}
        return _Caller(source, error=error, ahead=_clock_offset(response))
    return _Caller(source, str(answer["Arn"]), ahead=_clock_offset(answer))


def _clock_offset(response: Any) -> float | None:
    """Return the seconds by which the service's clock is ahead; ``None`` if the response has no date."""
    date = response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    with suppress(TypeError, ValueError):
        return parsedate_to_datetime(date).timestamp() - time.time()
    return None


def _credentials(caller: _Caller) -> Check:
    from scriptmode.aws.s3_errors import HOW_TO_GIVE_CREDENTIALS

    if caller.error is not None:
        found = problem_from_error(CREDENTIALS, caller.error)
        whence = f"from {caller.source}, but " if caller.source else ""
        return problem(CREDENTIALS, f"{whence}{found.found}; {_NEEDED}", found.advice)
    if not caller.source:
        return problem(CREDENTIALS, f"none; {_NEEDED}", HOW_TO_GIVE_CREDENTIALS)
    return ok(CREDENTIALS, f"{caller.identity}, from {caller.source}")


def _clock(caller: _Caller) -> Check:
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    if caller.ahead is not None and abs(caller.ahead) > _MOST_AWS_SECONDS:
        what = f"{now}, {_format_offset(caller.ahead)} AWS's clock, which refuses requests from 5 minutes on"
        return problem(CLOCK, what, "set the clock: timedatectl set-ntp true, or in a virtual machine the host's")
    disk = _disk_clock_offset()
    if disk is not None and abs(disk) > _MOST_DISK_SECONDS:
        what = f"{now}, {_format_offset(disk)} that of the data directory's file system; times of jobs come from both"
        return warning(CLOCK, what, "synchronize both clocks: timedatectl set-ntp true")
    known = [text for text, each in (("AWS's", caller.ahead), ("the data directory's", disk)) if each is not None]
    return ok(CLOCK, f"{now}" + (f", as {' and '.join(known)}" if known else ""))


def _format_offset(ahead: float) -> str:
    return f"{abs(ahead):,.0f} s {'behind' if ahead > 0 else 'ahead of'}"


def _disk_clock_offset() -> float | None:
    """Return the seconds by which the clock of the data directory's file system is ahead; ``None`` if unknown."""
    from scriptmode.data_dir import default_data_dir

    with suppress(OSError, ImportError, DataError):
        from scriptmode.platforms.local.store import probe

        if (folder := default_data_dir()).is_dir():
            return probe.probe_writable(folder)
    return None


def config_file() -> Iterator[Check]:
    """Read the SageMaker config files like a job."""
    from scriptmode.aws import config
    from scriptmode.aws.s3 import S3

    try:
        found = config.read_config(os.environ, S3().read_bytes)
    except (SpecError, PlatformError) as error:
        yield problem_from_error(CONFIG_FILE, error)
        return
    role = f"role {found.role}" if found.role else "no role: give role= to the estimator"
    yield ok(CONFIG_FILE, f"can be read, or does not exist; it has {role}")


def images() -> Iterator[Check]:
    """Check whether AWS's images can be looked up by version."""
    for package in ("sagemaker", "sagemaker_core"):
        if util.find_spec(package) is not None:
            yield ok(IMAGES, f"framework_version is looked up through {package}")
            return
    what = "framework_version cannot be looked up without the sagemaker package; image_uri needs nothing"
    yield warning(IMAGES, what, f"{install_command('sagemaker')}, or give image_uri")
