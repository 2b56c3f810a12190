"""Errors in the protocol of the request: S3's XML, AWS's query protocol, Smithy RPC v2 (CBOR) and AWS JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as ET

from scriptmode_serve._http.s3_requests import is_for_s3, is_query_call
from scriptmode_serve._http.wsgi import CBOR_TYPE, Environ
from scriptmode_serve._operations import aws_json
from scriptmode_serve._operations.aws_json import ApiError

_SERVER_ERROR = 500
#: AWS's codes for the same error, in the query protocol (IAM, "Common Errors") and of S3 (its "Error responses").
_CODES = {
    "AccessDeniedException": ("AccessDenied", "AccessDenied"),
    "IncompleteSignatureException": ("IncompleteSignature", "AuthorizationHeaderMalformed"),
    "InvalidSignatureException": ("SignatureDoesNotMatch", "SignatureDoesNotMatch"),
    "MissingAuthenticationTokenException": ("MissingAuthenticationToken", "AccessDenied"),
    "RequestEntityTooLarge": ("RequestEntityTooLarge", "EntityTooLarge"),
    "UnknownOperationException": ("InvalidAction", "NotImplemented"),
    "UnrecognizedClientException": ("InvalidClientTokenId", "InvalidAccessKeyId"),
}


def find_code(environ: Environ, error: ApiError) -> str:
    """Return the code of an error in the protocol of the request."""
    in_query, of_s3 = _CODES.get(error.code, (error.code, error.code))
    return of_s3 if is_for_s3(environ) else in_query if is_query_call(environ) else error.code


def render_error(environ: Environ, error: ApiError) -> tuple[bytes, str]:
    """Return the body and the content type of the answer to a request that failed."""
    code, message = find_code(environ, error), error.message
    if is_for_s3(environ):
        add_texts(root := ET.Element("Error"), Code=code, Message=message)
        return encode(root), "application/xml"
    if environ.get("PATH_INFO", "").startswith("/service/"):
        import cbor2

        return cbor2.dumps({"__type": code, "message": message}), CBOR_TYPE
    if is_query_call(environ):
        root, blamed = ET.Element("ErrorResponse"), "Sender" if error.status < _SERVER_ERROR else "Receiver"
        add_texts(ET.SubElement(root, "Error"), Type=blamed, Code=code, Message=message)
        return encode(root), "text/xml"
    content = {"__type": code, "message": message, "Message": message}
    return aws_json.render(content), aws_json.CONTENT_TYPE


def render_query_answer(operation: str, namespace: str, answer: Mapping[str, Any]) -> bytes:
    """Return the body of an answer in AWS's query protocol."""
    root = ET.Element(f"{operation}Response", xmlns=namespace)
    _add(root, f"{operation}Result", answer)
    _add(root, "ResponseMetadata", {"RequestId": "00000000-0000-0000-0000-000000000000"})
    return encode(root)


def _add(parent: ET.Element, name: str, value: object) -> None:
    if isinstance(value, (dict, list)):
        element = ET.SubElement(parent, name)
        for key, member in value.items() if isinstance(value, dict) else (("member", member) for member in value):
            _add(element, key, member)
    else:
        add_texts(parent, **{name: value.isoformat() if isinstance(value, datetime) else str(value)})


def add_texts(parent: ET.Element, **texts: str) -> None:
    """Add an element for each text, without control characters, which XML does not have."""
    for name, text in texts.items():
        ET.SubElement(parent, name).text = "".join(character if character.isprintable() else " " for character in text)


def encode(root: ET.Element) -> bytes:
    """Return a document of XML."""
    encoded: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return encoded
