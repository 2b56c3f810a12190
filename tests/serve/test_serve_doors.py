"""Every port and socket that `scriptmode serve` opens: which users and pages reach it, and what is bounded before."""

import base64
import hashlib
import io
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from fakes.processes import open_files, processes_naming, until
from notebooks.jupyter_lab import browser_page
from serve.conftest import serving

from scriptmode_local._system.ports import _ephemeral_start
from scriptmode_serve._http import s3_proxy
from scriptmode_serve._http.access_keys import AccessKeys
from scriptmode_serve._operations.aws_json import ApiError

pytestmark = pytest.mark.slow

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")

#: A user without rights tries each port: over HTTP, and over TLS without a certificate. It prints what was answered.
STRANGER = r"""
import concurrent.futures, http.client, itertools, json, socket, ssl, sys
context = ssl._create_unverified_context()
def ask(port, kind, call):
    method, path = call.split()
    try:
        connection = (http.client.HTTPConnection("127.0.0.1", port, timeout=20) if kind == "http"
                      else http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context))
        connection.request(method, path, b"x" if method == "PUT" else None, {"Origin": "http://evil.example"})
        answer = connection.getresponse()
        return [answer.status, answer.getheader("Access-Control-Allow-Origin"), answer.read(300).decode("latin-1")]
    except (OSError, http.client.HTTPException) as error:
        return [0, None, type(error).__name__]
ports = map(int, sys.argv[1].split(","))
calls = ("GET /", "PUT /data/stolen", "GET /data/x", "GET /dir/assign")
asked = list(itertools.product(ports, ("http", "https"), calls))
with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
    answers = pool.map(ask, *zip(*asked))
    found = {" ".join(map(str, words)): told for words, told in zip(asked, answers)}
for path in sys.argv[2:]:
    with socket.socket(socket.AF_UNIX) as each:
        try:
            each.connect(path)
            found[path] = [200, None, "connected"]
        except OSError as error:
            found[path] = [0, None, str(error)]
print(json.dumps(found))
"""


def listening(processes):
    """Return the TCP ports and the sockets at which processes listen."""
    inodes = {file[8:-1] for process in processes for file in open_files(process) if file.startswith("socket:[")}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    ports = {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes}
    addresses = {row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}
    unix = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return ports, addresses, {row[7] for row in unix if len(row) > 7 and row[6] in inodes}


def client(api, key=None, **settings):
    names = (key.identifier, key.secret) if key else ("any", "thing")
    config = Config(retries={"total_max_attempts": 1}, signature_version="s3v4", read_timeout=20)
    return boto3.Session(*names, region_name="us-east-1").client(
        "s3", endpoint_url=api.server.url, config=config, **settings
    )


