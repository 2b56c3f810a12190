"""The fake's clients: those of botocore, whose calls the operations of the fake answer instead of a service."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Mapping
from typing import Any

from scriptmode.testing._fake_account import Call, FakeAccount, Operation, deep_copy
from scriptmode.testing._fake_s3 import Transfers
from scriptmode_serve._operations.aws_json import ApiError, NotServedError

_OK = 200
#: The key of a call's arguments in botocore's context of the call.
_ARGUMENTS = "arguments of the fake's operation"
#: No file and no profile of this machine: a place in the file, a variable, the value and its conversion.
_VARIABLES = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
    "ignore_configured_endpoint_urls": (None, None, True, None),
}
#: Sessions of botocore create one client at a time.
_CREATING = threading.Lock()


class FakeClients:
    """The clients of an account, whose ``operations`` are by service and boto3's name of the method.

    Nothing is tried again: a fault is what is left after botocore's own retries.
    """

    def __init__(self, operations: Mapping[str, Mapping[str, Operation]], account: FakeAccount) -> None:
        self._operations = operations
        self._account = account

    def create(self, service: str, settings: Mapping[str, Any]) -> Any:
        """Create a client of a service; ``settings`` are arguments of boto3."""
        keys = {"aws_access_key_id": "fake", "aws_secret_access_key": "fake"}
        with _CREATING:
            client = _session().create_client(service, **{**keys, **settings})
        client.meta.events.register("provide-client-params", self._receive)
        client.meta.events.register("before-call", self._answer)
        return client

    def _receive(self, params: Mapping[str, Any], model: Any, context: dict[str, object], **_: object) -> None:
        """Keep the arguments of a call, which botocore checks and changes before it calls `_answer`."""
        service, method = _names(model)
        if method not in self._operations[service]:
            known = ", ".join(sorted(self._operations[service])) or "no operations"
            raise NotImplementedError(f"the fake {service!r} client has no {method!r}; it has {known}")
        context[_ARGUMENTS] = deep_copy(params)

    def _answer(self, model: Any, params: Mapping[str, Any], context: Mapping[str, Any], **_: object) -> Any:
        """Return the response of a call: botocore calls no service."""
        from botocore.awsrequest import AWSResponse

        call, url = Call(*_names(model), context[_ARGUMENTS]), params["url"]
        try:
            status, answer = _OK, self._call(call, url, _with_seconds(model, call.arguments))
        except NotServedError as error:
            raise NotImplementedError(f"the fake {call.service!r} client: {error.message}") from None
        except ApiError as error:
            status, answer = error.status, {"Error": {"Code": error.code, "Message": error.message}}
        metadata = {"RequestId": "00000000-0000-0000-0000-000000000000", "HTTPStatusCode": status, "HTTPHeaders": {}}
        return AWSResponse(url, status, {}, None), {**answer, "ResponseMetadata": {**metadata, "RetryAttempts": 0}}

    def _call(self, call: Call, url: str, sent: Mapping[str, Any]) -> Mapping[str, Any]:
        account = self._account
        with account.lock:
            account.settle()
            account.calls.append(call)
            fault = next((fault for fault in account.faults if fault.meets(call.service, call.operation)), None)
            if fault is not None and not fault.answer_lost:
                raise fault.error(url)
            answer = self._operations[call.service][call.operation](sent)
            if fault is not None:
                raise fault.error(url)
            return answer


def _names(model: Any) -> tuple[str, str]:
    """Return the service of an operation's model, and boto3's name of the method."""
    from botocore import xform_name

    return model.service_model.service_name, xform_name(model.name)


def _with_seconds(model: Any, arguments: Mapping[str, Any]) -> dict[str, object]:
    """Return arguments whose times are seconds since the epoch, as boto3 sends them."""
    from botocore.utils import parse_to_aware_datetime

    times = {name for name in arguments if model.input_shape.members[name].type_name == "timestamp"}
    return {**arguments, **{name: parse_to_aware_datetime(arguments[name]).timestamp() for name in times}}


@functools.cache
def _session() -> Any:
    """Return what creates the clients of all accounts: each reading of botocore's models takes some 0.2 s."""
    from botocore.session import Session

    session = Session(_VARIABLES)
    session.register("creating-client-class.s3", lambda base_classes, **_: base_classes.insert(0, Transfers))
    return session
