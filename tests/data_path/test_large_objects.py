"""Large objects come whole and in order, over one connection each, whatever happens to that."""

import os
import random
import ssl

import pytest
from fakes.faulty_s3 import Fault, FaultyS3, Request

from scriptmode._core.aws.s3_body import Body
from scriptmode.errors import DataError
from scriptmode_local._data import large_objects
from scriptmode_local._data.object_store import CHUNK_BYTES
from scriptmode_local._data.s3_store import S3Store

pytestmark = pytest.mark.slow

SIZES = {"a": CHUNK_BYTES + 1, "b": 2 * CHUNK_BYTES + 7, "c": CHUNK_BYTES + 1, "d": 5, "e": CHUNK_BYTES + 1}
CONTENTS = {key: random.Random(key).randbytes(size) for key, size in SIZES.items()}
#: The ETag of an object in parts is compared with nothing.
IN_PARTS = {key: (content, f'"{key}-2"') for key, content in CONTENTS.items()}


def read(store):
    """Return what a pipe's reader gets of all objects."""
    content, (reader, writer) = bytearray(), os.pipe()
    with os.fdopen(reader, "rb") as end, os.fdopen(writer, "wb"):
        for data in large_objects.stream(lambda _: store, store.objects("s3://bkt/"), waiting=lambda: None):
            content += end.read(data.splice(writer)) if isinstance(data, Body) else data
    return bytes(content)


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_they_are_requested_as_a_whole(monkeypatch, no_credentials, certificate, is_encrypted):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate[0]))
    with FaultyS3({"a": CONTENTS["a"]}, etags=dict(IN_PARTS), tls=tls if is_encrypted else None) as server:
        server.use(monkeypatch)
        assert read(S3Store()) == CONTENTS["a"]
        assert next(request for request in server.asked if request.is_get) == Request("GET", "a", "")


FAULTS = {
    "cut in the head's packet": Fault(cut=True, at=0), "cut": Fault(cut=True, at=CHUNK_BYTES + 3), "slow": Fault(rate=5_000_000),
    "stalled": Fault(stall=True, at=70_000), "refused": Fault(status=503, code="SlowDown"), "of another ETag": Fault(etag='"x"'),
    "followed by an answer": Fault(excess=f"HTTP/1.1 200 OK\r\nContent-Length: {SIZES['c']}\r\n\r\n".encode() + bytes(SIZES["c"])),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_rest_of_one_whose_connection_fails_is_read_by_others(server, fault):
    server.contents, server.etags, whole = dict(CONTENTS), dict(IN_PARTS), Request("GET", "b", "")
    server.fault = lambda request: fault if request == whole else None
    assert read(S3Store(stall=1)) == b"".join(CONTENTS.values())
    assert server.asked.count(whole) == 1


def test_chunks_that_have_a_length_as_well_are_left_to_boto3(server):
    server.contents, server.headers, store = {"a": CONTENTS["a"]}, {"Transfer-Encoding": "chunked"}, S3Store()
    (item,) = store.objects("s3://bkt/")
    assert store.open(item, 0, item.size, list) is None


def test_what_has_a_checksum_is_compared_with_it(server):
    server.contents = {"a": CONTENTS["a"]}
    server.fault = lambda request: Fault(flip=77) if request.is_get else None
    with pytest.raises(DataError, match="bytes are not the object's"):
        read(S3Store())
