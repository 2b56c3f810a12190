"""botocore's models of the services: arguments, responses, errors and pagination of their operations."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from scriptmode.testing.service_calls import ServiceError

_ENDPOINTS = {
    "cloudwatch": "https://monitoring.{region}.{suffix}/",
    "iam": "https://iam.{suffix}/",
    "sagemaker": "https://api.sagemaker.{region}.{suffix}/",
    "sagemaker-runtime": "https://runtime.sagemaker.{region}.{suffix}/",
}
_ENDPOINT = "https://{service}.{region}.{suffix}/"
#: Error codes of the services for invalid arguments.
_CODES = {"cloudwatch": "ValidationError", "logs": "InvalidParameterException"}
_NUMBERS = ("integer", "long")


def endpoint(service: str, region: str) -> str:
    """Return the URL of a service in a Region."""
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return _ENDPOINTS.get(service, _ENDPOINT).format(service=service, region=region, suffix=suffix)


def partition(region: str) -> str:
    """Return the partition in the ARNs of a Region."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


@functools.cache
def service_model(service: str) -> Any:
    """Read botocore's ServiceModel of a service, once."""
    from botocore.model import ServiceModel

    return ServiceModel(_loader().load_service_model(service, "service-2"), service)


@functools.cache
def operation_model(service: str, method: str) -> Any:
    """Find botocore's OperationModel by boto3's name of the method, such as ``get_log_events``."""
    model = service_model(service)
    return model.operation_model(_operation_names(service)[method])


@functools.cache
def exceptions(service: str) -> Any:
    """Return the classes that boto3 has as ``client.exceptions``."""
    from botocore.errorfactory import ClientExceptionsFactory

    return ClientExceptionsFactory().create_client_exceptions(service_model(service))


def paginator_config(service: str, method: str) -> dict[str, Any] | None:
    """Return how an operation's responses are paged; ``None`` where boto3 has no paginator."""
    paging: dict[str, Any] | None = _pagings(service).get(_operation_names(service)[method])
    return paging


def check_parameters(service: str, method: str, arguments: dict[str, Any]) -> None:
    """Raise botocore's ``ParamValidationError`` for arguments with which boto3 would not make the call."""
    from botocore.exceptions import ParamValidationError
    from botocore.validate import ParamValidator

    shape = operation_model(service, method).input_shape
    if shape is not None:
        report = ParamValidator().validate(arguments, shape)
        if report.has_errors():
            raise ParamValidationError(report=report.generate_report())


def serialize_times(service: str, method: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments whose times are seconds since the epoch, as boto3 sends them."""
    from botocore.utils import parse_to_aware_datetime

    shape = operation_model(service, method).input_shape
    times = {name for name in arguments if shape.members[name].type_name == "timestamp"}
    seconds = {name: parse_to_aware_datetime(arguments[name]).timestamp() for name in times}
    return {**arguments, **seconds}


def check_limits(service: str, operation: str, arguments: Mapping[str, Any]) -> None:
    """Raise the service's error for enumerations and upper bounds, which the service checks, and boto3 does not."""
    shape = operation_model(service, operation).input_shape
    problems = [text for name, value in arguments.items() for text in _problems(name, shape.members[name], value)]
    if problems:
        raise validation_error(problems, _CODES.get(service, "ValidationException"))


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


@functools.cache
def _loader() -> Any:
    from botocore.loaders import Loader

    return Loader()


@functools.cache
def _operation_names(service: str) -> dict[str, str]:
    from botocore import xform_name

    return {xform_name(name): name for name in service_model(service).operation_names}


@functools.cache
def _pagings(service: str) -> dict[str, Any]:
    return dict(_loader().load_service_model(service, "paginators-1")["pagination"])
