"""Amazon S3, or any endpoint that boto3's standard settings name. Every botocore error leaves as one of ours."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, TimeoutError as FutureTimeoutError
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from threading import Lock, Thread
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from scriptmode._core.aws.direct_endpoints import create_client, is_loopback
from scriptmode._core.aws.s3_errors import HOW_TO_GIVE_CREDENTIALS, NOT_S3, code_of, translate_s3_errors
from scriptmode._core.aws.s3_uris import SCHEME, S3Location, S3Object, parse_s3_uri
from scriptmode._core.aws.signed_requests import BucketRequests, BucketSettings, environment_settings
from scriptmode._core.spec.inputs import LEAST_RATE
from scriptmode.errors import CredentialsError, DataAccessError, DataError, DataNotFoundError, ScriptmodeError, invalid

#: Up to this size one plain GET is faster than s3transfer's HEAD and ranged GETs.
SMALL_OBJECT = 8 * 1024 * 1024
STREAM_BYTES = 256 * 1024
#: The most keys of a page (ListObjectsV2, Amazon S3 API reference).
MOST_KEYS = 1000
#: Times that a small object is read before a connection that breaks is an error.
READ_ATTEMPTS = 3
#: Time limit of an answer without its object's bytes, in times without a byte that count as broken.
ANSWER_STALLS = 4
#: Another process of this account makes the bucket at the same moment, or has just made it.
_BEING_MADE = ("BucketAlreadyOwnedByYou", "OperationAborted")


_T = TypeVar("_T")


def require_credentials(uri: str) -> None:
    """Raise `CredentialsError` when boto3's standard settings give no credentials for ``uri``; asks no bucket."""
    if all(map(os.environ.get, ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))):
        return
    import botocore.session

    with translate_s3_errors(uri):
        if botocore.session.Session().get_credentials() is None:
            raise CredentialsError(f"{uri}: there are no AWS credentials", HOW_TO_GIVE_CREDENTIALS)


