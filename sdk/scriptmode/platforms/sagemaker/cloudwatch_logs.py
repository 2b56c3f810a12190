"""A job's CloudWatch log streams, one a host, read to their ends: no line lost that CloudWatch has, none doubled."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from scriptmode.aws.retry import RETRY_SECONDS, Retry
from scriptmode.errors import JobNotFoundError, PlatformError, RequestError
from scriptmode.messages import still_running
from scriptmode.platforms.base import ENDED, LogEvent, host_count

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from scriptmode.aws.session import Connection

#: Where the service logs (Amazon SageMaker developer guide, "Log groups and streams").
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
#: CloudWatch usually has a line within these seconds.
TAIL_SECONDS = 2.0
#: Where lines still come after the job's end, this often is looked for more.
_LAST_LOOKS = 10
#: Secondary statuses after which every host starts again, with a stream of its own.
_RESTARTS = ("Interrupted", "Restarting")
#: Where all lines are past their retention, CloudWatch answers without lines and with new tokens for ever.
_EMPTY_PAGES = 100


class LogTail:
    """The place reached in each stream of a job."""

    def __init__(
        self, name: str, connection: Connection, poll_seconds: float, *, retry_seconds: float = RETRY_SECONDS
    ) -> None:
        self._name = name
        self._connection = connection
        self._pause = poll_seconds - TAIL_SECONDS
        self._retry = Retry(connection.clock, still_running(name), retry_seconds)
        self._places: dict[str, _StreamPosition] = {}

    def so_far(self) -> Iterator[LogEvent]:
        """Yield every line there is."""
        self._find_streams()
        for stream in self._streams():
            while (yield from self._next_page(stream)):
                pass

    def places(self) -> dict[str, str]:
        """Return the log group and the latest stream of each host."""
        self._find_streams()
        return {_host(stream): f"CloudWatch log group {LOG_GROUP}, stream {stream}" for stream in self._streams()}

    def follow(
        self, describe: Callable[[], dict[str, Any]], on_description: Callable[[dict[str, Any]], None] | None
    ) -> Iterator[LogEvent]:
        """Yield lines as they come, until the job ended and CloudWatch has had the time to catch up.

        It ends within a poll of the job's end, or `TAIL_SECONDS` after the last line where lines come later.
        Throttling and lost connections are waited out; raises `TransientError` when they do not end.
        """
        clock = self._connection.clock
        unread: deque[str] = deque()
        while True:
            description = self._retry.call(describe)
            ended = description["TrainingJobStatus"] in ENDED
            if ended:
                yield from self._last_words()
            if on_description is not None:
                on_description(description)
            if ended:
                return
            if len(self._places) < _expected(description):
                self._find_streams()
            if not unread:
                unread = deque(self._streams())
            look_again = clock.now() + self._pause
            # Many streams, or a host that logs faster than is read, must not hide the job's end.
            while unread and clock.now() < look_again:
                if not (yield from self._next_page(unread[0])):
                    unread.popleft()
            if not unread and clock.now() < look_again:
                clock.sleep(look_again - clock.now())

    def _last_words(self) -> Iterator[LogEvent]:
        """Yield what comes after the job's end: of every stream, then of those that go on, until none does."""
        self._connection.clock.sleep(TAIL_SECONDS)
        self._find_streams()
        going_on = self._streams()
        for _ in range(_LAST_LOOKS):
            looked_at, going_on = going_on, []
            for stream in looked_at:
                before = self._places[stream].read
                while (yield from self._next_page(stream)):
                    pass
                if self._places[stream].read > before:
                    going_on.append(stream)
            if not going_on:
                return
            self._connection.clock.sleep(TAIL_SECONDS)

    def _streams(self) -> list[str]:
        # By name, which ends with the time it began: a host that started again continues its earlier stream.
        return sorted(self._places)

    def _find_streams(self) -> None:
        def read() -> list[str]:
            pages = self._connection.client("logs").get_paginator("describe_log_streams")
            found = pages.paginate(logGroupName=LOG_GROUP, logStreamNamePrefix=f"{self._name}/")
            return [stream["logStreamName"] for page in found for stream in page["logStreams"]]

        try:
            found = self._retry.call(lambda: self._connection.call(f"the log of {self._name}", read))
        except JobNotFoundError:  # no job of this account has logged yet: there is no log group
            return
        for stream in found:
            self._places.setdefault(stream, _StreamPosition())

    def _next_page(self, stream: str) -> Generator[LogEvent, None, bool]:
        """Yield the next lines of a stream; return whether there may be more now."""
        host = _host(stream)
        place = self._places[stream]
        try:
            page = self._page(stream, place)
        except JobNotFoundError:  # the stream was deleted
            return False
        for event in page["events"]:
            if place.is_new(event["timestamp"]):
                yield LogEvent(host, event["message"])
        # Only now: a reader that stops within a page has not read it.
        return place.go_on(page)

    def _page(self, stream: str, place: _StreamPosition) -> Mapping[str, Any]:
        try:
            return self._answer(stream, place)
        except PlatformError as error:
            # Refused for what was asked: the token is too old.
            if not place.token or type(error) not in (PlatformError, RequestError):
                raise
        place.forget_token()
        return self._answer(stream, place)

    def _answer(self, stream: str, place: _StreamPosition) -> Mapping[str, Any]:
        def read() -> Mapping[str, Any]:
            page: Mapping[str, Any] = self._connection.client("logs").get_log_events(
                logGroupName=LOG_GROUP, logStreamName=stream, startFromHead=True, **place.arguments()
            )
            return page

        return self._retry.call(lambda: self._connection.call(f"the log stream {stream}", read))


