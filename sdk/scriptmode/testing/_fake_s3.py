"""The fake's Amazon S3: buckets and whole objects."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Optional

from scriptmode._core.aws.s3_uris import SCHEME
from scriptmode.testing._fake_account import FakeAccount, Operation, ServiceError

_Extra = Optional[Mapping[str, Any]]

#: The most keys in an answer (ListObjectsV2, API reference).
_KEYS_A_PAGE = 1000


class FakeObjects:
    """The operations on buckets and objects."""

    def __init__(self, account: FakeAccount) -> None:
        self._account = account
        self._written: dict[str, datetime] = {}
        self._encryption: dict[str, dict[str, str]] = {}
        self.operations: dict[str, Operation] = {
            "create_bucket": self._create_bucket,
            "get_object": self._get,
            "head_bucket": partial(_without_body, self._head_bucket),
            "head_object": partial(_without_body, lambda arguments: self._described(self._found(arguments))),
            "list_objects_v2": self._list,
            "put_object": self._put,
        }

    def _create_bucket(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        name = arguments["Bucket"]
        if (owner := self._owner(name)) is not None:
            code = "BucketAlreadyOwnedByYou" if owner == self._account.account else "BucketAlreadyExists"
            raise ServiceError(code, "The requested bucket name is not available.", 409)
        self._account.buckets[name] = self._account.account
        return {"Location": f"http://{name}.s3.amazonaws.com/"}

    def _head_bucket(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        self._check_bucket(arguments)
        return {"BucketRegion": self._account.region_name}

    def _get(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        from botocore.response import StreamingBody

        content = self._account.objects[(uri := self._found(arguments))]
        return {**self._described(uri), "Body": StreamingBody(io.BytesIO(content), len(content))}

    def _put(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        self._check_bucket(arguments)
        _refuse("IfNoneMatch", arguments)
        uri = _uri(arguments)
        stored = self._account.objects
        stored[uri] = _bytes(arguments.get("Body", b""))
        self._written[uri] = self._account.clock.wall_time()
        self._encryption[uri] = self._encryption_of(arguments)
        return {"ETag": self._version(uri)["ETag"], **self._encryption[uri]}

    def _encryption_of(self, arguments: Mapping[str, Any]) -> dict[str, str]:
        """Return the encryption of an object in S3's response: a key by its ARN."""
        if arguments.get("ServerSideEncryption") != "aws:kms":
            return {"ServerSideEncryption": "AES256"}
        key = arguments.get("SSEKMSKeyId", "the-key-of-s3").rpartition("/")[2]
        return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": self._account.arn("kms", f"key/{key}")}

    def _list(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        self._check_bucket(arguments)
        _refuse("Delimiter", arguments)
        bucket, prefix = arguments["Bucket"], arguments.get("Prefix", "")
        after = arguments.get("ContinuationToken", arguments.get("StartAfter", "")).encode()
        here, stored = f"{SCHEME}{bucket}/", self._account.objects
        keys = sorted((uri[len(here) :] for uri in stored if uri.startswith(here + prefix)), key=str.encode)
        listed = [key for key in keys if key.encode() > after]
        most = min(arguments.get("MaxKeys", _KEYS_A_PAGE), _KEYS_A_PAGE)
        page, is_truncated = listed[:most], len(listed) > most
        answer = {"Name": bucket, "Prefix": prefix, "MaxKeys": most, "KeyCount": len(page), "IsTruncated": is_truncated}
        contents = [
            {"Key": key, "Size": len(stored[here + key]), "StorageClass": "STANDARD", **self._version(here + key)}
            for key in page
        ]
        more = {"NextContinuationToken": page[-1]} if is_truncated else {}
        return {**answer, **({"Contents": contents} if page else {}), **more}

    def _described(self, uri: str) -> dict[str, object]:
        return {
            "AcceptRanges": "bytes",
            "ContentLength": len(self._account.objects[uri]),
            "ContentType": "binary/octet-stream",
            "Metadata": {},
            **self._version(uri),
            **self._encryption.get(uri, {}),
        }

    def _version(self, uri: str) -> dict[str, object]:
        """Return an object's tag, and when it was stored; for one that a test or a job stored, the start."""
        tag = hashlib.md5(self._account.objects[uri], usedforsecurity=False).hexdigest()
        return {"ETag": f'"{tag}"', "LastModified": self._written.get(uri, self._account.clock.start)}

    def _found(self, arguments: Mapping[str, Any]) -> str:
        """Return the URI of an object that exists."""
        self._check_bucket(arguments)
        _refuse("Range", arguments)
        if (uri := _uri(arguments)) not in self._account.objects:
            raise ServiceError("NoSuchKey", "The specified key does not exist.", 404)
        return uri

    def _check_bucket(self, arguments: Mapping[str, Any]) -> None:
        owner = self._owner(arguments["Bucket"])
        if owner is None:
            raise ServiceError("NoSuchBucket", "The specified bucket does not exist", 404)
        if arguments.get("ExpectedBucketOwner", owner) != owner:
            raise ServiceError("AccessDenied", "Access Denied", 403)

    def _owner(self, bucket: str) -> str | None:
        if bucket in self._account.buckets:
            return self._account.buckets[bucket]
        is_used = any(uri.startswith(f"{SCHEME}{bucket}/") for uri in self._account.objects)
        return self._account.account if is_used else None


class Transfers:
    """boto3's transfers of an S3 client, each of which is one put or get here.

    A ``ClientError`` of a transfer is raised unchanged.
    """

    head_object: Callable[..., dict[str, object]]
    get_object: Callable[..., dict[str, Any]]
    put_object: Callable[..., dict[str, object]]

    def upload_file(
        self, Filename: str, Bucket: str, Key: str, ExtraArgs: _Extra = None, Callback: Any = None, **_settings: object
    ) -> None:
        """Upload a file; ``ExtraArgs`` are put_object's. Config changes nothing."""
        content = Path(Filename).read_bytes()
        self.put_object(Bucket=Bucket, Key=Key, Body=content, **(ExtraArgs or {}))
        if Callback is not None:
            Callback(len(content))

    def download_file(
        self, Bucket: str, Key: str, Filename: str, ExtraArgs: _Extra = None, **_settings: object
    ) -> None:
        """Write an object's bytes to a file; ``ExtraArgs`` are get_object's. Callback and Config change nothing."""
        place = {"Bucket": Bucket, "Key": Key, **(ExtraArgs or {})}
        self.head_object(**place)
        Path(Filename).write_bytes(self.get_object(**place)["Body"].read())


def _without_body(operation: Operation, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call an operation whose error has only a status: a response to HEAD has no body."""
    try:
        return operation(arguments)
    except ServiceError as error:
        raise ServiceError(str(error.status), HTTPStatus(error.status).phrase, error.status) from None


def _uri(arguments: Mapping[str, Any]) -> str:
    return f"{SCHEME}{arguments['Bucket']}/{arguments['Key']}"


def _bytes(body: Any) -> bytes:
    content = body.read() if hasattr(body, "read") else body
    return content.encode() if isinstance(content, str) else bytes(content)


def _refuse(argument: str, arguments: Mapping[str, Any]) -> None:
    if argument in arguments:
        raise NotImplementedError(f"the fake 's3' client has no {argument} (given: {arguments[argument]!r})")