class S3:
    """An S3 client whose methods raise only `scriptmode.errors`; safe to share between threads.

    ``settings`` are for botocore's ``Config``.
    """

    def __init__(self, client: Any = None, settings: Mapping[str, Any] | None = None) -> None:
        self._client = client
        self._settings = dict(settings or {})
        #: By bucket what asks without boto3; None after the first answer that boto3 must explain.
        self._direct: dict[str, BucketRequests | None] = {}
        self._connecting = Lock()

    def objects(self, prefix: str) -> Iterator[S3Object]:
        """Yield every object whose key begins with the URI's, in the order of keys (UTF-8 bytes)."""
        after: str | None = None
        while after != "":
            objects, after = self.page(prefix, after=after or "")
            yield from objects

    def page(self, prefix: str, *, after: str = "", most: int = MOST_KEYS) -> tuple[list[S3Object], str]:
        """Return at most ``most`` objects of a prefix, and the ``after`` for the next call, "" at the end."""
        location = parse_s3_uri(prefix)
        if (listed := self._ask(location, lambda direct: direct.page(location.key, after, most))) is not None:
            return listed
        options = {"Bucket": location.bucket, "Prefix": location.key, "MaxKeys": most}
        with self._translated(prefix):
            page = self._connected(prefix).list_objects_v2(**options, **({"ContinuationToken": after} if after else {}))
        following = str(page.get("NextContinuationToken", ""))
        is_listing = page.keys() & {"Contents", "IsTruncated", "KeyCount", "Name"}
        if not is_listing or (page.get("IsTruncated") and not following):
            # botocore parses any XML, also a proxy's page, as a listing of nothing, and one of version 1 as the last.
            raise _foreign_answer_error(prefix, page, "a listing of version 2")
        return [
            S3Object(S3Location(location.bucket, item["Key"]), int(item["Size"]), item.get("ETag", ""))
            for item in page.get("Contents", ())
        ], following

    def head(self, uri: str, *, owner: str | None = None, checksum: bool = False) -> tuple[S3Object, Mapping[str, Any]]:
        """Return the object of exactly that key, and what else HeadObject says of it, on demand its checksum."""
        location = parse_s3_uri(uri)
        head = None if owner else self._ask(location, lambda direct: direct.head(location.key, checksum=checksum))
        if head is None:
            mode = {"ChecksumMode": "ENABLED"} if checksum else {}
            named = {"Bucket": location.bucket, "Key": location.key, **mode, **_owned(owner)}
            with self._translated(uri):
                head = self._connected(uri).head_object(**named)
        is_page = "ETag" not in head and str(head.get("ContentType", "")).startswith("text/html")
        if is_page or "ContentLength" not in head:
            # Each object of S3 has both; a proxy's page has no ETag.
            raise _foreign_answer_error(uri, head, "an object with a length and an ETag")
        return S3Object(location, int(head["ContentLength"]), str(head.get("ETag", ""))), head

    def stream(self, item: S3Object, start: int, end: int, *, window: float) -> Iterator[bytes]:
        """Yield the bytes from ``start`` up to ``end`` as they come, of the object of just that ETag if it has one.

        Raises `DataError` for another range or ETag, and for fewer than `LEAST_RATE` bytes per second in ``window``
        seconds; comparing checksums is the caller's.
        """
        uri = str(item.location)
        asked: dict[str, str] = {"IfMatch": item.etag} if item.etag else {}
        is_part = (start, end) != (0, item.size)
        asked.update({"Range": f"bytes={start}-{end - 1}"} if is_part else {})
        with self._translated(uri):
            named = {"Bucket": item.location.bucket, "Key": item.location.key}
            answer = within(uri, ANSWER_STALLS * window, lambda: self._connected(uri).get_object(**named, **asked))
            with closing(answer["Body"]) as body:
                _check_answer(item, (start, end) if is_part else None, answer)
                yield from _chunks(item, body, end - start, window)

    def bucket_settings(self, bucket: str) -> BucketSettings:
        """Return how boto3 reads a bucket, for another client."""
        return environment_settings(bucket) or self._settings_of_boto3(bucket)

    def _settings_of_boto3(self, bucket: str) -> BucketSettings:
        from botocore import utils

        uri = f"{SCHEME}{bucket}"
        with self._translated(uri):
            named = {"Bucket": bucket, "Key": "-"}
            signed = urlsplit(self._connected(uri).generate_presigned_url("get_object", Params=named))
            credentials = self._session.get_credentials()
        region = parse_qs(signed.query)["X-Amz-Credential"][0].split("/")[2]
        # A presigned URL names the first Region's host, whatever the Region is.
        host = re.sub(r"\.s3\.amazonaws\.com$", f".s3.{region}.amazonaws.com", signed.netloc)
        url = f"{signed.scheme}://{host}{signed.path[: -len('/-')]}"
        proxy = "" if is_loopback(url) else utils.get_environ_proxies(url).get(signed.scheme) or ""
        bundle = self._session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE") or ""

        def fresh_credentials() -> tuple[str, str, str | None]:
            with self._translated(uri):
                access_key, secret_key, token = credentials.get_frozen_credentials()[:3]
            return access_key, secret_key, token

        return BucketSettings(url, region, fresh_credentials, bundle, proxy)

    def exists(self, uri: str, *, kms_key: str | None = None, owner: str | None = None) -> bool:
        """Return whether an object of that very key exists, encrypted with ``kms_key``; False if access is denied.

        Without the right to list, S3 answers for a missing object as for a forbidden one: 403 (HeadObject, S3 API).
        """
        try:
            _, head = self.head(uri, owner=owner)
        except (DataNotFoundError, DataAccessError):
            return False
        # S3 answers with the key's ARN, whichever way it was named; what an alias stands for is not told.
        used = str(head.get("SSEKMSKeyId", ""))
        return kms_key is None or used.endswith(kms_key.rpartition("/")[2]) or (bool(used) and "alias/" in kms_key)

    def download(self, item: S3Object, path: Path) -> None:
        """Write an object's bytes to ``path``."""
        uri = str(item.location)
        if item.size <= SMALL_OBJECT:
            path.write_bytes(self.read_bytes(uri))
            return
        with self._translated(uri), _unwrapped():
            self._connected(uri).download_file(item.location.bucket, item.location.key, str(path))

    def uris(self, prefix: str) -> list[str]:
        """Return the URI of every object whose key begins with the URI's, in the order of keys."""
        return [str(item.location) for item in self.objects(prefix)]

    def upload_file(
        self,
        path: Path,
        uri: str,
        extra: Mapping[str, object] | None = None,
        callback: Callable[[int], object] | None = None,
    ) -> None:
        """Store a file's bytes at ``uri``; ``extra`` are boto3's ``ExtraArgs``, whose names it checks (`SpecError`).

        ``callback`` is called with the number of bytes of each part that was uploaded.
        """
        location = parse_s3_uri(uri)
        try:
            with self._translated(uri), _unwrapped():
                self._connected(uri).upload_file(
                    str(path), location.bucket, location.key, ExtraArgs=dict(extra or {}), Callback=callback
                )
        except ValueError as error:
            if isinstance(error, ScriptmodeError) or not extra:
                raise
            raise invalid("extra_args", f"is {dict(extra)!r}", f"{error}") from error

    def read_bytes(self, uri: str) -> bytes:
        """Return an object's bytes; read at most `READ_ATTEMPTS` times if the connection breaks while they come."""
        location = parse_s3_uri(uri)
        for attempt in range(1, READ_ATTEMPTS + 1):
            # botocore retries what fails before the body comes.
            with self._translated(uri):
                answer = self._connected(uri).get_object(Bucket=location.bucket, Key=location.key)
            try:
                with self._translated(uri), closing(answer["Body"]) as body:
                    return bytes(body.read())
            except DataError:
                if attempt == READ_ATTEMPTS:
                    raise
        raise AssertionError

    def fetch(self, uri: str, folder: Path) -> list[Path]:
        """Copy the object of that key into ``folder``, or else all objects below it; return the files written."""
        from scriptmode._core.aws.local_bucket import write_files

        objects = {str(item.location): item for item in self.objects(uri)}
        below = f"{uri.rstrip('/')}/"
        names = {item: item[len(below) :] for item in objects if item.startswith(below)}
        if uri in objects and not uri.endswith("/"):
            names = {uri: uri.rpartition("/")[2]}
        names = {item: name for item, name in names.items() if name and not name.endswith("/")}
        return write_files(uri, names, folder, lambda item, path: self.download(objects[item], path))

    def upload_bytes(self, content: bytes, uri: str, *, kms_key: str | None = None, owner: str | None = None) -> None:
        """Store bytes at ``uri``, encrypted with ``kms_key``; ``""`` is the key that AWS keeps for S3 in each account.

        ``owner`` is the account that the bucket must belong to.
        """
        location = parse_s3_uri(uri)
        key = {} if kms_key is None else {"ServerSideEncryption": "aws:kms"}
        if kms_key:
            key["SSEKMSKeyId"] = kms_key
        with self._translated(uri):
            self._connected(uri).put_object(
                Bucket=location.bucket, Key=location.key, Body=content, **key, **_owned(owner)
            )

    def has_bucket(self, bucket: str, *, owner: str | None) -> bool:
        """Return whether a bucket exists; raise `DataAccessError` where another account than ``owner`` has it."""
        uri = f"{SCHEME}{bucket}"
        try:
            with self._translated(uri):
                self._connected(uri).head_bucket(Bucket=bucket, **_owned(owner))
        except DataNotFoundError:
            return False
        return True

    def create_bucket(self, bucket: str, *, region: str) -> None:
        """Create a bucket; another process of the account may create it at the same time."""
        uri = f"{SCHEME}{bucket}"
        # S3's first Region is the one that must not be named (CreateBucket, S3 API).
        place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        try:
            with self._translated(uri):
                self._connected(uri).create_bucket(Bucket=bucket, **place)
        except DataError as error:
            if code_of(error) not in _BEING_MADE:
                raise

    def _ask(self, location: S3Location, request: Callable[[BucketRequests], _T | None]) -> _T | None:
        """Return the answer to a request that is sent without boto3; None where boto3 must send it."""
        bucket, direct = location.bucket, None
        try:
            if bucket not in self._direct:
                settings = environment_settings(bucket) if self._settings and self._client is None else None
                self._direct[bucket] = settings and BucketRequests(bucket, settings, self._settings["read_timeout"])
            direct = self._direct[bucket]
            answer = request(direct) if direct else None
        except BucketRequests.FAILURES as error:
            answer = None
            if direct and isinstance(error, socket.timeout):
                from botocore.exceptions import ReadTimeoutError

                with self._translated(str(location)):
                    raise ReadTimeoutError(endpoint_url=direct.settings.url, error=error) from error
        if answer is None:
            self._direct[bucket] = None
        return answer

    def _translated(self, uri: str) -> AbstractContextManager[None]:
        """Raise what boto3 raises as errors of ours that name ``uri`` and the endpoint."""
        return translate_s3_errors(uri, lambda: "" if self._client is None else str(self._client.meta.endpoint_url))

    def _connected(self, uri: str) -> Any:
        with self._connecting:
            if self._client is None:
                require_credentials(uri)
                self._client = self._connection(uri)
        return self._client

    def _connection(self, uri: str) -> Any:
        import boto3
        import botocore.session

        self._session = botocore.session.Session()
        # Half the time of a listing goes into reading modification times that no caller uses.
        self._session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=str)
        try:
            # A presigned URL tells the Region only in this signature.
            settings = {"signature_version": "s3v4", **self._settings} if self._settings else {}
            return create_client(boto3.session.Session(botocore_session=self._session), "s3", settings)
        except ValueError as error:
            raise DataError(f"{uri}: {error}", "correct AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_S3") from error