class _StreamPosition:
    """How far a stream was read: the token for what comes next, and where that is, should the token be refused.

    A token lives for 24 hours (GetLogEvents, CloudWatch Logs API reference): a host may well be silent for longer.
    """

    def __init__(self) -> None:
        #: Empty at the place that ``_start`` is.
        self.token = ""
        #: Epoch milliseconds from which on the stream is read; 0 is its beginning.
        self._start = 0
        #: The time of the last line that was read, and how many of that time were.
        self._time = self._lines = 0
        #: Lines of that time that come a second time.
        self._again = 0
        self._empty_pages = 0
        #: How many lines were read.
        self.read = 0

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of GetLogEvents."""
        start = {"startTime": self._start} if self._start else {}
        return {**start, "nextToken": self.token} if self.token else start

    def is_new(self, timestamp: int) -> bool:
        """Count a line; say whether it was not read before."""
        if self._again and timestamp == self._time:
            self._again -= 1
            return False
        self._again = 0
        self.read += 1
        self._lines = self._lines + 1 if timestamp == self._time else 1
        self._time = timestamp
        return True

    def go_on(self, page: Mapping[str, Any]) -> bool:
        """Move behind a page; return whether there may be another one now.

        A page without lines is not the end, the token that was sent is (GetLogEvents, CloudWatch Logs API reference).
        """
        sent, self.token = self.token, page["nextForwardToken"]
        self._empty_pages = 0 if page["events"] else self._empty_pages + 1
        if self.token != sent and self._empty_pages < _EMPTY_PAGES:
            return True
        self._empty_pages = 0
        return False

    def forget_token(self) -> None:
        """Continue from the time of the last line."""
        self.token = ""
        self._start, self._again = self._time, self._lines


def _host(stream: str) -> str:
    return stream.rsplit("/", 1)[-1].rpartition("-")[0]


def _expected(description: Mapping[str, Any]) -> int:
    """Return the number of streams to expect: one for each host, and more for each restart."""
    transitions = description.get("SecondaryStatusTransitions", ())
    restarts = sum(each["Status"] in _RESTARTS for each in transitions)
    return host_count(description) * (1 + restarts)
