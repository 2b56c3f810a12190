"""Requests and answers in WSGI's terms (PEP 3333)."""

from __future__ import annotations

import io
import struct
import uuid
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Callable

from scriptmode_serve._operations.aws_json import CONTENT_TYPE, ApiError

Environ = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], Any]
Service = Callable[[Environ, StartResponse], Iterable[bytes]]

CBOR_TYPE = "application/cbor"
#: Bytes of a request's body. A CreateTrainingJob request with 100 hyperparameters of 2,500 characters has 0.3 MB.
LARGEST_BODY = 4 * 1024 * 1024

#: Seconds after which a client is gone that sends or takes nothing, or less than `LEAST_RATE`.
IDLE_SECONDS = 60.0
#: SO_LINGER with which a closed socket discards what its client has not taken.
DISCARD = struct.pack("ii", 1, 0)


def respond(
    start_response: StartResponse, content: bytes, *, status: int = 200, content_type: str = CONTENT_TYPE
) -> list[bytes]:
    """Send an answer, and return its body."""
    headers = [
        ("Content-Type", content_type),
        ("Content-Length", str(len(content))),
        ("x-amzn-RequestId", str(uuid.uuid4())),
    ]
    if content_type == CBOR_TYPE:
        headers.append(("smithy-protocol", "rpc-v2-cbor"))
    start_response(f"{status} {HTTPStatus(status).phrase}", headers)
    return [content]


def request_headers(environ: Environ) -> dict[str, str]:
    """Return the headers of a request by their names in lower case, without those of its body's type and length."""
    prefix = "HTTP_"
    return {
        name[len(prefix) :].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith(prefix)
    }


def too_large_error(environ: Environ) -> ApiError:
    """Return the error for a request whose body has more than `LARGEST_BODY` bytes."""
    text = f"The request has {int(environ['CONTENT_LENGTH']):,} bytes; the most are {LARGEST_BODY:,}."
    return ApiError("RequestEntityTooLarge", text, 413)


def read_body(environ: Environ) -> bytes:
    """Return the body of a request for a service of this server, which can be read again; raise `ApiError`."""
    size = int(environ.get("CONTENT_LENGTH") or 0)
    if size > LARGEST_BODY:
        raise too_large_error(environ)
    body: bytes = environ["wsgi.input"].read(size)
    environ["wsgi.input"] = io.BytesIO(body)
    return body