def within(uri: str, seconds: float, call: Callable[[], _T]) -> _T:
    """Return what ``call`` returns; raise `DataError` where it takes longer, and leave its thread behind.

    A client's own time-outs start again with each byte.
    """
    answer: Future[_T] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except Exception as error:  # noqa: BLE001 - raised in the thread that waits
            answer.set_exception(error)

    Thread(target=run, name="s3", daemon=True).start()
    try:
        return answer.result(seconds)
    except FutureTimeoutError:
        what = f"{uri}: the connection to the S3 endpoint is too slow: the answer was not complete after {seconds:g} s"
        raise DataError(what, "check the network to it") from TimeoutError()


def _chunks(item: S3Object, body: Any, size: int, window: float) -> Iterator[bytes]:
    """Yield ``size`` bytes of an object as they come; raise where they end early or come too slowly."""
    from botocore.exceptions import IncompleteReadError

    began, before, done = time.monotonic(), 0, 0
    while data := _read_some(body):
        yield data
        done += len(data)
        if (seconds := time.monotonic() - began) < window:
            continue
        if done - before < LEAST_RATE * seconds:
            came = (
                f"{done - before:,} bytes came in {seconds:.0f} s, and at least {LEAST_RATE:,} a second were expected"
            )
            what = f"{item.location}: the connection to the S3 endpoint is too slow: {came}"
            raise DataError(what, "check the network to it") from TimeoutError()
        began, before = time.monotonic(), done
    if done < size:
        raise IncompleteReadError(actual_bytes=done, expected_bytes=size)


