"""The fake of boto3's clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Protocol

from scriptmode.testing import botocore_models
from scriptmode.testing.service_calls import Call, ServiceError, deep_copy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from threading import RLock

    from scriptmode.testing.service_calls import Fault

    Operation = Callable[[Mapping[str, Any]], dict[str, Any]]

_OK = 200


class SharedState(Protocol):
    """The state that all clients of a fake share."""

    region_name: str
    calls: list[Call]
    faults: list[Fault]
    #: One call at a time.
    lock: RLock

    def settle(self) -> None:
        """Run the effects that are due."""


@dataclass(frozen=True)
class Meta:
    """The metadata of a client (boto3's ``client.meta``)."""

    region_name: str
    endpoint_url: str
    service_model: Any
    config: Any = None


class FakeClient:
    """A client of one service: its operations are methods that take keyword arguments, as boto3's are.

    Arguments are checked as boto3 checks them. Nothing is tried again: a fault is what is left after botocore's own
    retries.
    """

    def __init__(
        self, service: str, operations: Mapping[str, Operation], wire: SharedState, settings: Mapping[str, Any]
    ) -> None:
        self._service = service
        self._operations = operations
        self._wire = wire
        self._settings = settings

    @property
    def meta(self) -> Meta:
        """Region, endpoint and service model."""
        region = self._settings.get("region_name") or self._wire.region_name
        url = self._settings.get("endpoint_url") or botocore_models.endpoint(self._service, region)
        return Meta(region, url, botocore_models.service_model(self._service), self._settings.get("config"))

    @property
    def exceptions(self) -> Any:
        """The classes of the service's errors, as boto3's client has them."""
        return botocore_models.exceptions(self._service)

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._operations:
            known = ", ".join(sorted(self._operations)) or "no operations"
            raise NotImplementedError(f"the fake {self._service!r} client has no {name!r}; it has {known}")

        def method(**arguments: Any) -> dict[str, Any]:
            return self._call(name, arguments)

        return method

    def can_paginate(self, operation_name: str) -> bool:
        """Return whether `get_paginator` has the operation."""
        return (
            operation_name in self._operations
            and botocore_models.paginator_config(self._service, operation_name) is not None
        )

    def get_paginator(self, operation_name: str) -> Any:
        """Return botocore's paginator on the fake's operation."""
        from botocore.exceptions import OperationNotPageableError
        from botocore.paginate import Paginator

        method = getattr(self, operation_name)
        paging = botocore_models.paginator_config(self._service, operation_name)
        if paging is None:
            raise OperationNotPageableError(operation_name=operation_name)
        return Paginator(method, paging, botocore_models.operation_model(self._service, operation_name))

    def close(self) -> None:
        """Return without an effect: there is no connection."""

    def _call(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        botocore_models.check_parameters(self._service, operation, arguments)
        wire = self._wire
        with wire.lock:
            wire.settle()
            wire.calls.append(Call(self._service, operation, deep_copy(arguments)))
            fault = next((fault for fault in wire.faults if fault.meets(self._service, operation)), None)
            try:
                if fault is not None and not fault.answer_lost:
                    raise fault.error(self.meta.endpoint_url)
                answer = self._operations[operation](arguments)
            except ServiceError as error:
                raise self._client_error(operation, error) from None
            if fault is not None:
                raise fault.error(self.meta.endpoint_url)
        return {**answer, "ResponseMetadata": _response_metadata(_OK)}

    def _client_error(self, operation: str, error: ServiceError) -> Exception:
        response = {
            "Error": {"Code": error.code, "Message": error.message},
            "ResponseMetadata": _response_metadata(error.status),
        }
        name = botocore_models.operation_model(self._service, operation).name
        made: Exception = self.exceptions.from_code(error.code)(response, name)
        return made


def _response_metadata(status: int) -> dict[str, Any]:
    return {
        "RequestId": "00000000-0000-0000-0000-000000000000",
        "HTTPStatusCode": status,
        "HTTPHeaders": {},
        "RetryAttempts": 0,
    }
