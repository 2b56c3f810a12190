"""What botocore raises of Amazon S3, translated into `scriptmode.errors`; and which of it may pass when retried."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable
from urllib.parse import urlsplit

from scriptmode._core.aws.direct_endpoints import is_loopback
from scriptmode.errors import CredentialsError, DataAccessError, DataError, DataNotFoundError, PlatformError

HOW_TO_GIVE_CREDENTIALS = (
    "run 'aws configure', set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile in AWS_PROFILE"
)
#: Class, sentence and next step by patterns of S3's codes (Error responses, S3 API); HEAD has statuses alone.
_CODES: dict[str, tuple[type[PlatformError], str, str]] = {
    "InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken(Exception)?|InvalidToken": (
        CredentialsError, "S3 does not accept the credentials ({code}: {message})", HOW_TO_GIVE_CREDENTIALS
    ),
    "NoSuchBucket": (DataNotFoundError, "there is no bucket {bucket!r}", "create it, or correct the URI"),
    "404|NoSuchKey|NotFound": (DataNotFoundError, "there is no such object", "correct the URI"),
    "403|AccessDenied|Forbidden|AllAccessDisabled": (
        DataAccessError, "access denied ({message})", "the credentials in use must be allowed to use this place"
    ),
    ".*": (DataError, "S3 answered {code}: {message}", "look the code up in S3's documentation, under error responses"),
}  # fmt: skip
#: What may be gone the next time (Error responses, S3 API).
_TRANSIENT_CODES = frozenset({"SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "Throttling"})
_TRANSIENT_STATUSES = frozenset({429, 500, 502, 503, 504})
_UNREACHABLE = "check the network and AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3 and AWS_REGION"
NOT_S3 = "check that AWS_ENDPOINT_URL names an S3 endpoint, and that no proxy answers in its place"
_RETRY = "retry, and check the network to that endpoint if it happens again"


def foreign_text(error: BaseException) -> str:
    """Return another library's message as a part of a sentence: one line, without the full stop at its end."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def code_of(error: BaseException) -> str:
    """Return the code of S3's error response that made an error of this module; "" where S3 did not answer."""
    return str(_answer(error).get("Error", {}).get("Code", ""))


def is_transient(error: BaseException) -> bool:
    """Return whether what failed may succeed when it is retried: a throttle, a broken connection, a time-out."""
    from botocore import exceptions

    cause = error.__cause__
    if isinstance(cause, exceptions.ClientError):
        status = _answer(error).get("ResponseMetadata", {}).get("HTTPStatusCode")
        return status in _TRANSIENT_STATUSES or code_of(error) in _TRANSIENT_CODES
    return isinstance(cause, (exceptions.ConnectionError, OSError, *_broken_errors()))


def _answer(error: BaseException) -> dict[str, Any]:
    # Errors of botocore's HTTP client have a response as well: None where no answer came.
    return getattr(error.__cause__, "response", None) or {}


def credential_errors() -> tuple[type[Exception], ...]:
    """Return the classes that botocore raises for want of credentials."""
    from botocore import exceptions

    return (
        exceptions.NoCredentialsError, exceptions.PartialCredentialsError, exceptions.CredentialRetrievalError,
        exceptions.ProfileNotFound, exceptions.SSOError, exceptions.TokenRetrievalError,
    )  # fmt: skip


def _broken_errors() -> tuple[type[Exception], ...]:
    """Return the classes raised for a connection that was open and broke, and for bytes that broke on their way."""
    from botocore import exceptions
    from urllib3.exceptions import HTTPError

    # botocore lets some of urllib3's errors through while a body is read: a damaged TLS record, for one.
    return (exceptions.HTTPClientError, exceptions.IncompleteReadError, exceptions.FlexibleChecksumError, HTTPError)


def is_unreachable(error: BaseException) -> bool:
    """Return whether an error is that nothing accepts connections at the endpoint, or that its name is unknown."""
    from botocore.exceptions import EndpointConnectionError

    return isinstance(error.__cause__, EndpointConnectionError)


def advise_unreachable(error: Exception, otherwise: str) -> str:
    """Return the next step after an error of a connection: ``otherwise``, unless it is to a server of this machine."""
    from botocore.exceptions import EndpointConnectionError

    if isinstance(error, EndpointConnectionError) and is_loopback(error.kwargs["endpoint_url"]):
        return "nothing listens there: start its server again, or change AWS_ENDPOINT_URL"
    return otherwise


@contextmanager
def translate_s3_errors(uri: str, endpoint: Callable[[], str] = str) -> Iterator[None]:
    """Raise what boto3 raises as `scriptmode.errors` that name ``uri``; ``endpoint`` returns the client's URL."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError, *_broken_errors()) as error:
        raise _translation(uri, error, endpoint()) from error


def _translation(uri: str, error: Exception, endpoint: str) -> PlatformError:
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        return _service_translation(uri, error)
    if isinstance(error, credential_errors()):
        return CredentialsError(f"{uri}: {foreign_text(error)}", HOW_TO_GIVE_CREDENTIALS)
    where, advice = f"the S3 endpoint{_named(error, endpoint)}", "check the AWS settings: scriptmode doctor"
    what = foreign_text(error)
    if isinstance(error, exceptions.ConnectionError):
        what, advice = f"{where} cannot be reached: {what}", advise_unreachable(error, _UNREACHABLE)
    elif isinstance(error, exceptions.FlexibleChecksumError):
        what, advice = f"the bytes that came are not the object's: {what}", _RETRY
    elif isinstance(error, _broken_errors()):
        what, advice = f"the connection to {where} broke: {what}", _RETRY
    elif isinstance(error, exceptions.ParamValidationError):
        advice = "correct the URI"
    return DataError(f"{uri}: {what}", advice)


def _named(error: Exception, endpoint: str) -> str:
    """Return the address of the endpoint with a space before it, "" where it is not known."""
    url = str(getattr(error, "kwargs", {}).get("endpoint_url") or endpoint)
    parts = urlsplit(url)
    return f" {parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _service_translation(uri: str, error: Any) -> PlatformError:
    answer = error.response.get("Error", {})
    code, message = str(answer.get("Code", "")), str(answer.get("Message", ""))
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    if code == "500" and "xml" not in (headers.get("content-type") or "xml"):
        # botocore also makes 500 of a status 200 whose body is not XML (handlers.py, ``_handle_200_error``).
        return DataError(f"{uri}: S3's answer is {headers['content-type']} where XML was expected", NOT_S3)
    kind, text, step = next(row for codes, row in _CODES.items() if re.fullmatch(codes, code, re.DOTALL))
    return kind(f"{uri}: {text.format(code=code, message=message or code, bucket=urlsplit(uri).netloc)}", step)
