"""The fake of boto3's clients."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Callable

from scriptmode.serve.aws_json import ApiError, NotServedError
from scriptmode.testing import botocore_models
from scriptmode.testing.fake_account import FakeAccount
from scriptmode.testing.service_calls import Call, deep_copy

Operation = Callable[[Mapping[str, Any]], Mapping[str, Any]]
_OK = 200


class FakeClient:
    """A client of one service: its operations are methods that take keyword arguments, as boto3's are.

    Arguments are checked as boto3 checks them. Nothing is tried again: a fault is what is left after botocore's own
    retries.
    """

    def __init__(
        self, service: str, operations: Mapping[str, Operation], account: FakeAccount, settings: Mapping[str, Any]
    ) -> None:
        self._service = service
        self._operations = operations
        self._account = account
        self._settings = settings

    @property
    def meta(self) -> SimpleNamespace:
        """Region, endpoint, service model and configuration, as boto3's ``client.meta`` has them."""
        region = self._settings.get("region_name") or self._account.region_name
        url = self._settings.get("endpoint_url") or botocore_models.endpoint(self._service, region)
        return SimpleNamespace(
            region_name=region,
            endpoint_url=url,
            service_model=botocore_models.service_model(self._service),
            config=self._settings.get("config"),
        )

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
        account = self._account
        sent = botocore_models.serialize_times(self._service, operation, arguments)
        with account.lock:
            account.settle()
            account.calls.append(Call(self._service, operation, deep_copy(arguments)))
            fault = next((fault for fault in account.faults if fault.meets(self._service, operation)), None)
            try:
                if fault is not None and not fault.answer_lost:
                    raise fault.error(self.meta.endpoint_url)
                answer = self._operations[operation](sent)
            except NotServedError as error:
                raise NotImplementedError(f"the fake {self._service!r} client: {error.message}") from None
            except ApiError as error:
                raise self._client_error(operation, error) from None
            if fault is not None:
                raise fault.error(self.meta.endpoint_url)
        return {**answer, "ResponseMetadata": _response_metadata(_OK)}

    def _client_error(self, operation: str, error: ApiError) -> Exception:
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