def _read_some(body: Any) -> bytes:
    """Return the next bytes of a response's body once any have come, b"" at its end; raise what botocore's read raises.

    botocore's own read waits for as many as it was asked for, however slowly they come.
    """
    from botocore.exceptions import ReadTimeoutError, ResponseStreamingError
    from urllib3 import exceptions

    raw = body._raw_stream  # noqa: SLF001 - the only way to bytes as they come
    try:
        # urllib3 1.26, botocore's for Python 3.9, has no read1; http.client's response has.
        return bytes(raw.read1(STREAM_BYTES) if hasattr(raw, "read1") else raw._fp.read1(STREAM_BYTES))  # noqa: SLF001
    except (exceptions.ReadTimeoutError, socket.timeout) as error:
        raise ReadTimeoutError(endpoint_url=getattr(error, "url", None), error=error) from error
    except (exceptions.ProtocolError, OSError) as error:
        raise ResponseStreamingError(error=error) from error


def _check_answer(item: S3Object, span: tuple[int, int] | None, answer: Mapping[str, Any]) -> None:
    """Raise `DataError` where GetObject's response is not for ``item``, or not for the range ``span`` of its bytes."""
    etag, told = str(answer.get("ETag", "")), str(answer.get("ContentRange", ""))
    if item.etag and etag and etag != item.etag:
        if etag == f"W/{item.etag}":
            raise unexpected_answer_error(item, f"a weak ETag, {etag}", f"{item.etag} was")
        raise changed_object_error(item, f"it has the ETag {etag} now")
    if span is None:
        length = answer.get("ContentLength")
        if length not in (None, item.size):
            raise unexpected_answer_error(item, f"{length:,} bytes, {_described(answer)},", f"{item.size:,} bytes were")
        return
    wanted = f"bytes {span[0]}-{span[1] - 1} were"
    match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", told)
    if match is None:
        range_text = f"with the range {told!r}" if told else "without a range"
        raise unexpected_answer_error(item, f"an answer {range_text}, {_described(answer)},", wanted)
    if match[3] not in ("*", str(item.size)):
        raise changed_object_error(item, f"it has {int(match[3]):,} bytes now, and had {item.size:,}")
    if (int(match[1]), int(match[2])) != (span[0], span[1] - 1):
        raise unexpected_answer_error(item, f"the range {told!r}", wanted)


