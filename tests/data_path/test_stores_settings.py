"""S3 is read as boto3's standard settings say: endpoint, Region, certificates, credentials that change, proxies."""

import datetime as dt
import json
import os
import random
import ssl
import subprocess
import sys

import pytest
from fakes.faulty_s3 import FaultyS3

from scriptmode._core.aws.s3 import S3
from scriptmode._core.aws.signed_requests import environment_settings
from scriptmode.errors import DataError
from scriptmode_local._data.object_store import StoredObject
from scriptmode_local._data.s3_store import S3Store

pytestmark = pytest.mark.slow

CONTENT = random.Random(9).randbytes(3_000_000)
OBJECTS = {"x": CONTENT}


@pytest.fixture
def secure_server(certificate, monkeypatch, no_credentials):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    with FaultyS3({**OBJECTS}, tls=tls) as running:
        running.use(monkeypatch)
        yield running


def is_read_without_boto3(store):
    """Whether the store's bucket was read without boto3."""
    return store._bucket("bkt").works and not store._bucket("bkt").failures


def test_servers_are_verified_against_a_custom_ca_bundle(secure_server, certificate, monkeypatch):
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate[0]))
    store = S3Store()
    item = store.find("s3://bkt/x")
    assert store._s3._direct["bkt"] is not None  # nor did boto3 look it up
    assert b"".join(store.read(item, 0, item.size)) == CONTENT
    assert b"".join(store.read(item, 1_000, 2_000_000)) == CONTENT[1_000:2_000_000]
    assert is_read_without_boto3(store)


def test_an_untrusted_server_is_not_read(secure_server, monkeypatch):
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    with pytest.raises(DataError, match="certificate"):
        S3Store(retry_seconds=0.2).read(StoredObject("s3://bkt/x", 5), 0, 5)
    assert secure_server.gets == 0


@pytest.mark.usefixtures("secure_server")
def test_a_missing_file_of_authorities_is_an_error(monkeypatch):
    monkeypatch.setenv("AWS_CA_BUNDLE", "/none")
    with pytest.raises(DataError, match="No such file"):
        S3Store(retry_seconds=0.2).read(StoredObject("s3://bkt/x", 5), 0, 5)


