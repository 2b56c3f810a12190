"""Faults between the job and S3 cost time and never a byte; a dead connection raises an error with the reason."""

import os
import random
import time

import pytest
from fakes.faulty_s3 import Fault, Request
from fakes.promptness import soon

from scriptmode._core.aws import s3
from scriptmode._core.aws.s3_uris import S3Object, parse_s3_uri
from scriptmode.errors import DataAccessError, DataError
from scriptmode_local._data.object_store import StoredObject
from scriptmode_local._data.s3_store import S3Store

pytestmark = pytest.mark.slow

CONTENT = random.Random(1).randbytes(300_000)
OBJECTS = {"x": CONTENT}


def read(store, start=0, end=None):
    item = store.find("s3://bkt/x")
    return b"".join(store.read(item, start, item.size if end is None else end))


def first(count, fault):
    """Let ``count`` GETs fail."""
    left = iter(range(count))
    return lambda request: fault if request.is_get and next(left, None) is not None else None


CUTS = [None, 0, 1, 65_535, 65_536, 65_537, 262_144, len(CONTENT) - 1]


@pytest.mark.parametrize(("start", "at"), [(1_000 * (number % 2), at) for number, at in enumerate(CUTS)])
def test_a_connection_that_breaks_at_any_byte_loses_and_repeats_none(server, at, start):
    server.fault = first(1, Fault(cut=True, at=at))
    assert read(S3Store(), start) == CONTENT[start:]


def test_a_retry_requests_only_the_missing_bytes(server):
    server.fault = first(3, Fault(cut=True, at=70_000))
    assert read(S3Store()) == CONTENT
    asked = [request.span for request in server.asked if request.is_get]
    assert asked == ["", *(f"bytes={70_000 * turn}-{len(CONTENT) - 1}" for turn in (1, 2, 3))]


@pytest.mark.parametrize(
    ("status", "code"), [(500, "InternalError"), (503, "SlowDown"), (429, "TooManyRequests"), (400, "RequestTimeout")]
)
def test_transient_errors_are_retried(server, status, code):
    server.fault = first(4, Fault(status=status, code=code))
    assert read(S3Store(retry_seconds=20)) == CONTENT


@pytest.mark.parametrize(("times", "at"), [(1, None), (2, 100_000)])
def test_a_connection_that_stalls_counts_as_broken(server, times, at):
    server.fault = first(times, Fault(stall=True, at=at))
    assert read(S3Store(stall=0.5)) == CONTENT


def test_a_slow_connection_is_not_a_stall(server):
    server.contents["x"] = CONTENT[:15_000]
    server.fault = first(1, Fault(rate=5_000))
    assert read(S3Store(stall=2.5), 0, 15_000) == CONTENT[:15_000]
    assert server.gets == 1


@pytest.mark.prompt
@pytest.mark.parametrize(
    ("method", "ask", "trickle"),
    [
        ("HEAD", read, Fault(headers=900, rate=20)),
        ("GET", read, Fault(headers=900, rate=20)),
        ("GET", lambda store: list(store.objects("s3://bkt/")), Fault(rate=50)),
    ],
    ids=["HeadObject", "GetObject", "ListObjectsV2"],
)
def test_an_answer_that_trickles_counts_as_broken(server, method, ask, trickle):
    server.fault = lambda request: trickle if request.method == method else None
    began = time.monotonic()
    with pytest.raises(DataError, match=r"is too slow: the answer was not complete after 4 s; check the network"):
        ask(S3Store(retry_seconds=1, stall=1))  # its server may be silent for some tenths of a second
    soon(time.monotonic() - began, 9)


