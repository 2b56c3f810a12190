"""CloudWatch in the protocols of its clients: Smithy RPC v2 (CBOR), AWS JSON 1.0 and AWS query."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import parse_qs, parse_qsl

from scriptmode_serve._http.error_answers import render_query_answer
from scriptmode_serve._http.s3_requests import is_query_call
from scriptmode_serve._http.wsgi import CBOR_TYPE, LARGEST_BODY, Environ, Service, StartResponse, read_body, respond
from scriptmode_serve._operations import aws_json
from scriptmode_serve._operations.aws_json import ApiError, NotServedError, Operation
from scriptmode_serve._operations.metric_operations import NAMESPACE

_TARGET = "GraniteServiceVersion20100801"
_VERSION = "2010-08-01"
_PATH = re.compile(f"/service/{_TARGET}/operation/([^/]+)")
_XML_NAMESPACE = f"http://monitoring.amazonaws.com/doc/{_VERSION}/"
_CBOR, _XML, _JSON = CBOR_TYPE, "text/xml", "application/x-amz-json-1.0"
#: An operation on other namespaces alone.
_PUT = "PutMetricData"


@dataclass(frozen=True)
class CloudWatch:
    """The WSGI application of CloudWatch.

    Attributes:
        operations: The operations on metrics of training jobs by their names.
        others: What answers requests of other services, and those for metrics of other namespaces.
    """

    operations: Mapping[str, Operation]
    others: Service

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Call the operation of one request, and return the body of its answer."""
        operation, kind = _operation(environ)
        if operation is None:
            return self.others(environ, start_response)
        try:
            if operation not in (*self.operations, _PUT):
                known = ", ".join((*self.operations, _PUT))
                text = f"scriptmode serve does not have the operation {operation} of CloudWatch; it has {known}."
                raise NotServedError(text, "UnknownOperationException")
            arguments = _parse(kind, _body(environ))
            if _is_for_others(arguments):
                return self.others(environ, start_response)
            if operation == _PUT:
                raise NotServedError(f"The metrics of {NAMESPACE} are the values that jobs print.")
            content = _render(operation, self.operations[operation](arguments), kind)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, zlib.error) as error:
            what = f"The request is not as the service's model has it: {error!r}"
            raise ApiError("ValidationError", what) from error
        return respond(start_response, content, content_type=kind)


def _operation(environ: Environ) -> tuple[str | None, str]:
    """Return the operation of a request, None for one of another service, and the content type of its answer."""
    if match := _PATH.fullmatch(environ.get("PATH_INFO", "")):
        return match[1], _CBOR
    service, _, operation = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")
    if service == _TARGET:
        return operation, _JSON
    if is_query_call(environ):
        fields = parse_qs(read_body(environ).decode("utf-8", "replace"))
        if fields.get("Version") == [_VERSION]:
            return fields.get("Action", [""])[0], _XML
    return None, ""


def _body(environ: Environ) -> bytes:
    body = read_body(environ)
    if environ.get("HTTP_CONTENT_ENCODING") == "gzip":
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(body, LARGEST_BODY)
    return body


def _is_for_others(arguments: Mapping[str, Any]) -> bool:
    """Return whether a request is for metrics of other namespaces; raise `ApiError` for one of both kinds."""
    if "MetricDataQueries" not in arguments:
        return bool(arguments.get("Namespace", NAMESPACE) != NAMESPACE)
    statistics = [query["MetricStat"] for query in arguments["MetricDataQueries"] if "MetricStat" in query]
    names = {statistic["Metric"]["Namespace"] for statistic in statistics}
    if NAMESPACE in names and len(names) > 1:
        raise NotServedError(f"One call cannot have queries of {NAMESPACE} and of other namespaces; use one for each.")
    return bool(names) and NAMESPACE not in names


def _parse(kind: str, body: bytes) -> dict[str, Any]:
    if kind == _JSON:
        return aws_json.parse_request(body)
    if kind == _XML:
        return _parse_form(body.decode("utf-8", "replace"))
    import cbor2

    try:
        content = cbor2.loads(body) if body else {}
    except (cbor2.CBORDecodeError, RecursionError) as error:
        raise ApiError("SerializationException", f"The body is not CBOR: {error}") from error
    if not isinstance(content, dict) or not _is_plain(content):
        raise ApiError("SerializationException", "The body is not a map of texts, numbers, times and lists.")
    times = {name: aws_json.to_seconds(value) for name, value in content.items() if isinstance(value, datetime)}
    return {**content, **times}


def _is_plain(value: object) -> bool:
    """Return whether a value has the types of the service's model alone; CBOR knows others, such as huge decimals."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(member) for name, member in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, (str, int, float, datetime, type(None)))


def _parse_form(text: str) -> dict[str, Any]:
    """Return the arguments of AWS's query protocol: ``Name.member.1.Field=value``."""
    root: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        parts = name.split(".")
        at = root
        for part in parts[:-1]:
            at = at.setdefault(part, {})
        at[parts[-1]] = value
    arguments = _collapse(root)
    for field in ("StartTime", "EndTime"):
        if field in arguments:
            moment = datetime.fromisoformat(arguments[field].replace("Z", "+00:00"))
            arguments[field] = (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    for query in arguments.get("MetricDataQueries", ()):
        query["ReturnData"] = query.get("ReturnData", "true") == "true"
    return dict(arguments)


def _collapse(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"member"}:
        members = value["member"]
        return [_collapse(members[number]) for number in sorted(members, key=int)]
    return {name: _collapse(nested) for name, nested in value.items()}


def _render(operation: str, answer: Mapping[str, Any], kind: str) -> bytes:
    if kind == _CBOR:
        import cbor2

        return cbor2.dumps(answer, datetime_as_timestamp=True)
    if kind == _JSON:
        return aws_json.render(answer)
    return render_query_answer(operation, _XML_NAMESPACE, answer)
