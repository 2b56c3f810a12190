"""The HTTP server, waitress: it reads a request whole before a thread has it, so that slow clients hold no thread."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

from scriptmode.errors import PlatformError

if TYPE_CHECKING:
    from scriptmode.serve.wsgi import Service

_THREADS = 16
_MOST_CONNECTIONS = 1000
#: Seconds after which a connection without a byte is closed.
_IDLE_SECONDS = 60
#: Bytes of one object that is written in one request (PutObject, Amazon S3 API reference).
_LARGEST_OBJECT = 5 * 1024**3
#: The keys of an object's metadata are in lower case; waitress capitalizes the names of headers.
_METADATA = re.compile(rb"(?m)^X-Amz-Meta-[^:\r\n]*")


def create_http_server(application: Service, host: str, port: int) -> Any:
    """Return a server of waitress that listens; raise `PlatformError` where it cannot."""
    from waitress.channel import HTTPChannel
    from waitress.server import create_server
    from waitress.task import WSGITask

    class Task(WSGITask):  # type: ignore[misc]
        def build_response_header(self) -> bytes:
            return _METADATA.sub(lambda found: found[0].lower(), super().build_response_header())

    class Channel(HTTPChannel):  # type: ignore[misc]
        task_class = Task

    # A full queue of requests is not worth a warning.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    try:
        server = create_server(
            application,
            map={},
            host=host,
            port=port,
            threads=_THREADS,
            connection_limit=_MOST_CONNECTIONS,
            channel_timeout=_IDLE_SECONDS,
            max_request_body_size=_LARGEST_OBJECT,
            ident=None,
        )
    except (OSError, ValueError) as error:
        raise PlatformError(
            f"the server cannot listen at {host}:{port}: {error}",
            advice="end the other server, or give another --listen ADDRESS:PORT",
        ) from error
    server.channel_class = Channel
    return server
