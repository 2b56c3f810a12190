"""A connection of the HTTP server, whose client holds no thread: neither one that sends nor one that reads slowly.

waitress has a request whole before a thread gets it, but the thread of a streamed answer would wait until its client
has taken what is ready. Here the turn of the task ends instead. Its next turn, in any thread, begins when the client
has taken most of it, or is gone. A client that takes less than `LEAST_RATE` is gone after `IDLE_SECONDS`.
"""

from __future__ import annotations

import fcntl
import re
import socket
import struct
import termios
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from waitress.channel import HTTPChannel
from waitress.task import WSGITask

from scriptmode_serve._http import wsgi
from scriptmode_serve._http.checked_request import later
from scriptmode_serve._http.wsgi import Environ, Service, StartResponse

#: Bytes of an answer that are ready at the end of a turn, and at the beginning of the next one.
MOST_READY, _LEAST_READY = 2 * 1024**2, 512 * 1024
#: The keys of an object's metadata are in lower case; waitress capitalizes the names of headers.
_METADATA = re.compile(rb"(?m)^X-Amz-Meta-[^:\r\n]*")
_TASK = "scriptmode.task"


class _TurnEnd(BaseException):
    """The end of a turn of a task."""


class Task(WSGITask):  # type: ignore[misc]
    """A request in work, whose answer is written in turns; ``body`` is all of it."""

    body: Any = None

    def build_response_header(self) -> bytes:
        """Return the status and the headers."""
        return _METADATA.sub(lambda match: match[0].lower(), super().build_response_header())

    def get_environment(self) -> Environ:
        """Return the request in WSGI's terms, and this task."""
        return {**super().get_environment(), _TASK: self}


def in_turns(application: Service, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Return the answer of an application, or what is left of it after the turns of the task so far."""
    task = environ[_TASK]
    if task.body is None:
        task.body = application(environ, start_response)
        if isinstance(task.body, (list, tuple)):
            return task.body
        task.chunks = iter(task.body)
    return _turn(task)


def _turn(task: Task) -> Iterator[bytes]:
    for chunk in task.chunks:
        yield chunk
        task.channel.end_turn_if_full()


class Connection(HTTPChannel):  # type: ignore[misc]
    """A connection; all but `service` runs in the thread of the server's loop."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        #: Whether a task waits for its next turn.
        self._waits = False
        self._sent = self._taken = 0
        #: When the client counts as gone, by the monotonic clock.
        self.deadline = time.monotonic() + wsgi.IDLE_SECONDS

    def task_class(self, channel: Connection, request: Any) -> Task:
        """Return the task of a request, the same in each turn."""
        request.task = request.task or Task(channel, request)
        task: Task = request.task
        return task

    def service(self) -> None:
        """Run a turn of the first request's task."""
        request = self.requests[0]
        try:
            # Of answers to earlier requests.
            self.end_turn_if_full()
            super().service()
        except _TurnEnd:
            with self.outbuf_lock:
                self._waits = True
            self._begin_turn()
        else:
            if hasattr(getattr(request.task, "body", None), "close"):
                request.task.body.close()

    def end_turn_if_full(self) -> None:
        """Stop the turn of a task whose client has to take what is ready first."""
        if self.connected and self.total_outbufs_len > MOST_READY:
            raise _TurnEnd

    def _flush_outbufs_below_high_watermark(self) -> None:
        """Skip what waitress waits for in a thread."""

    def _begin_turn(self) -> None:
        """Resume the task that waits, in any thread, once it can go on or has to end."""
        with self.outbuf_lock:
            if not self._waits or (self.connected and self.total_outbufs_len > _LEAST_READY):
                return
            self._waits = False
        self.server.add_task(self)

    def handle_write(self) -> None:
        """Send what is ready."""
        super().handle_write()
        self._begin_turn()

    def handle_close(self) -> None:
        """Close the connection."""
        super().handle_close()
        self._begin_turn()

    def send(self, data: bytes, do_close: bool = True) -> int:  # noqa: FBT001, FBT002 - waitress's
        """Send bytes, and return how many the kernel took."""
        sent: int = super().send(data, do_close=do_close)
        self._sent += sent
        return sent

    def send_continue(self) -> None:
        """Send that the body may come, unless there is none, for which waitress would wait."""
        if not self.request.completed:
            super().send_continue()

    def update(self, now: float) -> None:
        """Move the deadline by what the client has taken, and by what it need not do."""
        waiting = struct.unpack("i", fcntl.ioctl(self.socket, termios.TIOCOUTQ, bytes(4)))[0]
        count, self._taken = self._sent - waiting - self._taken, self._sent - waiting
        if self.total_outbufs_len:
            self.deadline = later(self.deadline, count, now)
        elif count or self.requests or self.request:
            self.deadline = now + wsgi.IDLE_SECONDS

    @property
    def waits_since(self) -> tuple[bool, float]:
        """Whether the client has sent the headers of a request, and since when the server waits for it."""
        request = self.request
        if request and not request.headers_finished:
            return False, request.began
        has_request = bool(request or self.total_outbufs_len)
        return has_request, (request or self).deadline - wsgi.IDLE_SECONDS

    def discard(self) -> None:
        """Close the connection, with what its client has not taken."""
        self.will_close = True
        if self.total_outbufs_len:
            # The loop closes it once it can be written.
            with suppress(OSError):
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, wsgi.DISCARD)
                self.socket.shutdown(socket.SHUT_RDWR)
