"""Clients of `scriptmode serve` that send or read slowly, or not at all: they hold nothing that others need."""

import os
import select
import signal
import socket
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
from botocore.config import Config
from fakes.processes import processes_naming, until
from serve.conftest import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

#: Seconds after which a client is gone that sends or reads nothing, 60 without the program below.
LIMIT = 4
SHORTER = f"import scriptmode_serve._http.wsgi as wsgi\nwsgi.IDLE_SECONDS = {LIMIT}\n"
LARGE = 64 * 1024**2
PAGE = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/html\r\n\r\n"


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """A server with a short limit and a large object."""
    folder = tmp_path_factory.mktemp("slow")
    (folder / "sitecustomize.py").write_text(SHORTER)
    with serving(folder, environment={"PYTHONPATH": str(folder)}) as found:
        s3 = found.client("s3")
        s3.create_bucket(Bucket="data")
        s3.put_object(Bucket="data", Key="large", Body=bytes(LARGE))
        yield found


def connect(api, buffer=65536):
    """Return a connection with a small buffer: what a client does not read stays with the server."""
    each = socket.socket()
    each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    each.settimeout(60)
    each.connect(("127.0.0.1", int(api.server.url.rpartition(":")[2])))
    return each


def ask(each, path="/data/large"):
    each.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return each


def has_ended(each):
    """Return whether the server has ended a connection, also if there is something left to read."""
    poll = select.poll()
    poll.register(each, 0)
    return bool(poll.poll(0))


def seconds_of(call):
    began = time.monotonic()
    call()
    return time.monotonic() - began


def others(api):
    """Return the seconds that the API, the page and an object take."""
    client = api.client("sagemaker", config=Config(retries={"total_max_attempts": 1}, read_timeout=30))
    page = urllib.request.Request(api.server.url, headers={"Accept": "text/html"})
    s3 = api.client("s3", config=Config(retries={"total_max_attempts": 1}, read_timeout=30))
    return {
        "list": seconds_of(client.list_training_jobs),
        "page": seconds_of(lambda: urllib.request.urlopen(page, timeout=30).read()),
        "object": seconds_of(lambda: s3.get_object(Bucket="data", Key="large", Range="bytes=0-9")),
    }


def test_clients_that_read_nothing_delay_no_other_and_are_closed(api):
    with ExitStack() as stack:
        readers = [ask(stack.enter_context(connect(api))) for _ in range(64)]
        until(lambda: all(select.select([each], [], [], 0)[0] for each in readers))
        assert max(others(api).values()) < 3
        until(lambda: all(map(has_ended, readers)), LIMIT + 10)


def at_once(api, *clients):
    """Run clients at once to their ends, and raise the error of one that fails."""
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(client, api) for client in clients]:
            done.result()


def read_slower_than_the_least_rate(api):
    with ask(connect(api, 4096)) as reader:
        began = time.monotonic()
        while not has_ended(reader):
            reader.recv(10)
            time.sleep(0.1)
            assert time.monotonic() - began < 4 * LIMIT


def write_slower_after_a_fast_beginning(api):
    with connect(api) as writer:
        put(writer, LARGE)
        writer.sendall(bytes(8 * 1024**2))
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - began < 5 * LIMIT:
                writer.sendall(b"x")
                time.sleep(0.1)
        assert time.monotonic() - began < 4 * LIMIT


def test_clients_that_are_slower_than_the_least_rate_are_closed(api):
    at_once(api, read_slower_than_the_least_rate, write_slower_after_a_fast_beginning)


def read_all_slowly_and_steadily(api):
    with ask(connect(api)) as reader:
        began, left = time.monotonic(), LARGE
        head, _, body = reader.recv(65536).partition(b"\r\n\r\n")
        assert f"Content-Length: {LARGE}".encode() in head
        left -= len(body)
        # A pause and a bit, again and again, for longer than the limit.
        while left and time.monotonic() - began < 1.5 * LIMIT:
            left -= len(reader.recv(16384))
            time.sleep(0.05)
        while left and (data := reader.recv(1024**2)):
            left -= len(data)
        assert left == 0


def write_all_slowly_and_steadily(api):
    with connect(api) as writer:
        pieces = 15 * LIMIT
        put(writer, pieces * 1024)
        for _ in range(pieces):
            writer.sendall(bytes(1024))
            time.sleep(0.1)
        assert writer.recv(100).startswith(b"HTTP/1.1 200")
    assert api.client("s3").head_object(Bucket="data", Key="slow")["ContentLength"] == pieces * 1024


def put(each, size):
    each.sendall(f"PUT /data/slow HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n".encode())


def test_clients_that_are_slow_and_steady_are_served(api):
    at_once(api, read_all_slowly_and_steadily, write_all_slowly_and_steadily)


def test_answers_to_requests_that_were_sent_at_once_come_in_full(api):
    with connect(api) as client:
        count = 8000 // len(PAGE)
        client.sendall(PAGE * count)
        text = b""
        while text.count(b"</html>") < count:
            data = client.recv(1024**2)
            assert data
            text += data
    assert text.count(b"HTTP/1.1 200 OK") == count


def test_an_s3_server_that_hangs_delays_no_other_request(api):
    (stopped,) = processes_naming(f"{api.folder}/data/objects")
    with ExitStack() as stack:
        os.kill(stopped, signal.SIGSTOP)
        stack.callback(os.kill, stopped, signal.SIGCONT)
        for _ in range(32):
            ask(stack.enter_context(connect(api)))
        client = api.client("sagemaker", config=Config(retries={"total_max_attempts": 1}, read_timeout=30))
        assert max(seconds_of(client.list_training_jobs) for _ in range(10)) < 3
