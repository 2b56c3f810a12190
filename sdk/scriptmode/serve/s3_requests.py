"""Which requests are for S3, whose operations are paths instead of names. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from scriptmode.serve.wsgi import Environ

#: The type of a call of AWS's query protocol, such as those of IAM and STS.
FORM = "application/x-www-form-urlencoded"


def is_for_s3(environ: Environ) -> bool:
    """Return whether a request is for S3: its signature says so, or there is none and other protocols do not match."""
    scope = environ.get("HTTP_AUTHORIZATION", "")
    if not scope and "X-Amz-Credential" in (query := environ.get("QUERY_STRING", "")):
        scope = parse_qs(query).get("X-Amz-Credential", [""])[0]
    if scope:
        return "/s3/" in scope
    is_call = "HTTP_X_AMZ_TARGET" in environ or environ.get("CONTENT_TYPE", "").startswith(FORM)
    return not is_call and not environ.get("PATH_INFO", "").startswith("/moto-api")
