"""Damaged bytes are read again where they were not passed on yet; otherwise the channel fails."""

import base64
import hashlib
import random
import ssl
import zlib
from functools import partial

import pytest
from fakes.faulty_s3 import Fault, FaultyS3
from fakes.processes import until
from fakes.views import tree

from scriptmode.errors import DataError
from scriptmode_local._data import integrity, staging
from scriptmode_local._data.object_store import CHUNK_BYTES as PART
from scriptmode_local._data.prefetch import prefetch
from scriptmode_local._data.s3_store import S3Store

pytestmark = pytest.mark.slow

SMALL = random.Random(1).randbytes(100_000)
LARGE = random.Random(2).randbytes(2 * PART + 5_000)
OBJECTS = {"small": SMALL, "large": LARGE}
#: Reflected polynomials, as their standards write them (CRC RevEng catalogue).
CRC32C, CRC64NVME = 0x82F63B78, 0x9A6C9329AC4BC9B5


def crc(content, polynomial, bits):
    """The plain definition, a bit at a time."""
    value = mask = (1 << bits) - 1
    for byte in content:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
    return base64.b64encode((value ^ mask).to_bytes(bits // 8, "big")).decode()


def crc32(content):
    return base64.b64encode(zlib.crc32(content).to_bytes(4, "big")).decode()


def file_mode(server, key, _, tmp_path):
    store = S3Store(retry_seconds=2)
    staging.fetch([(store.find(f"s3://bkt/{key}"), "x")], tmp_path / "data", lambda _done, _total: None)
    return (tmp_path / "data" / "x").read_bytes()


def pipe_mode(server, key, _, __):
    store = S3Store(retry_seconds=2)
    return b"".join(bytes(chunk.data) for chunk in prefetch(lambda _: store, iter([store.find(f"s3://bkt/{key}")])))


def found(key, store):
    return [(store.find(f"s3://bkt/{key}"), "x")]


def fast_file_mode(server, key, views, tmp_path):
    make = partial(tree, partial(found, key), partial(S3Store, retry_seconds=2))
    view = views.mount(make, tmp_path / "train")
    try:
        return (tmp_path / "train" / "x").read_bytes()
    except OSError as error:
        until(lambda: view.poll() or view.unreadable)
        raise DataError(view.unreadable[0]) from error


MODES = pytest.mark.parametrize("mode", [file_mode, pipe_mode, fast_file_mode])


@pytest.mark.parametrize(
    ("mode", "excess", "key"),
    [(file_mode, 1, "large"), (pipe_mode, 4_000, "small"), (fast_file_mode, 3_000_000, "large")],
)
def test_bytes_beyond_the_length_are_rejected(server, views, tmp_path, mode, excess, key):
    server.fault = lambda request: Fault(excess=b"?" * excess) if request.is_get else None
    assert mode(server, key, views, tmp_path) == server.contents[key]


def test_bytes_beyond_the_length_do_not_start_the_next_response(server):
    server.fault = lambda request: Fault(excess=b"?" * 50) if request.is_get else None
    store = S3Store()
    item = store.find("s3://bkt/small")
    for start in range(0, 90_000, 10_000):
        assert b"".join(store.read(item, start, start + 10_000)) == SMALL[start : start + 10_000]


@MODES
def test_a_bit_that_flipped_once_in_a_small_object_costs_one_more_request(server, views, tmp_path, mode):
    server.etags["small"] = SMALL, '"no-checksum-1"'
    server.checksums["small"] = {"crc32": crc32(SMALL)}
    left = [Fault(flip=77_777)]
    server.fault = lambda request: left.pop() if request.is_get and left else None
    assert mode(server, "small", views, tmp_path) == SMALL
    assert server.gets == 2


@MODES
def test_a_bit_that_flips_each_time_in_the_first_part_of_an_object_is_an_error(server, views, tmp_path, mode):
    server.etags["large"] = LARGE, '"no-checksum-1"'
    server.checksums["large"] = {"crc32": crc32(LARGE)}
    offsets = iter(range(0, len(LARGE), 1009))

    def flips(request):
        return request.is_get and (not request.span or request.span.startswith("bytes=0-"))

    server.fault = lambda request: Fault(flip=next(offsets)) if flips(request) else None
    with pytest.raises(DataError, match=r"s3://bkt/large: the downloaded bytes are not the object's: their CRC32 is"):
        mode(server, "large", views, tmp_path)


@MODES
@pytest.mark.parametrize("checksums", [{}, {"crc32": "AAAAAA==-3"}], ids=["none", "a composed one"])
def test_a_large_object_without_a_checksum_of_its_own_is_not_compared(server, views, tmp_path, mode, checksums):
    server.etags["large"] = LARGE, '"no-checksum-3"'
    server.checksums["large"] = checksums
    assert mode(server, "large", views, tmp_path) == LARGE
    if mode is not file_mode:
        # One looks the object up, one asks for its checksum.
        assert sum(request.method == "HEAD" for request in server.asked) <= 2


@pytest.mark.parametrize(
    ("algorithm", "value"),
    {
        "crc64nvme": lambda content: crc(content, CRC64NVME, 64),
        "crc32c": lambda content: crc(content, CRC32C, 32),
        "crc32": crc32,
        "sha1": lambda content: base64.b64encode(hashlib.sha1(content).digest()).decode(),
        "sha256": lambda content: base64.b64encode(hashlib.sha256(content).digest()).decode(),
    }.items(),
)
def test_every_algorithm_of_s3_is_compared(server, algorithm, value):
    content = SMALL[:2_000]
    server.contents["y"] = content
    server.etags["y"] = content, '"no-checksum-1"'
    server.checksums["y"] = {algorithm: value(content)}
    assert pipe_mode(server, "y", None, None) == content
    server.checksums["y"] = {algorithm: value(content[::-1])}
    with pytest.raises(DataError, match=rf"s3://bkt/y: .* their {algorithm.upper()} is .*, but S3 has"):
        pipe_mode(server, "y", None, None)


def test_the_cheapest_checksum_is_compared():
    headers = {f"x-amz-checksum-{name}": "x" for name in integrity.ALGORITHMS}
    etag = f'"{"a" * 32}"'
    order = []
    while (found := integrity.checksum(headers, etag)) and found.algorithm != "md5":
        order.append(found.algorithm)
        del headers[f"x-amz-checksum-{found.algorithm}"]
    assert order == ["crc64nvme", "crc32c", "crc32", "sha1", "sha256"]
    assert integrity.checksum({}, etag) == ("md5", "a" * 32)
    assert integrity.checksum({"x-amz-server-side-encryption": "aws:kms:dsse"}, etag) is None
    assert integrity.checksum({}, '"' + "a" * 32 + '-2"') is None


@pytest.fixture
def tls_server(monkeypatch, no_credentials, certificate):
    chain, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    with FaultyS3({"small": SMALL, "more": LARGE[:3_000_000]}, tls=context) as running:
        running.use(monkeypatch)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(chain))
        yield running


@pytest.mark.parametrize("key", ["small", "more"])
def test_a_stream_over_tls_costs_no_md5(tls_server, key):
    tls_server.etags[key] = tls_server.contents[key], f'"{"a" * 32}"'
    assert pipe_mode(tls_server, key, None, None) == tls_server.contents[key]
    assert tls_server.gets == 1
    if key == "small":
        # It is looked up, and read: it costs no request for its checksum.
        assert len(tls_server.asked) == 2


def test_a_large_object_over_tls_is_compared_with_its_checksum(tls_server):
    tls_server.checksums["more"] = {"crc32": "AAAAAA=="}
    with pytest.raises(DataError, match="CRC32"):
        pipe_mode(tls_server, "more", None, None)


@MODES
def test_an_encrypted_object_is_compared_with_its_checksum(server, views, tmp_path, mode):
    server.headers["x-amz-server-side-encryption"] = "aws:kms"
    server.etags["small"] = SMALL, f'"{"a" * 32}"'
    server.checksums["small"] = {"crc32": crc32(SMALL)}
    assert mode(server, "small", views, tmp_path / "right") == SMALL
    assert server.gets == 1
    server.checksums["small"] = {"crc32": crc32(SMALL[::-1])}
    with pytest.raises(DataError, match=r"their CRC32 is .*, but S3 has .*, twice"):
        mode(server, "small", views, tmp_path / "wrong")


@pytest.mark.parametrize(
    "headers",
    [{"x-amz-server-side-encryption": "aws:kms"}, {"x-amz-server-side-encryption-customer-algorithm": "AES256"}],
    ids=["a key of KMS", "a key of the client"],
)
@pytest.mark.parametrize("key", ["small", "large"])
def test_the_etag_of_an_encrypted_object_is_not_compared(server, headers, key):
    server.headers.update(headers)
    server.etags[key] = server.contents[key], f'"{"a" * 32}"'
    assert pipe_mode(server, key, None, None) == server.contents[key]


def test_an_encrypted_object_does_not_excuse_another(server, views, tmp_path):
    store = S3Store(retry_seconds=2)
    server.headers["x-amz-server-side-encryption"] = "aws:kms"
    server.etags["small"] = SMALL, f'"{"a" * 32}"'
    found = store.find("s3://bkt/small")
    assert b"".join(store.read(found, 0, found.size)) == SMALL
    server.headers.clear()
    with pytest.raises(DataError, match="their MD5 is"):
        store.read(found, 0, found.size)
