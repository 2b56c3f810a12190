"""An S3 server in memory with injected faults: cuts, stalls, errors, throttling, changed and deleted objects."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Callable
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from fakes.answering_server import Quiet

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True)
class Fault:
    """A fault of one response; ``at`` is the number of bytes of its body before the fault."""

    #: An error instead of the object.
    status: int = 0
    code: str = ""
    #: Close the connection; before the response if ``at`` is None.
    cut: bool = False
    #: Send nothing more.
    stall: bool = False
    at: int | None = None
    #: Number of bytes sent per second.
    rate: int = 0
    #: Flip a bit of the byte at this offset of the object.
    flip: int | None = None
    #: Offset by which the returned range is moved, in the body and in Content-Range.
    shift: int = 0
    #: Another size of the whole object in Content-Range.
    resize: int = 0
    #: Bytes sent beyond Content-Length.
    excess: bytes = b""
    #: Another ETag, "" for none.
    etag: str | None = None
    #: A page of this text with status 200 instead of the object.
    page: bytes = b""
    #: Number of further headers.
    headers: int = 0
    #: Send no Content-Length: the body ends where the connection does.
    endless: bool = False
    #: Send a range without Content-Range; or ignore the Range and send the whole object with status 200.
    without_range: bool = False
    ignores_range: bool = False
    #: Do this to the server before answering.
    act: Callable[[], object] | None = None


@dataclass(frozen=True)
class Request:
    """One that came: ``key`` is "" for a listing, ``span`` the Range that it asks for."""

    method: str
    key: str
    span: str

    @property
    def is_get(self):
        """Whether it is for an object's bytes."""
        return self.method == "GET" and self.key != ""


@dataclass
class FaultyS3:
    """``contents`` by key of the one bucket ``bkt``; ``fault`` says what fails with a request, if anything."""

    contents: dict[str, bytes] = field(default_factory=dict)
    fault: Callable[[Request], Fault | None] = lambda _: None
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)
    heeds_if_match: bool = True
    #: By key what x-amz-checksum-* headers are sent where the whole object is asked for with its checksum.
    checksums: dict[str, dict[str, str]] = field(default_factory=dict)
    #: By key the content and the ETag that is told of it.
    etags: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    #: For HTTPS: what wraps the listening socket.
    tls: ssl.SSLContext | None = None

    def __enter__(self):
        owner = self

        class Handler(_Handler):
            server_of = owner

        self._ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self.endpoint = f"http{'s' if self.tls else ''}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def use(self, monkeypatch):
        """Set boto3's environment variables to this server."""
        monkeypatch.setenv("AWS_ENDPOINT_URL", self.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")

    @property
    def gets(self):
        """How many requests for objects' bytes came."""
        return sum(request.is_get for request in self.asked)

    def etag(self, key):
        content = self.contents[key]
        if self.etags.get(key, (None,))[0] is not content:
            self.etags[key] = content, f'"{hashlib.md5(content).hexdigest()}"'
        return self.etags[key][1]


class _Handler(Quiet, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_of: FaultyS3

    def handle(self):
        try:
            super().handle()
        except OSError:
            self.close_connection = True

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def _answer(self):
        server, url = self.server_of, urlsplit(self.path)
        key = unquote(url.path).partition("/")[2].partition("/")[2]
        request = Request(self.command, key, self.headers.get("Range", ""))
        server.asked.append(request)
        fault = server.fault(request) or Fault()
        if fault.act:
            fault.act()
        if fault.status:
            self._refuse(fault.status, fault.code)
        elif fault.page:
            self._refuse(200, "", fault.page)
        elif (fault.cut or fault.stall) and fault.at is None:
            self._break(fault)
        elif not key:
            self._list({name: values[0] for name, values in parse_qs(url.query).items()}, fault.rate)
        elif key not in server.contents:
            self._refuse(404, "NoSuchKey")
        elif server.heeds_if_match and self.headers.get("If-Match", server.etag(key)) != server.etag(key):
            self._refuse(412, "PreconditionFailed")
        else:
            self._give(key, fault)

    def _give(self, key, fault):
        content, etag = self._begin(key, fault)
        if fault.endless:
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(content)))
        if told := etag if fault.etag is None else fault.etag:
            self.send_header("ETag", told)
        for number in range(fault.headers):
            self.send_header(f"X-More-{number}", "1")
            if fault.rate:
                self.flush_headers()
                time.sleep(1 / fault.rate)
        self.send_header("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT")
        for name, value in self.server_of.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault.at is None:
            self._write(bytes(content) + fault.excess if fault.excess else content, fault.rate)
        else:
            self.wfile.write(content[: fault.at])
            self._break(fault)

    def _write(self, content, rate):
        size = max(1, min(1000, rate // 10)) if rate else len(content) or 1
        for start in range(0, len(content), size):
            self.wfile.write(content[start : start + size])
            if rate:
                time.sleep(size / rate)

    def _begin(self, key, fault):
        """Send the status and what it says of the content; give what is to be sent, and the ETag."""
        content, etag = self.server_of.contents[key], self.server_of.etag(key)
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", "" if fault.ignores_range else self.headers.get("Range", ""))
        whole, first = len(content), int(span[1]) + fault.shift if span else 0
        if fault.flip is not None:
            content = content[: fault.flip] + bytes([content[fault.flip] ^ 4]) + content[fault.flip + 1 :]
        if span:
            content = content[first : int(span[2]) + 1 + fault.shift]
        self.send_response(206 if span else 200)
        if span and fault.without_range:
            return content, etag
        if span:
            self.send_header("Content-Range", f"bytes {first}-{first + len(content) - 1}/{whole + fault.resize}")
        elif self.headers.get("x-amz-checksum-mode") == "ENABLED":
            for name, value in self.server_of.checksums.get(key, {}).items():
                self.send_header(f"x-amz-checksum-{name}", value)
        return content, etag

    def _break(self, fault):
        self.close_connection = True
        if fault.stall:
            self.server_of._ended.wait(30)

    def _refuse(self, status, code, page=b""):
        error = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
        body = b"" if self.command == "HEAD" else page or error
        self.send_response(status)
        self.send_header("Content-Length", str(len(page or body)))
        self.send_header("Content-Type", "text/html" if page else "application/xml")
        self.end_headers()
        self.wfile.write(body)

    def _list(self, query, rate):
        server, prefix, after = self.server_of, query.get("prefix", ""), query.get("continuation-token", "")
        known, most = sorted(server.contents, key=str.encode), int(query.get("max-keys", 1000))
        page = [key for key in known if key.startswith(prefix) and key > after][:most]
        rows = "".join(
            f"<Contents><Key>{escape(quote(key))}</Key><LastModified>2015-10-21T07:28:00.000Z</LastModified>"
            f"<ETag>{escape(server.etag(key))}</ETag><Size>{len(server.contents[key])}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
            for key in page
        )
        more = len(page) == most
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        body = (
            f"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>{token}"
            f"{rows}</ListBucketResult>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/xml")
        self.end_headers()
        self._write(body, rate)
