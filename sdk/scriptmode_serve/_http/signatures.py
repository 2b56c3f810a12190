"""Validation of a request's signature, AWS Signature Version 4, by the signer with which botocore's clients sign."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from scriptmode_serve._http.access_keys import AccessKey
from scriptmode_serve._http.s3_forms import is_form, read_form
from scriptmode_serve._http.s3_requests import is_for_s3
from scriptmode_serve._http.wsgi import Environ, read_body, request_headers
from scriptmode_serve._operations.aws_json import ApiError

_HEADER = re.compile(
    r"AWS4-HMAC-SHA256\s+Credential=(?P<key>[^/,]+)/\d{8}/(?P<region>[^/,]+)/(?P<service>[^/,]+)/aws4_request,\s*"
    r"SignedHeaders=(?P<headers>[^,]+),\s*Signature=(?P<signature>[0-9a-f]{64})"
)
_REGION = re.compile(r"[a-z0-9-]{1,40}")
_TIME = "%Y%m%dT%H%M%SZ"
#: Seconds by which the clock of a client may differ. (Signature Version 4, "Elements of an AWS API request signature")
_LONGEST_SKEW = 300
_S3 = "s3"
#: A target whose path is the same to every reader: to some, what follows ``//`` is a host, and what follows ``#`` not
#: a part of it.
_TARGET = re.compile(r"/(?!/)[^#]*")
BODY_HASH = "x-amz-content-sha256"
#: Digits of the seconds for which a URL is signed, at most a week.
_LONGEST_NUMBER = 6


class _Signature(NamedTuple):
    """What a request says of its signature."""

    key: str
    region: str
    service: str
    headers: tuple[str, ...]
    signature: str
    time: str
    #: Seconds for which a URL is signed; 0 for a signature in a header.
    expires: int = 0


def check_signature(environ: Environ, keys: Mapping[str, str], now: float) -> None:
    """Raise `ApiError` for a request that is not signed with one of the keys, or was signed too long ago.

    Args:
        environ: The request. The body of one that is not for S3 is read.
        keys: Secrets by the identifiers of the keys.
        now: Seconds since the epoch.
    """
    sent = find_signature(environ, keys)
    _require_signed_parts(environ, sent)
    try:
        signed = datetime.strptime(sent.time, _TIME).replace(tzinfo=timezone.utc).timestamp()
        signature = _sign(environ, sent, keys[sent.key])
    except ValueError as error:
        text = "The request has no valid X-Amz-Date or Host."
        raise ApiError("IncompleteSignatureException", text, 403) from error
    if signed - now > _LONGEST_SKEW or now - signed > (sent.expires or _LONGEST_SKEW):
        raise ApiError("InvalidSignatureException", f"Signature expired: {sent.time} is too long ago.", 403)
    if not hmac.compare_digest(signature.encode(), sent.signature.encode()):
        raise ApiError(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
            "Access Key and signing method.",
            403,
        )


def find_signature(environ: Environ, keys: Mapping[str, str]) -> _Signature:
    """Return what a request says of its signature; raise `ApiError` where it has none of one of the keys."""
    signature = _parse(environ)
    if signature is None:
        text = "The request is not signed."
        if "AWSAccessKeyId=" in environ.get("QUERY_STRING", ""):
            text = "The URL is signed by version 2; version 4 is botocore's Config(signature_version='s3v4')."
        if is_form(environ):
            text = "The form is not signed by version 4, which is botocore's Config(signature_version='s3v4')."
        raise ApiError("MissingAuthenticationTokenException", text, 403)
    if signature.key not in keys:
        raise ApiError("UnrecognizedClientException", "The security token included in the request is invalid.", 403)
    return signature


def client_region(environ: Environ) -> str:
    """Return the Region for which a request is signed; "" for one that is not signed, or for all of them (``*``)."""
    signature = _parse(environ)
    return signature.region if signature and _REGION.fullmatch(signature.region) else ""


def _require_signed_parts(environ: Environ, signature: _Signature) -> None:
    """Raise `ApiError` for a request with parts that its signature does not cover.

    Otherwise a presigned URL for one object could be used to call an operation, or, with the header
    X-Amz-Copy-Source, to read another object.
    """
    if (signature.service == _S3) != is_for_s3(environ) or not _TARGET.fullmatch(environ["REQUEST_URI"]):
        raise ApiError("InvalidSignatureException", "The signature is for another service, or for another path.", 403)
    names = {name for name in request_headers(environ) if name.startswith("x-amz-")}
    if unsigned := sorted(names - {*signature.headers}):
        text = f"The signature does not contain the headers {', '.join(unsigned)}."
        raise ApiError("InvalidSignatureException", text, 403)


def _parse(environ: Environ) -> _Signature | None:
    if header := environ.get("HTTP_AUTHORIZATION"):
        match = _HEADER.fullmatch(header.strip())
        if match is None:
            return None
        return _Signature(
            match["key"],
            match["region"],
            match["service"],
            tuple(match["headers"].split(";")),
            match["signature"],
            environ.get("HTTP_X_AMZ_DATE", ""),
        )
    query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
    if is_form(environ):
        fields = {name.title(): value for name, value in read_form(environ)[0].items()}
        # Its policy ends before that week.
        query = {**fields, "X-Amz-Expires": "604800", "X-Amz-SignedHeaders": ""}
    scope = query.get("X-Amz-Credential", "").split("/")
    expires = query.get("X-Amz-Expires", "")
    if len(scope) != 5 or not expires.isdecimal() or len(expires) > _LONGEST_NUMBER:  # noqa: PLR2004 - key, day, Region, service, end
        return None
    headers = tuple(query.get("X-Amz-SignedHeaders", "").split(";"))
    signature, time = query.get("X-Amz-Signature", ""), query.get("X-Amz-Date", "")
    return _Signature(scope[0], scope[2], scope[3], headers, signature, time, int(expires))


def _sign(environ: Environ, signature: _Signature, secret: str) -> str:
    """Return the signature that the request must have."""
    from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    kind: Any = SigV4Auth
    if signature.service == _S3:
        kind = S3SigV4QueryAuth if signature.expires else S3SigV4Auth
    path, _, query = environ["REQUEST_URI"].partition("?")
    query = "&".join(part for part in query.split("&") if not part.startswith("X-Amz-Signature="))
    url = f"http://{environ.get('HTTP_HOST', '')}{path}{'?' if query else ''}{query}"
    of_body = {"content-type": environ.get("CONTENT_TYPE"), "content-length": environ.get("CONTENT_LENGTH")}
    known = {**request_headers(environ), **of_body}
    headers = {name: str(known.get(name.lower()) or "") for name in signature.headers}
    body = b"" if signature.service == _S3 else read_body(environ)
    if BODY_HASH in headers and signature.service != _S3:
        # The signer takes the hash from the header: it must be that of this body.
        headers[BODY_HASH] = hashlib.sha256(body).hexdigest()
    request = AWSRequest(environ["REQUEST_METHOD"], url, headers=headers, data=body)
    request.context["timestamp"] = signature.time
    signer = kind(Credentials(signature.key, secret), signature.service, signature.region)
    canonical = signer.canonical_request(request)
    text = read_form(environ)[0].get("policy", "") if is_form(environ) else signer.string_to_sign(request, canonical)
    expected: str = signer.signature(text, request)
    return expected


def sign_for_s3(method: str, url: str, headers: Mapping[str, str], key: AccessKey) -> dict[str, str]:
    """Return the headers of a request for S3 with a signature of now; one without a hash of its body has none."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    body_hash = headers.get(BODY_HASH, "UNSIGNED-PAYLOAD")

    class Signer(S3SigV4Auth):  # type: ignore[misc]
        def payload(self, _request: object) -> str:
            return body_hash

    request = AWSRequest(method, url, headers=headers)
    Signer(Credentials(key.identifier, key.secret), _S3, "us-east-1").add_auth(request)
    return dict(request.headers.items())
