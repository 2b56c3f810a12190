"""What was called, and which calls go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable


@dataclass(frozen=True)
class Call:
    """One call that reached the fake, by boto3's name of the method (``get_log_events``)."""

    service: str
    operation: str
    arguments: Mapping[str, Any]


class ServiceError(Exception):
    """An error that a service answers with: its code, its message and the status of the HTTP response.

    The caller gets it as boto3 raises it: botocore's ``ClientError`` (of the service's class for the code, if any).
    """

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(code, message, status)
        self.code = code
        self.message = message
        self.status = status


THROTTLED = ServiceError("ThrottlingException", "Rate exceeded")


@dataclass
class Fault:
    """Calls of an operation that go wrong: after ``after`` that go well, the next ``times``.

    ``error`` makes what is raised, given the endpoint's URL. ``answer_lost``: the operation is done nevertheless.
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
    """Copy dicts and lists, so that changes of one do not change the other; anything else stays what it is."""
    if isinstance(value, Mapping):
        return {key: deep_copy(content) for key, content in value.items()}
    if isinstance(value, (list, tuple)):
        return [deep_copy(content) for content in value]
    return value
