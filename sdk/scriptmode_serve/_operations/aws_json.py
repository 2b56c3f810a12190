"""AWS JSON 1.1: the operation is in a header, the body is the shape, a time is seconds since the epoch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, Callable

#: What a service does with the arguments of a request: it returns the answer.
Operation = Callable[[Mapping[str, Any]], Mapping[str, Any]]
CONTENT_TYPE = "application/x-amz-json-1.1"


class ApiError(Exception):
    """An error that a client gets, with AWS's code."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        self.code = code
        self.message = message
        self.status = status
        # All of them, for `copy` and `pickle` create the error from these.
        super().__init__(code, message, status)

    def __str__(self) -> str:
        """Return the code and the message."""
        return f"{self.code}: {self.message}"


class NotServedError(ApiError):
    """The error of a request for something that AWS has, and the services of this project do not."""

    def __init__(self, message: str, code: str = "ValidationError") -> None:
        super().__init__(code, message)


def validation_error(message: str) -> ApiError:
    """Return the error of a request that the service does not accept."""
    return ApiError("ValidationException", message)


def not_found_error() -> ApiError:
    """Return the error of a name that no job has, as SageMaker words it."""
    return validation_error("Requested resource not found.")


def parse_request(body: bytes) -> dict[str, Any]:
    """Parse the body of a request; raise `ApiError` for anything but a JSON object."""
    try:
        content = json.loads(body.decode() or "{}", parse_constant=_refuse_constant)
        if b"\\u" in body:
            # A path of this machine may have bytes that are not UTF-8; the service's model refuses them elsewhere.
            json.dumps(content, ensure_ascii=False).encode(errors="surrogateescape")
    except (ValueError, RecursionError) as error:
        raise ApiError("SerializationException", f"The body is not a JSON object: {error}") from error
    if not isinstance(content, dict):
        raise ApiError("SerializationException", "The body is not a JSON object.")
    return content


def render(content: object) -> bytes:
    """Render an answer."""
    return json.dumps(content, separators=(",", ":"), default=_encode).encode()


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def to_seconds(moment: datetime | float) -> float:
    """Return a time as answers have it: in seconds since the epoch, to the millisecond."""
    return round(moment.timestamp() if isinstance(moment, datetime) else moment, 3)


def _encode(value: Any) -> Any:
    return to_seconds(value) if isinstance(value, datetime) else asdict(value)
