"""Which requests are for S3, whose operations are paths instead of names. Pure."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from scriptmode_serve._http.wsgi import Environ

#: Parameters of a presigned URL, also of Signature Version 2.
SIGNED_URL = frozenset(
    {
        *(f"x-amz-{name}" for name in ("algorithm", "credential", "date", "expires", "signedheaders", "signature")),
        *("x-amz-security-token", "awsaccesskeyid", "signature", "expires"),
    }
)
#: The type of a call of AWS's query protocol, such as those of IAM and STS.
FORM = "application/x-www-form-urlencoded"
#: The path of a call of Smithy RPC v2.
_RPC_PATH = re.compile("/service/[^/]+/operation/[^/]+")


def is_query_call(environ: Environ) -> bool:
    """Return whether a request is in AWS's query protocol; curl and urllib PUT an object with the same type."""
    return environ.get("REQUEST_METHOD") != "PUT" and environ.get("CONTENT_TYPE", "").startswith(FORM)


def is_for_s3(environ: Environ) -> bool:
    """Return whether a request is for S3.

    It is in none of the protocols that name an operation, and its signature, if it has one, is for S3. What a signature
    says of itself is not enough: anybody can write it.
    """
    path, is_call = environ.get("PATH_INFO", ""), is_query_call(environ) or "HTTP_X_AMZ_TARGET" in environ
    if is_call or path.startswith("/moto-api") or _RPC_PATH.fullmatch(path):
        return False
    scope = environ.get("HTTP_AUTHORIZATION", "")
    if not scope and "X-Amz-Credential" in (query := environ.get("QUERY_STRING", "")):
        scope = parse_qs(query).get("X-Amz-Credential", [""])[0]
    return not scope or "/s3/" in scope
