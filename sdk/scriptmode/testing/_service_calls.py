"""Recorded calls, and faults that are injected into calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from scriptmode_serve._operations.aws_json import ApiError

Operation = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Call:
    """One call that reached the fake.

    Attributes:
        service: Service, such as ``logs``.
        operation: boto3's name of the method, such as ``get_log_events``.
        arguments: Arguments of the call, copied.
    """

    service: str
    operation: str
    arguments: Mapping[str, Any]


class ServiceError(ApiError):
    """An error response of a service.

    The caller gets it like from boto3: as botocore's ``ClientError``, or the service's subclass for the code.

    Args:
        code: Error code, such as ``ThrottlingException``.
        message: Message of the error.
        status: Status of the HTTP response.
    """


@dataclass
class Fault:
    """Calls of an operation that fail: ``times`` calls, after ``after`` successful ones.

    ``error`` creates the exception from the endpoint's URL. With ``answer_lost`` the operation is still executed.
    """

    operation: str
    error: Callable[[str], BaseException]
    times: int
    after: int
    service: str | None = None
    answer_lost: bool = False

    def meets(self, service: str, operation: str) -> bool:
        """Return whether a call is one that fails, and count it."""
        if operation != self.operation or self.service not in (None, service) or self.times < 1:
            return False
        if self.after > 0:
            self.after -= 1
            return False
        self.times -= 1
        return True


def deep_copy(value: Any) -> Any:
    """Copy dicts and lists, so that changes of one do not change the other; other values are not copied."""
    if isinstance(value, Mapping):
        return {key: deep_copy(content) for key, content in value.items()}
    if isinstance(value, (list, tuple)):
        return [deep_copy(content) for content in value]
    return value