@NEEDS_ROOT
@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "without a key"])
def test_another_user_reaches_the_front_door_alone(tmp_path, has_key):
    tmp_path.chmod(0o755)
    key = AccessKeys(tmp_path / "data").create() if has_key else None
    with serving(tmp_path) as api:
        s3 = client(api, key)
        s3.create_bucket(Bucket="data")
        s3.put_object(Bucket="data", Key="x", Body=b"secret content")
        front = int(api.server.url.rpartition(":")[2])
        processes = [api.server.process.pid, *processes_naming(f"{tmp_path}/data/objects")]
        ports, addresses, sockets = listening(processes)
        assert front in ports
        assert (len(ports), addresses) == (9, {"0100007F"})
        paths = [path if path.startswith("/") else str(tmp_path / "data/objects" / path) for path in sockets]
        assert len(paths) == 6
        nobody = (
            ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
            if shutil.which("setpriv")
            else pytest.skip("needs setpriv")
        )
        command = [*nobody, sys.executable, "-c", STRANGER, ",".join(map(str, ports)), *paths]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd="/")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        for what, (status, origin, text) in found.items():
            assert "secret content" not in text, what
            # SeaweedFS lets any page read that the list of buckets is refused.
            assert origin is None or (status, what.partition(" ")[2]) == (403, "http GET /"), what
            if not what.startswith(f"{front} http "):
                assert status in (0, 400, 403), (what, status, text)
        # The page of the front door has no data; a page of another origin gets nothing at all.
        assert {told[0] for what, told in found.items() if what.startswith(f"{front} http ")} == {403}
        assert [each["Key"] for each in s3.list_objects_v2(Bucket="data")["Contents"]] == ["x"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server whose S3 is on disk, in whose shell are keys and other settings of AWS, and a bucket with an object."""
    shell = {"AWS_ACCESS_KEY_ID": "AKIAOFTHESHELL", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
             "AWS_DEFAULT_PROFILE": "missing", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
             "S3_ENDPOINT_URL": "http://127.0.0.1:9"}  # fmt: skip
    with serving(tmp_path_factory.mktemp("doors"), environment=shell) as found:
        client(found).create_bucket(Bucket="data")
        client(found).put_object(Bucket="data", Key="x", Body=b"content")
        yield found


def test_what_the_s3_server_needs_is_for_its_user_alone(served):
    folder = served.folder / "data" / "objects"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("key.pem", "s3.json", "process.json"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


def test_a_page_of_another_origin_reads_and_writes_nothing(served, tmp_path):
    other = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    with closing(other.socket), browser_page(tmp_path, os.environ) as page:
        ports, _, _ = listening([served.server.process.pid, *processes_naming(f"{served.folder}/data/objects")])
        # An error is a page of this origin, too.
        page.open(f"http://127.0.0.1:{other.server_port}/")
        for port in ports:
            for method in ("GET", "PUT", "DELETE"):
                asked = (
                    f"fetch('http://127.0.0.1:{port}/data/x', {{method: {method!r}}})"
                    ".then(answer => answer.text().then(text => answer.status + text), error => 'refused')"
                )
                assert page.value(asked) == "refused", (port, method)
            # Without a preflight, whose answer the page cannot read.
            page.value(
                f"fetch('http://127.0.0.1:{port}/data/x', {{method: 'POST', mode: 'no-cors', body: 'y'}}).then(() => 0, () => 0)"
            )
        assert client(served).get_object(Bucket="data", Key="x")["Body"].read() == b"content"


def test_keys_and_settings_in_the_shell_of_the_server_change_nothing(served):
    assert "data" in [bucket["Name"] for bucket in client(served).list_buckets()["Buckets"]]
    ended = served.run("print(1)", OutputDataConfig={"S3OutputPath": "s3://data/out"})
    assert ended["TrainingJobStatus"] == "Completed"


def test_an_s3_server_that_was_killed_comes_back_and_a_server_that_ends_leaves_nothing(tmp_path):
    with serving(tmp_path) as api:
        s3 = client(api)
        s3.create_bucket(Bucket="data")
        s3.put_object(Bucket="data", Key="x", Body=b"content")
        (process,) = processes_naming(f"{tmp_path}/data/objects")
        ports, _, sockets = listening([process])
        assert max(ports) < _ephemeral_start()  # a connection of another program gets none meanwhile
        os.kill(process, signal.SIGKILL)
        statuses = set()

        def read():
            try:
                return s3.get_object(Bucket="data", Key="x")["Body"].read()
            except ClientError as error:
                statuses.add(error.response["ResponseMetadata"]["HTTPStatusCode"])
                time.sleep(0.2)  # the machine is for the server that starts
                return None

        assert until(read) == b"content"
        # What every client of AWS tries again.
        assert statuses <= {500, 503}
        (process,) = processes_naming(f"{tmp_path}/data/objects")
        assert listening([process])[0] == ports
        s3.put_object(Bucket="data", Key="y", Body=b"more")
    until(lambda: not processes_naming(f"{tmp_path}/data/objects"))
    assert not [path for path in sockets if path.startswith("/") and Path(path).exists()]
    assert not [
        path.name for path in (tmp_path / "data/objects").iterdir() if path.suffix in (".sock", "") and path.is_file()
    ]


@pytest.mark.parametrize("s3", ["disk", "memory"])
def test_an_unsigned_body_is_not_read(tmp_path, s3):
    AccessKeys(tmp_path / "data").create()
    with serving(tmp_path, "--s3", s3) as api:
        host, port = api.server.url[len("http://") :].split(":")
        for path in ("/data/x", "/"):
            with socket.create_connection((host, int(port)), timeout=600) as each:
                head = f"PUT {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 600000000\r\n\r\n"
                each.sendall(head.encode())
                sent = 0
                with suppress(OSError):
                    while sent < 600_000_000:
                        sent += each.send(bytes(1_000_000))
                # What the kernel holds for a connection.
                assert sent < 64_000_000


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", 400), ("Content-Length: 5\r\nContent-Length: 6", 400),
        ("Transfer-Encoding: gzip", 501), ("Content-Length: 99999999", 413),
        ("Expect: 100-continue\r\nContent-Length: 0", 200),
    ],
)  # fmt: skip
def test_headers_that_two_readers_understand_differently_are_refused(api, headers, status):
    host, port = api.server.url[len("http://") :].split(":")
    with socket.create_connection((host, int(port)), timeout=600) as each:
        target = "X-Amz-Target: SageMaker.ListTrainingJobs\r\n" if status == 413 else ""
        path = "/a-bucket-of-doors" if status == 200 else "/"
        each.sendall(f"PUT {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{target}{headers}\r\n\r\n".encode())
        each.sendall(b"" if status in (200, 413) else b"0\r\n\r\n")
        assert each.recv(1000).split()[1] == str(status).encode()


@pytest.mark.prompt
def test_the_body_of_a_refused_request_is_awaited_for_some_seconds_only(tmp_path):
    AccessKeys(tmp_path / "data").create()
    with serving(tmp_path, "--s3", "memory") as api:
        host, port = api.server.url[len("http://") :].split(":")
        with socket.create_connection((host, int(port)), timeout=600) as each:
            each.sendall(f"PUT /data/x HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 5000000\r\n\r\n".encode())
            began = time.monotonic()
            with suppress(OSError):
                while time.monotonic() - began < 50:
                    each.sendall(b"x")
                    time.sleep(0.2)
            assert 9 < time.monotonic() - began < 40


def test_half_sent_requests_do_not_block_others(api):
    host, port = api.server.url[len("http://") :].split(":")
    with ExitStack() as stack:
        half = [stack.enter_context(socket.socket()) for _ in range(1100)]
        for connection in half:
            connection.settimeout(0)
            connection.connect_ex((host, int(port)))
        for connection in half:
            with suppress(OSError):
                connection.send(f"GET / HTTP/1.1\r\nHost: {host}".encode())
        began = time.monotonic()
        assert api.client("sagemaker").list_training_jobs()["TrainingJobSummaries"] == []
        assert time.monotonic() - began < 20


@pytest.mark.parametrize("key", ["a//b", "a/./b", "/a/b", "a/../a/b", ".", "a/b//", "a\\b"])
def test_a_key_that_the_s3_server_would_change_is_refused(served, key):
    s3 = client(served)
    bucket = f"kept-keys-{time.time_ns()}"
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="a/b", Body=b"first")
    for change in (
        lambda: s3.put_object(Bucket=bucket, Key=key, Body=b"other"),
        lambda: s3.delete_object(Bucket=bucket, Key=key),
        lambda: s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key}]}),
        lambda: s3.copy_object(Bucket=bucket, Key=key, CopySource=f"{bucket}/a/b"),
        lambda: s3.list_objects_v2(Bucket=bucket, Prefix=f"{key}/b"),
    ):
        with pytest.raises(ClientError, match="keeps no key with an empty part or a part of dots"):
            change()
    for read in (
        lambda: s3.get_object(Bucket=bucket, Key=key),
        lambda: s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": key}),
    ):
        with pytest.raises(ClientError, match="NoSuchKey"):
            read()
    assert s3.get_object(Bucket=bucket, Key="a/b")["Body"].read() == b"first"


@pytest.mark.parametrize("key", ["a&#x2F;/b", "a<![CDATA[/]]>/b"])
def test_a_key_is_found_in_every_spelling_of_xml(served, key):
    s3 = client(served)
    bucket = f"spelled-keys-{time.time_ns()}"
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="a/b", Body=b"first")

    def spell(request, **_):
        request.data = f"<Delete><Object><Key >{key}</Key></Object></Delete>".encode()
        request.headers["Content-MD5"] = base64.b64encode(hashlib.md5(request.data).digest()).decode()

    s3.meta.events.register("before-sign.s3.DeleteObjects", spell)
    with pytest.raises(ClientError, match="keeps no key with an empty part"):
        s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "x"}]})
    assert s3.get_object(Bucket=bucket, Key="a/b")["Body"].read() == b"first"
    # It may be the beginning of "a/.b".
    assert s3.list_objects_v2(Bucket=bucket, Prefix="a/.")["KeyCount"] == 0


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"5;chunk-signature=x\r\nhello\r\n0;chunk-signature=x\r\n\r\n", "lack 1 of the bytes"),
        (b"9;chunk-signature=x\r\nhello you\r\n0\r\n\r\n", "have more bytes than"),
        (b"hello", "A chunk begins with b'hello'"),
    ],
)
def test_a_body_whose_chunks_do_not_have_the_declared_length_is_not_stored(body, text):
    environ = {"wsgi.input": io.BytesIO(body)}
    with pytest.raises(ApiError, match=text):
        list(s3_proxy._without_chunks(environ, 6))


@pytest.mark.parametrize("encoding", ["foo", "utf-7", "big5"])
def test_a_deletion_in_an_unknown_encoding_is_refused(encoding):
    body = f"<?xml version='1.0' encoding='{encoding}'?><Delete/>".encode()
    environ = {
        "REQUEST_METHOD": "POST", "REQUEST_URI": "/b?delete", "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }  # fmt: skip
    with pytest.raises(ApiError, match="MalformedXML"):
        s3_proxy._check_keys(environ)
