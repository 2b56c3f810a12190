"""The HTTP server, waitress. Slow clients hold no thread, see `connections`.

What the headers alone show is refused before the body is read. Connections of clients that have shown nothing yet are
bounded in seconds and, where the server has too many, in number.
"""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from scriptmode.errors import PlatformError
from scriptmode_serve._http.wsgi import Environ, Service

_THREADS = 16
_MOST_CONNECTIONS = 1000
#: Descriptors of a connection, at most: its own, and one for the S3 server.
_DESCRIPTORS = 2
#: Seconds after which a client for which the server waits may be gone where there are too many connections.
_SPARE_SECONDS = 1.0
#: Seconds between two looks at all connections, and in which requests for S3 have to end at the server's end.
_LOOK_SECONDS, _END_SECONDS = 1.0, 2.0
#: Bytes of one object that is written in one request (PutObject, Amazon S3 API reference).
_LARGEST_OBJECT = 5 * 1024**3


def create_http_server(application: Service, host: str, port: int, check: Callable[[Environ], None]) -> Any:
    """Return a server of waitress that listens; raise `PlatformError` where it cannot.

    ``check`` gets the headers of each request whose body has not been read, and raises `ApiError` to refuse it.
    """
    from waitress.server import create_server

    from scriptmode_serve._http.connections import MOST_READY, in_turns

    # It warns of each full queue, and of too many connections.
    logging.getLogger("waitress").setLevel(logging.ERROR)
    try:
        server = create_server(
            partial(in_turns, application),
            map={},
            host=host,
            port=port,
            threads=_THREADS,
            connection_limit=min(_MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _DESCRIPTORS),
            asyncore_use_poll=True,
            outbuf_high_watermark=MOST_READY,
            # In memory.
            outbuf_overflow=2 * MOST_READY,
            max_request_body_size=_LARGEST_OBJECT,
            ident=None,
        )
    except (OSError, ValueError) as error:
        shown = f"[{host}]" if ":" in host else host
        what = f"the server cannot listen at {shown}:{port}: {error}"
        raise PlatformError(what, advice=f"choose another port, such as a free one: --listen {shown}:0") from error
    _configure(server, check)
    return server


def _configure(server: Any, check: Callable[[Environ], None]) -> None:
    """Set the class of the connections, and what closes them; a name with several addresses has a listener for each.

    Requests for S3 have threads of their own: its server may hang, too.
    """
    from waitress.task import ThreadedTaskDispatcher

    from scriptmode_serve._http.checked_request import CheckedRequest
    from scriptmode_serve._http.connections import Connection

    class Channel(Connection):
        def parser_class(self, adjustments: Any) -> CheckedRequest:
            return CheckedRequest(check, self.addr[0], adjustments)

    others, objects = server.task_dispatcher, ThreadedTaskDispatcher()
    objects.set_thread_count(_THREADS)
    end_others = others.shutdown
    others.shutdown = lambda: (objects.shutdown(timeout=_END_SECONDS), end_others())
    for listener in (server, *getattr(server, "map", {}).values()):
        if hasattr(listener, "channel_class"):
            listener.channel_class = Channel
            listener.add_task = lambda channel: (objects if channel.requests[0].is_for_s3 else others).add_task(channel)
            listener.next_look = 0.0
            listener.maintenance = partial(_close_connections, listener)


def _close_connections(server: Any, _: float) -> None:
    """Close the connections of clients that do nothing, or are too slow; more where there are too many."""
    # By the monotonic clock: waitress's can be set back.
    server.next_channel_cleanup, now = 0.0, time.monotonic()
    if now < server.next_look:
        return
    server.next_look = now + _LOOK_SECONDS
    waiting = []
    for channel in server.active_channels.values():
        channel.update(now)
        if channel.deadline < now or (channel.request and channel.request.deadline < now):
            channel.discard()
        elif channel.total_outbufs_len or not channel.requests:
            waiting.append(channel)
    if server.in_connection_overflow:
        # Those without a request first.
        waiting.sort(key=lambda channel: channel.waits_since)
        for channel in waiting[: server.adj.connection_limit // 2]:
            if channel.waits_since[1] < now - _SPARE_SECONDS:
                channel.discard()
