"""The HTTP server, waitress: it reads a request whole before a thread has it, so that slow clients hold no thread.

What the headers alone show is refused before the body is read. Connections of clients that have shown nothing yet are
bounded in seconds and, where the server has too many, in number.
"""

from __future__ import annotations

import errno
import logging
import re
import shlex
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.core.text.terminal_text import escape_unprintable
from scriptmode.errors import PlatformError

if TYPE_CHECKING:
    from collections.abc import Callable

    from scriptmode.serve.wsgi import Environ, Service

_THREADS = 16
_MOST_CONNECTIONS = 1000
#: Seconds after which a connection without a request in work may be closed where the server has too many.
_SPARE_SECONDS = 1.0
#: Bytes of one object that is written in one request (PutObject, Amazon S3 API reference).
_LARGEST_OBJECT = 5 * 1024**3
#: The keys of an object's metadata are in lower case; waitress capitalizes the names of headers.
_METADATA = re.compile(rb"(?m)^X-Amz-Meta-[^:\r\n]*")


def create_http_server(application: Service, host: str, port: int, check: Callable[[Environ], None]) -> Any:
    """Return a server of waitress that listens; raise `PlatformError` where it cannot.

    ``check`` gets the headers of each request whose body has not been read, and raises `ApiError` to refuse it.
    """
    from waitress.channel import HTTPChannel
    from waitress.server import create_server
    from waitress.task import WSGITask

    from scriptmode.serve.checked_request import IDLE_SECONDS, CheckedRequest

    class Task(WSGITask):  # type: ignore[misc]
        def build_response_header(self) -> bytes:
            return _METADATA.sub(lambda found: found[0].lower(), super().build_response_header())

    class Channel(HTTPChannel):  # type: ignore[misc]
        task_class = Task
        parser_class = staticmethod(partial(CheckedRequest, check))

        def send_continue(self) -> Any:
            # waitress waits for a body that there is not.
            return None if self.request.completed else super().send_continue()

    # It warns of each full queue, and of too many connections.
    logging.getLogger("waitress").setLevel(logging.ERROR)
    try:
        server = create_server(
            application,
            map={},
            host=host,
            port=port,
            threads=_THREADS,
            connection_limit=_MOST_CONNECTIONS,
            channel_timeout=IDLE_SECONDS,
            cleanup_interval=1,
            max_request_body_size=_LARGEST_OBJECT,
            ident=None,
        )
    except (OSError, ValueError) as error:
        raise listening_error(error, host, port) from error
    _configure(server, Channel)
    return server


def listening_error(error: Exception, host: str, port: int) -> PlatformError:
    """Return the error for an address at which the server cannot listen."""
    shown = f"[{host}]" if ":" in host else host
    is_taken = getattr(error, "errno", 0) == errno.EADDRINUSE
    return PlatformError(
        f"the server cannot listen at {shown}:{port}: {(is_taken and _describe_listener(port)) or error}",
        advice=f"{'end it, or ' * is_taken}choose another port, such as a free one: --listen {shown}:0",
    )


def _describe_listener(port: int) -> str:
    """Return which process listens at a TCP port; "" where that cannot be read, as of another user's process."""
    with suppress(OSError):
        rows = [line.split() for each in Path("/proc/net").glob("tcp*") for line in each.read_text().splitlines()]
        # Local address, state (0A listens) and inode.
        sockets = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
        for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
            # Others may be closed in this moment.
            with suppress(OSError):
                if str(descriptor.readlink()) in sockets:
                    process = descriptor.parts[2]
                    words = Path(f"/proc/{process}/cmdline").read_text().rstrip("\0").split("\0")
                    return f"process {process} listens there ({escape_unprintable(shlex.join(words))})"
    return ""


def _configure(server: Any, channel_class: type) -> None:
    """Set the class of the connections, and what closes them; a name with several addresses has a listener for each."""
    for each in (server, *getattr(server, "map", {}).values()):
        if hasattr(each, "channel_class"):
            each.channel_class = channel_class
            each.maintenance = partial(_close_connections, each)


def _close_connections(server: Any, now: float) -> None:
    """Close connections that are idle, and those of slow requests; more where there are too many."""
    from scriptmode.serve.checked_request import IDLE_SECONDS

    spare = []
    for channel in server.active_channels.values():
        request = channel.request
        if channel.requests:
            continue
        if channel.last_activity < now - IDLE_SECONDS or (request and request.is_too_slow(now)):
            channel.will_close = True
        elif request is None or not request.headers_finished:
            spare.append((request.began if request else channel.last_activity, channel))
    if server.in_connection_overflow:
        spare.sort(key=lambda each: each[0])
        for since, channel in spare[: _MOST_CONNECTIONS // 2]:
            channel.will_close = channel.will_close or since < now - _SPARE_SECONDS
