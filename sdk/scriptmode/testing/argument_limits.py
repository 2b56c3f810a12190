"""Validation that a service does and boto3 does not: enumerations and upper bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.testing import botocore_models
from scriptmode.testing.service_calls import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Error codes of the services for invalid arguments.
_CODES = {"cloudwatch": "ValidationError", "logs": "InvalidParameterException"}
_NUMBERS = ("integer", "long")


def check_arguments(service: str, operation: str, arguments: Mapping[str, Any]) -> None:
    """Raise the service's error for arguments that its model does not allow."""
    shape = botocore_models.operation_model(service, operation).input_shape
    found = [text for name, value in arguments.items() for text in _problems(name, shape.members[name], value)]
    if found:
        raise validation_error(found, _CODES.get(service, "ValidationException"))


def validation_error(found: list[str], code: str = "ValidationException") -> ServiceError:
    """Return the error with all problems of one call."""
    errors = "1 validation error" if len(found) == 1 else f"{len(found)} validation errors"
    return ServiceError(code, f"{errors} detected: {'; '.join(found)}")


def _problems(name: str, shape: Any, value: Any) -> Iterator[str]:
    failed = f"Value '{value}' at '{name[0].lower()}{name[1:]}' failed to satisfy constraint: Member must"
    known = getattr(shape, "enum", None)
    if known and value not in known:
        yield f"{failed} satisfy enum value set: [{', '.join(known)}]"
    most = shape.metadata.get("max")
    if most is not None and shape.type_name in _NUMBERS and value > most:
        yield f"{failed} have value less than or equal to {most}"
    if most is not None and shape.type_name == "string" and len(value) > most:
        yield f"{failed} have length less than or equal to {most}"