LOGIN = Fault(page=b"<html>Log in</html>")
#: The first page of a server that has only version 1 of listings, which names no following one.
FIRST = Fault(page=b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>")


@pytest.mark.parametrize(
    "ask", [lambda store: list(store.objects("s3://bkt/")), lambda store: store.find("s3://bkt/x")]
)
@pytest.mark.parametrize("faults", [{"GET": LOGIN, "HEAD": LOGIN}, {"GET": FIRST, "HEAD": Fault(endless=True)}])
def test_another_answer_than_s3s_is_an_error_that_names_its_type(server, ask, faults):
    server.fault = lambda request: faults[request.method]
    with pytest.raises(DataError, match=r"^s3://bkt/x?: S3's answer is .*, \w+ bytes, where an? .* was expected"):
        ask(S3Store(retry_seconds=0.5))


def test_a_download_that_trickles_for_a_time_is_completed_after_the_bytes_that_came(server):
    server.contents["x"] = content = random.Random(3).randbytes(3_000_000)
    server.fault = first(1, Fault(cut=True, at=2_200_000))
    trickles = iter([Fault(rate=10)])
    cut = server.fault
    server.fault = lambda request: cut(request) or (next(trickles, None) if request.span else None)
    assert read(S3Store(stall=0.5)) == content
    spans = [request.span for request in server.asked if request.is_get]
    assert int(spans[-1].partition("=")[2].partition("-")[0]) > 1_000_000


@pytest.mark.parametrize("heeds_if_match", [True, False])
def test_an_object_that_changes_between_two_requests_is_an_error(server, heeds_if_match):
    server.heeds_if_match = heeds_if_match
    store = S3Store()
    item = store.find("s3://bkt/x")
    assert b"".join(store.read(item, 0, 10)) == CONTENT[:10]
    server.contents["x"] = os.urandom(len(CONTENT))
    with pytest.raises(DataError, match=rf"s3://bkt/x: the object was changed while .* it \(ETag {item.version}"):
        store.read(item, 10, 20)


def test_an_object_that_changes_before_a_download_is_resumed_is_an_error(server):
    store = S3Store()
    item = store.find("s3://bkt/x")
    change = Fault(act=lambda: server.contents.update(x=CONTENT[::-1]))
    server.fault = lambda request: change if request.span.startswith("bytes=1000-") else Fault(cut=True, at=1_000)
    with pytest.raises(DataError, match=r"the object was changed while the job read it"):
        store.read(item, 0, item.size)


def test_an_object_that_may_not_be_read_any_more_is_an_error_at_once(server):
    server.fault = first(10_000, Fault(status=403, code="AccessDenied"))
    with pytest.raises(DataAccessError, match=r"s3://bkt/x: access denied"):
        read(S3Store())
    assert server.gets <= 2


def test_a_bucket_of_another_region_is_an_error_with_the_code_of_s3(server):
    server.fault = first(10_000, Fault(status=301, code="PermanentRedirect"))
    with pytest.raises(DataError, match=r"s3://bkt/x: S3 answered PermanentRedirect: .*; look the code up in S3's"):
        read(S3Store())


@pytest.mark.parametrize("fault", [Fault(status=503, code="SlowDown"), Fault(cut=True)], ids=["throttled", "cut"])
def test_a_listing_is_retried(server, fault):
    server.contents.update({f"many/{number:05}": b"1" for number in range(2_500)})
    failing = iter([False, True, False, True, True])
    server.fault = lambda request: fault if not request.key and next(failing, False) else None
    found = [item.uri for item in S3Store().objects("s3://bkt/many/")]
    assert found == [f"s3://bkt/many/{number:05}" for number in range(2_500)]


def test_a_kept_connection_that_the_server_closed_is_replaced(server):
    store = S3Store()
    item = store.find("s3://bkt/x")
    closing = Fault(cut=True, at=len(CONTENT))
    server.fault = first(1, closing)
    assert [b"".join(store.read(item, 0, item.size)) for _ in range(3)] == [CONTENT] * 3
    assert server.gets == 3


@pytest.mark.parametrize(
    "key", ["a//b", "/a", "a/", "a/./b", "../a", ".", "a\nb", "a\x01b", "é\u0301/😀 %41?#&+=;:@!$'()*,", "//", "a\\b"]
)
def test_a_key_is_requested_as_it_is_written(server, key):
    server.contents[key] = key.encode()
    store = S3Store()
    item = StoredObject(f"s3://bkt/{key}", len(key.encode()), server.etag(key))
    assert b"".join(store.read(item, 0, item.size)) == key.encode()
    assert server.asked[-1] == Request("GET", key, "")
    assert server.gets == 1


def test_a_small_object_whose_transfer_breaks_once_is_read_again(server):
    left = [Fault(cut=True, at=0)]
    server.fault = lambda request: left.pop() if request.is_get and left else None
    assert s3.S3().read_bytes("s3://bkt/x") == CONTENT


def test_a_large_download_that_always_breaks_is_one_of_our_errors(server, tmp_path):
    content = bytes(s3.SMALL_OBJECT + 1)
    server.contents["large"] = content
    server.fault = lambda request: Fault(cut=True, at=0) if request.is_get else None
    with pytest.raises(DataError, match=r"s3://bkt/large: the connection to the S3 endpoint .* broke"):
        s3.S3().download(S3Object(parse_s3_uri("s3://bkt/large"), len(content)), tmp_path / "target")
