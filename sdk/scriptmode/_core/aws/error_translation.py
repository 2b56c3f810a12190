"""Translation of boto3's errors to `scriptmode.errors`: transient ones, and a next step for the others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from scriptmode._core.aws.s3_errors import HOW_TO_GIVE_CREDENTIALS, advise_unreachable, credential_errors, foreign_text
from scriptmode.errors import (
    CredentialsError,
    JobExistsError,
    JobNotFoundError,
    PlatformError,
    QuotaError,
    RequestError,
    TransientError,
)

_UNAVAILABLE = (TransientError, "the service is unavailable, try again later")
_QUOTA = "use fewer or other instances, wait for a job to end, or ask AWS or the server's owner for a higher quota"
_SERVER_ERRORS = 500
_DEFAULT_STEP = "look its code up in the service's documentation, or see scriptmode doctor --platform sagemaker"
_MISSING = (JobNotFoundError, "correct the name, or the Region: scriptmode list --platform sagemaker")
#: Error class and next step by patterns of the services' error codes (Common Errors of their API references).
_CODES: dict[str, tuple[type[PlatformError], str]] = {
    "Throttl(ing|ingException|edException)|TooManyRequestsException|RequestLimitExceeded|LimitExceededException"
    "|SlowDown": (TransientError, "AWS throttles the calls, try again later"),
    "Internal(Failure|ServerError|ServerException)|ServiceUnavailable(Exception)?|RequestTimeout": _UNAVAILABLE,
    "(AccessDenied|ExpiredToken)(Exception)?|UnrecognizedClientException|InvalidClientTokenId|InvalidSignatureException"
    "|SignatureDoesNotMatch": (CredentialsError, "check the credentials and their permissions"),
    "ResourceNotFound(Exception)?|NoSuchEntity": _MISSING,
    "ResourceInUse": (JobExistsError, "give another job_name, or none"),
    "ResourceLimitExceeded": (QuotaError, _QUOTA),
    "ValidationException": (RequestError, "correct what it names in the request"),
}  # fmt: skip


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
    except credential_errors() as error:
        argument = "profile" if isinstance(error, exceptions.ProfileNotFound) else None
        what = f"{subject}: {foreign_text(error)}"
        raise CredentialsError(what, HOW_TO_GIVE_CREDENTIALS, argument=argument) from error
    except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
        what = f"{subject}: AWS could not be reached: {foreign_text(error)}"
        step = advise_unreachable(error, "check the network, and AWS_ENDPOINT_URL if it is set")
        raise TransientError(what, step) from error
    except exceptions.BotoCoreError as error:
        raise PlatformError(f"{subject}: {foreign_text(error)}", "check the AWS settings: scriptmode doctor") from error


@contextmanager
def translate_setup_errors(subject: str) -> Iterator[None]:
    """Translate errors of creating a session or a client, some of which are plain ``ValueError``s."""
    try:
        with translate_errors(subject):
            yield
    except ValueError as error:
        what = foreign_text(error)
        raise PlatformError(f"{subject}: {what}", "correct the AWS settings (AWS_ENDPOINT_URL, Region)") from error


def translate_client_error(subject: str, response: Mapping[str, Mapping[str, object]]) -> PlatformError:
    """Return the error for the response of a ClientError."""
    answer = response.get("Error", {})
    code, message = str(answer.get("Code", "")), str(answer.get("Message", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    is_server_error = isinstance(status, int) and status >= _SERVER_ERRORS
    other = _UNAVAILABLE if is_server_error else (PlatformError, _DEFAULT_STEP)
    kind, step = next((found for codes, found in _CODES.items() if re.fullmatch(codes, code)), other)
    if kind is RequestError and re.search(r"not (find|found)", message):
        kind, step = _MISSING
    return kind(f"{subject}: {message} ({code})", advice=step)
