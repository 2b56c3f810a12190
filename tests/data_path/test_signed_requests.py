"""The connections of requests for S3 that boto3 does not send."""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from fakes.answering_server import Quiet, served

from scriptmode._core.aws.signed_requests import BucketRequests, BucketSettings


class OneAnswer(Quiet, BaseHTTPRequestHandler):
    """Answers once on each connection, and closes it without a word."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("ETag", '"e"')
        self.send_header("Content-Length", "1")
        self.end_headers()
        self.close_connection = True


def bucket_at(port, timeout):
    settings = BucketSettings(f"http://127.0.0.1:{port}/bkt", "us-east-1", lambda: ("key", "secret", None), "")
    return BucketRequests("bkt", settings, timeout)


def test_a_kept_connection_that_the_server_closed_is_replaced_in_every_thread():
    with served(OneAnswer) as server:
        bucket = bucket_at(server.server_port, 60)
        with ThreadPoolExecutor(8) as threads:
            answers = [*threads.map(lambda _: bucket.head("x", checksum=False), range(100))]
    assert {answer["ETag"] for answer in answers} == {'"e"'}


def test_a_server_that_does_not_answer_costs_no_descriptor():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bucket = bucket_at(silent.getsockname()[1], 0.05)
        before = len([*Path("/proc/self/fd").iterdir()])
        for _ in range(5):
            with suppress(BucketRequests.FAILURES):
                raise AssertionError(bucket.head("x", checksum=False))
        assert len([*Path("/proc/self/fd").iterdir()]) == before