def process_credentials(folder, monkeypatch, expires):
    """Have boto3 ask a program for credentials, which gives other ones each time."""
    program = folder / "credentials.py"
    program.write_text(
        "import json, pathlib\n"
        f"count = pathlib.Path({str(folder / 'count')!r})\n"
        "number = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(number))\n"
        f"print(json.dumps({{'Version': 1, 'AccessKeyId': f'key-{{number}}', 'SecretAccessKey': 's', 'SessionToken': 'token',"
        f" 'Expiration': {expires!r}}}))\n"
    )
    (folder / "config").write_text(f"[profile own]\ncredential_process = {json.dumps(sys.executable)} {program}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    monkeypatch.setenv("AWS_PROFILE", "own")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("server")
def test_credentials_that_expire_are_renewed_while_reading(tmp_path, monkeypatch):
    soon = (dt.datetime.now(dt.timezone.utc) + dt.timedelta(minutes=12)).strftime("%Y-%m-%dT%H:%M:%SZ")
    process_credentials(tmp_path, monkeypatch, soon)
    settings = S3(settings={"read_timeout": 5}).bucket_settings("bkt")
    # boto3 renews them in the last 15 minutes.
    first, second = settings.credentials(), settings.credentials()
    assert first != second
    assert second[2] == "token"
    store = S3Store()
    item = store.find("s3://bkt/x")
    assert b"".join(store.read(item, 0, item.size)) == CONTENT
    assert is_read_without_boto3(store)


@pytest.mark.usefixtures("server")
def test_what_fails_with_the_bytes_is_no_failure_of_s3():
    store = S3Store()
    item = store.find("s3://bkt/x")
    with pytest.raises(OSError, match="Bad file descriptor"):
        store.read_unverified(item, 0, item.size, lambda *_: os.close(-1))


@pytest.mark.parametrize(
    ("settings", "url", "is_enough"),
    [
        ({}, "https://bkt.s3.eu-west-1.amazonaws.com", True),
        ({"AWS_DEFAULT_REGION": ""}, "https://bkt.s3.us-east-1.amazonaws.com", False),
        ({"AWS_DEFAULT_REGION": "cn-north-1"}, "https://bkt.s3.cn-north-1.amazonaws.com.cn", False),
        ({"AWS_USE_DUALSTACK_ENDPOINT": "true"}, "https://bkt.s3.dualstack.eu-west-1.amazonaws.com", False),
        ({"AWS_ENDPOINT_URL": "http://localhost:99/base/"}, "http://localhost:99/base/bkt", False),
        ({"AWS_ENDPOINT_URL": "http://no:1", "AWS_ENDPOINT_URL_S3": "http://yes:2/"}, "http://yes:2/bkt", True),
        ({"AWS_ENDPOINT_URL": "https://s3-accelerate.amazonaws.com"}, "https://bkt.s3-accelerate.amazonaws.com", False),
        ({"AWS_CONFIG_FILE": os.devnull}, "https://bkt.s3.eu-west-1.amazonaws.com", False),
        ({"https_proxy": "http://proxy"}, "https://bkt.s3.eu-west-1.amazonaws.com", False),
        ({"https_proxy": "http://proxy", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "http://127.0.0.1:1/bkt", True),
    ],
)
def test_a_bucket_is_where_boto3_has_it(monkeypatch, no_credentials, settings, url, is_enough):
    usual = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "eu-west-1"}
    monkeypatch.delenv("https_proxy", raising=False)
    for name, value in {**usual, **settings}.items():
        if value:
            monkeypatch.setenv(name, value)
    of_boto3, of_variables = S3(settings={"read_timeout": 5})._settings_of_boto3("bkt"), environment_settings("bkt")
    region = os.environ.get("AWS_DEFAULT_REGION", "us-east-1")
    for found in (of_boto3, *([of_variables] if is_enough else [])):
        assert (found.url, found.region, found.credentials()) == (url, region, ("a", "b", None))
    assert (of_variables is not None) == is_enough
    assert environment_settings("zone--x-s3") is environment_settings("point-s3alias") is None


def test_checks_and_downloads_load_no_boto3_where_the_environment_has_the_credentials(monkeypatch, no_credentials):
    with FaultyS3({"x": CONTENT}, checksums={"x": {"crc32": "AAAAAA=="}}) as server:
        server.use(monkeypatch)
        code = (
            "import sys; from scriptmode_local._data.s3_store import S3Store\n"
            "store = S3Store(); (item,) = store.objects('s3://bkt/'); assert store.find(item.uri) == item\n"
            "store.read_unverified(item, 0, item.size, print); assert store._verifier.checksum(item, thorough=True)\n"
            "from scriptmode._core.aws import s3; s3.require_credentials(item.uri)\n"
            "from scriptmode_local._inputs import s3_locations; s3_locations._require_bucket(store, 's3://bkt/out')\n"
            "assert 'botocore' not in sys.modules\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


@pytest.mark.parametrize("is_here", [False, True], ids=["elsewhere", "on this machine"])
def test_requests_go_through_the_proxy_but_to_an_endpoint_of_this_machine(monkeypatch, server, is_here):
    if not is_here:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://s3.example")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9" if is_here else server.endpoint)
    monkeypatch.delenv("no_proxy", raising=False)
    store = S3Store()
    item = store.find("s3://bkt/x")
    assert b"".join(store.read(item, 7, item.size)) == CONTENT[7:]
    assert is_read_without_boto3(store)


PREPARED = """
import os; from scriptmode_local._data.stores import Stores
stores = Stores(); stores.prepare('s3://bkt/x')
for _ in range(3):
    if not (child := os.fork()):
        store = stores.store_of('s3://bkt/x'); item = store.find('s3://bkt/x')
        same = [len(b''.join(store.read(item, at, item.size))) == item.size - at for at in (0, 1, 2)]
        os._exit(0 if all(same) and store._bucket('bkt').works else 1)
    assert os.waitpid(child, 0)[1] == 0
"""
READ_BEFORE = """
import os; from scriptmode_local._data.s3_store import S3Store
item = S3Store().find('s3://bkt/x'); S3Store().read(item, 0, item.size)
if not (child := os.fork()): os._exit(sum(map(len, S3Store().read(item, 0, item.size))) != item.size)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize(("code", "gets"), [(PREPARED, 9), (READ_BEFORE, None)], ids=["prepared", "read through boto3"])
def test_a_forked_child_reads_what_its_parent_prepared_or_read_itself(server, code, gets):
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
    assert gets in (None, server.gets)
