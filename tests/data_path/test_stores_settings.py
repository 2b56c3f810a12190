"""S3 is read as boto3's standard settings say: endpoint, Region, certificates, credentials that change, proxies."""

import datetime as dt
import json
import random
import ssl
import subprocess
import sys

import pytest
from fakes.faulty_s3 import FaultyS3

from scriptmode.aws.s3 import S3
from scriptmode.data.object_store import StoredObject
from scriptmode.data.s3_store import S3Store
from scriptmode.errors import DataError

pytestmark = pytest.mark.slow

CONTENT = random.Random(9).randbytes(3_000_000)


@pytest.fixture
def secure_server(certificate, monkeypatch, no_credentials):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    with FaultyS3({"x": CONTENT}, tls=tls) as running:
        running.use(monkeypatch)
        yield running


def test_servers_are_verified_against_a_custom_ca_bundle(secure_server, certificate, monkeypatch):
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate[0]))
    store = S3Store()
    item = store.find("s3://bkt/x")
    assert bytes(store.read(item, 0, item.size)) == CONTENT
    assert bytes(store.read(item, 1_000, 2_000_000)) == CONTENT[1_000:2_000_000]
    # The fast way, not boto3.
    assert store._bucket("bkt").works


def test_an_untrusted_server_is_not_read(secure_server, monkeypatch):
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    with pytest.raises(DataError, match="certificate"):
        S3Store(retry_seconds=0.2).read(StoredObject("s3://bkt/x", 5), 0, 5)
    assert secure_server.gets == 0


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


def test_credentials_that_expire_are_renewed_while_reading(tmp_path, monkeypatch, no_credentials):
    soon = (dt.datetime.now(dt.timezone.utc) + dt.timedelta(minutes=12)).strftime("%Y-%m-%dT%H:%M:%SZ")
    with FaultyS3({"x": CONTENT}) as server:
        server.use(monkeypatch)
        process_credentials(tmp_path, monkeypatch, soon)
        wire = S3(settings={"read_timeout": 5}).wire("bkt")
        # boto3 renews them in the last 15 minutes.
        first, second = wire.credentials(), wire.credentials()
        assert first != second
        assert second[2] == "token"
        store = S3Store()
        item = store.find("s3://bkt/x")
        assert bytes(store.read(item, 0, item.size)) == CONTENT


@pytest.mark.parametrize(
    ("settings", "url", "region"),
    [
        ({}, "https://bkt.s3.us-east-1.amazonaws.com", "us-east-1"),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, "https://bkt.s3.eu-west-1.amazonaws.com", "eu-west-1"),
        ({"AWS_DEFAULT_REGION": "cn-north-1"}, "https://bkt.s3.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        (
            {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_USE_DUALSTACK_ENDPOINT": "true"},
            "https://bkt.s3.dualstack.eu-west-1.amazonaws.com",
            "eu-west-1",
        ),
        ({"AWS_ENDPOINT_URL": "http://localhost:99/base/"}, "http://localhost:99/base/bkt", "us-east-1"),
        ({"AWS_ENDPOINT_URL": "http://no:1", "AWS_ENDPOINT_URL_S3": "http://yes:2"}, "http://yes:2/bkt", "us-east-1"),
    ],
)
def test_a_bucket_is_where_boto3_has_it(monkeypatch, no_credentials, settings, url, region):
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", **settings}.items():
        monkeypatch.setenv(name, value)
    wire = S3(settings={"read_timeout": 5}).wire("bkt")
    assert (wire.url, wire.region, wire.credentials()) == (url, region, ("a", "b", None))


def test_requests_through_a_proxy_are_left_to_boto3(monkeypatch, no_credentials):
    with FaultyS3({"x": CONTENT}) as proxy:
        proxy.use(monkeypatch)
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://s3.example")
        monkeypatch.setenv("http_proxy", proxy.endpoint)
        monkeypatch.delenv("no_proxy", raising=False)
        store = S3Store()
        item = store.find("s3://bkt/x")
        assert bytes(store.read(item, 7, item.size)) == CONTENT[7:]
        assert store._bucket("bkt").gets is None


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_hundreds_of_thousands_of_objects_are_listed_in_flat_memory(monkeypatch, no_credentials):
    def listing(after):
        first = int(after[4:]) + 1 if after else 0
        return ((f"key/{number:07}", 1) for number in range(first, 300_000))

    code = (
        "from scriptmode.data.s3_store import S3Store\n"
        "peak = lambda: next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "for count, item in enumerate(S3Store().objects('s3://bkt/key/'), 1):\n"
        "    if count == 5_000: print(peak())\n"
        "print(peak(), count, item.uri)"
    )
    with FaultyS3(listing=listing) as server:
        server.use(monkeypatch)
        run = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, text=True)
    early, late, count, last = run.stdout.split()
    assert (count, last) == ("300000", "s3://bkt/key/0299999")
    assert int(late) - int(early) < 4 * 1024
