"""Translation of boto3's errors to `scriptmode.errors`: transient ones, and a next step for the others."""

from __future__ import annotations

import re
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scriptmode._core.aws.s3_errors import HOW_TO_GIVE_CREDENTIALS, credential_errors, foreign_text
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import (
    CredentialsError,
    JobExistsError,
    JobNotFoundError,
    PlatformError,
    QuotaError,
    RequestError,
    TransientError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_THROTTLED = "AWS throttles the calls, try again later"
_UNAVAILABLE = "the service is unavailable, try again later"
_DENIED = "check the credentials and their permissions"
_QUOTA = "use fewer or other instances, wait for a job to end, or ask AWS or the server's owner for a higher quota"
_SERVER_ERRORS = 500
_DEFAULT_STEP = "look its code up in the service's documentation, or see scriptmode doctor --platform sagemaker"
_STEPS: dict[type[PlatformError], str] = {
    JobNotFoundError: "correct the name, or the Region: scriptmode list --platform sagemaker",
    RequestError: "correct what it names in the request",
}
#: The services' error codes (Common Errors of their API references).
_THROTTLED_CODES = (
    "ThrottlingException", "Throttling", "ThrottledException", "TooManyRequestsException", "RequestLimitExceeded",
    "LimitExceededException", "SlowDown",
)  # fmt: skip
_UNAVAILABLE_CODES = (
    "InternalFailure", "InternalServerError", "InternalServerException", "ServiceUnavailable",
    "ServiceUnavailableException", "RequestTimeout",
)  # fmt: skip
_DENIED_CODES = (
    "AccessDenied", "AccessDeniedException", "ExpiredToken", "ExpiredTokenException", "UnrecognizedClientException",
    "InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch",
)  # fmt: skip
#: Error class and next step by them.
_CODES: dict[str, tuple[type[PlatformError], str]] = {
    **dict.fromkeys(_THROTTLED_CODES, (TransientError, _THROTTLED)),
    **dict.fromkeys(_UNAVAILABLE_CODES, (TransientError, _UNAVAILABLE)),
    **dict.fromkeys(_DENIED_CODES, (CredentialsError, _DENIED)),
    **dict.fromkeys(("ResourceNotFound", "ResourceNotFoundException", "NoSuchEntity"), (JobNotFoundError, "")),
    "ResourceInUse": (JobExistsError, "give another job_name, or none"),
    "ResourceLimitExceeded": (QuotaError, _QUOTA),
    "ValidationException": (RequestError, ""),
}


@contextmanager
def translate_errors(subject: str) -> Iterator[None]:
    """Translate boto3's errors into `scriptmode.errors`; ``subject`` is what the call was about."""
    from botocore import exceptions

    try:
        yield
    except exceptions.ClientError as error:
        raise translate_client_error(subject, error.response) from error
    except exceptions.ParamValidationError as error:
        raise RequestError(f"{subject}: {foreign_text(error)}", "correct the request") from error
    except exceptions.ProfileNotFound as error:
        raise _profile_error(str(error.kwargs.get("profile"))) from error
    except credential_errors() as error:
        raise CredentialsError(f"{subject}: {foreign_text(error)}", HOW_TO_GIVE_CREDENTIALS) from error
    except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
        what = f"{subject}: AWS could not be reached: {foreign_text(error)}"
        raise TransientError(what, "check the network, and AWS_ENDPOINT_URL if it is set") from error
    except exceptions.BotoCoreError as error:
        raise PlatformError(f"{subject}: {foreign_text(error)}", "check the AWS settings: scriptmode doctor") from error


def _profile_error(name: str) -> CredentialsError:
    from botocore.session import Session

    known = Session().available_profiles
    step = did_you_mean(name, known) or "write its name as aws configure list-profiles shows it"
    if not known:
        step = f"make one: aws configure --profile {shlex.quote(name)}"
    return CredentialsError(f"the AWS configuration has no profile {name!r}", step, argument="profile")


@contextmanager
def translate_setup_errors(subject: str) -> Iterator[None]:
    """Translate errors of creating a session or a client, some of which are plain ``ValueError``s."""
    try:
        with translate_errors(subject):
            yield
    except PlatformError:
        raise
    except ValueError as error:
        what = foreign_text(error)
        raise PlatformError(f"{subject}: {what}", "correct the AWS settings (AWS_ENDPOINT_URL, Region)") from error


def translate_client_error(subject: str, response: Mapping[str, Mapping[str, object]]) -> PlatformError:
    """Return the error for the response of a ClientError."""
    answer = response.get("Error", {})
    code, message = str(answer.get("Code", "")), str(answer.get("Message", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    kind, next_step = _CODES.get(code, (PlatformError, ""))
    if kind is RequestError and re.search(r"not (find|found)", message):
        kind = JobNotFoundError
    if kind is PlatformError and isinstance(status, int) and status >= _SERVER_ERRORS:
        kind, next_step = TransientError, _UNAVAILABLE
    return kind(f"{subject}: {message} ({code})", advice=next_step or _STEPS.get(kind, _DEFAULT_STEP))