def _described(answer: Mapping[str, Any]) -> str:
    """Return the status and the type of a response's content as text."""
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", "unknown")
    kind = str(answer.get("ContentType", ""))
    return f"status {status}" + (f" and type {kind}" if kind.startswith("text/") else "")


def _foreign_answer_error(uri: str, answer: Mapping[str, Any], expected: str) -> DataError:
    """Return the error for a successful response that is not S3's."""
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    came = f"{headers.get('content-type', 'of no type')}, {headers.get('content-length', 'unknown')} bytes"
    return DataError(f"{uri}: S3's answer is {came}, where {expected} was expected", NOT_S3)


def unexpected_answer_error(item: S3Object, came: str, expected: str) -> DataError:
    """Return the error for a response that is not for the object; ``expected`` ends with ``was`` or ``were``."""
    what = f"{item.location}: S3 returned {came} where {expected} expected"
    return DataError(what, "use another endpoint, or another proxy")


def changed_object_error(item: S3Object, evidence: str) -> DataError:
    """Return the error for an object that was changed after it was listed; ``evidence`` says what shows that."""
    what = f"{item.location}: the object was changed while the job read it (ETag {item.etag} at first; {evidence})"
    return DataError(what, "do not change a job's input until the job has ended")


def _owned(owner: str | None) -> dict[str, str]:
    return {"ExpectedBucketOwner": owner} if owner else {}


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Return the error that boto3's transfers wrapped in one of their own."""
    from boto3.exceptions import Boto3Error

    try:
        yield
    except Boto3Error as error:
        # s3transfer gives up after some attempts, and keeps what the last one raised.
        hidden = getattr(error.__context__, "last_exception", error.__context__)
        if isinstance(hidden, Exception):
            raise hidden from error
        raise DataError(str(error)) from error
