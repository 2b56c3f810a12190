"""Forms that store an object in S3 (presigned POST). SeaweedFS checks the policy, if that is signed with its key."""

from __future__ import annotations

import base64
import hmac
import io
import json
import re
from operator import itemgetter
from urllib.parse import quote

from scriptmode_serve._http.access_keys import AccessKey
from scriptmode_serve._http.s3_requests import is_for_s3
from scriptmode_serve._http.wsgi import Environ
from scriptmode_serve._operations.aws_json import ApiError

#: The most bytes of a form, which is read before its signature is known, and of what precedes the file: on AWS 20 KB.
_LARGEST, _MOST = 16 * 1024 * 1024, 64 * 1024
_BUCKET, _TYPE = re.compile(r"/[\w.-]+/?"), re.compile("multipart/form-data *;", re.IGNORECASE)
_NAME, _FILE_NAME = re.compile(r'; *name="([^"]+)"'), re.compile(r'; *filename="([^"]*)"')


def is_form(environ: Environ) -> bool:
    """Return whether a request is such a form, which can be for nothing but a bucket."""
    is_of_bucket = environ.get("REQUEST_METHOD") == "POST" and _BUCKET.fullmatch(environ.get("REQUEST_URI", ""))
    return bool(is_of_bucket and _TYPE.match(environ.get("CONTENT_TYPE", "")) and is_for_s3(environ))


def check_form_size(environ: Environ) -> None:
    """Raise `ApiError` for a form that is too large, or may be."""
    if not 0 < int(environ.get("CONTENT_LENGTH") or 0) <= _LARGEST:
        raise ApiError("RequestEntityTooLarge", f"A form needs a Content-Length of at most {_LARGEST:,}.", 413)


def read_form(environ: Environ) -> tuple[dict[str, str], bytes]:
    """Return the fields before the file by their names in lower case, and the file; those after it do not count."""
    boundary = environ["CONTENT_TYPE"].partition("boundary=")[2].partition(";")[0].strip('"')
    body, fields, begin = environ["wsgi.input"].read(), {"key": ""}, 0
    environ["wsgi.input"] = io.BytesIO(body)
    while begin >= 0 and (end := body.find(b"\r\n\r\n", begin, _MOST)) >= 0:
        head = body[begin:end].decode(errors="replace")
        begin = body.find(f"\r\n--{boundary}".encode(), end + 2)
        name, content = (_NAME.search(head) or [head, ""])[1].lower(), body[end + 4 : max(begin, end + 4)]
        if name == "file" and begin > 0:
            file_name = (_FILE_NAME.search(head) or [head, ""])[1].replace("\\", "/").rpartition("/")[2]
            return {**fields, "key": fields["key"].replace("${filename}", file_name)}, content
        fields[name] = content.decode(errors="replace")
    raise ApiError("InvalidArgument", "POST requires exactly one file upload per request.")


def signed_form(environ: Environ, key: AccessKey) -> tuple[Environ, Environ]:
    """Return a form with a signature by a key, and the PUT of the same object; raise `ApiError`."""
    from urllib3 import encode_multipart_formdata

    check_form_size(environ)
    fields, content = read_form(environ)
    _check_fields(fields)
    # By version 2: a policy names the parts of a signature of version 4.
    signature = base64.b64encode(hmac.digest(key.secret.encode(), fields["policy"].encode(), "sha1")).decode()
    own = {"awsaccesskeyid": key.identifier, "signature": signature}
    body, kind = encode_multipart_formdata({**fields, **own, "file": ("file", content, "binary/octet-stream")})
    # Headers of the client's would be those of the object, without a condition.
    form = {name: value for name, value in environ.items() if not name.startswith("HTTP_")}
    form |= {"CONTENT_TYPE": kind, "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
    path = f"{environ['REQUEST_URI'].rstrip('/')}/{quote(fields['key'])}"
    return form, {**form, "REQUEST_METHOD": "PUT", "REQUEST_URI": path}


def _check_fields(fields: dict[str, str]) -> None:
    """Raise `ApiError` for a field that the policy has no condition for, which SeaweedFS would take."""
    try:
        _, conditions = itemgetter("expiration", "conditions")(json.loads(base64.b64decode(fields.get("policy", ""))))
        named = [name for part in conditions for name in (part if isinstance(part, dict) else part[1:2])]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ApiError("InvalidPolicyDocument", f"Invalid Policy, without expiration or conditions: {error}") from error
    named += ["policy", "awsaccesskeyid", "signature"]
    extra = {"bucket", *filter(fields.get, fields)} - {str(name).lower().lstrip("$") for name in named}
    # SeaweedFS wants conditions for those that begin with x-amz-, and leaves others that begin with x- out.
    if names := ", ".join(sorted(name for name in extra if not name.startswith("x-"))):
        raise ApiError("AccessDeniedException", f"Invalid according to Policy: Extra input fields: {names}", 403)
