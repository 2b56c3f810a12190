"""A job's CloudWatch log streams, one per host, read to their ends without losing or repeating a line."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from operator import attrgetter
from typing import Any

from scriptmode._core.aws.retry import RETRY_SECONDS, retry
from scriptmode._core.aws.session import Connection
from scriptmode._core.spec.job_description import JobDescription, JobStatus
from scriptmode._core.spec.service_values import LogEvent
from scriptmode._core.text.messages import still_running
from scriptmode.errors import JobNotFoundError, PlatformError, RequestError

#: Where the service logs (Amazon SageMaker developer guide, "Log groups and streams").
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
#: CloudWatch usually has a line within these seconds.
_TAIL_SECONDS = 2.0
#: Number of times that streams with new lines are read again after the end of the job.
_LATE_READS = 10
#: Secondary statuses after which every host starts again, with a new stream.
_RESTARTS = ("Interrupted", "Restarting")
#: Number of empty pages after which a stream is at its end: if all lines are past their retention, CloudWatch returns
#: empty pages with new tokens for ever.
_EMPTY_PAGES = 100


class LogTail:
    """A reader of all log streams of a job, with its position in each."""

    def __init__(
        self, name: str, connection: Connection, poll_seconds: float, retry_seconds: float | None = None
    ) -> None:
        self._name = name
        self._connection = connection
        #: Half of a poll, where that is less: of a service that has a line at once.
        self._tail = min(_TAIL_SECONDS, poll_seconds / 2)
        self._pause = poll_seconds - self._tail
        limit = RETRY_SECONDS if retry_seconds is None else retry_seconds
        self._retry = partial(retry, clock=connection.clock, advice=still_running(name), limit=limit)
        self._positions: dict[str, _StreamPosition] = {}

    def read_available(self) -> Iterator[LogEvent]:
        """Return all lines that CloudWatch has now, in the order of their times."""
        return heapq.merge(*map(self._rest, self._find_streams()), key=attrgetter("time"))

    def _rest(self, stream: str) -> Iterator[LogEvent]:
        while (yield from self._next_page(stream)):
            pass

    def read_ends(self, lines: int) -> dict[str, str]:
        """Return the last lines of each host's latest stream, as far as CloudWatch has them on one page."""
        latest = {_host(stream): stream for stream in self._find_streams()}
        pages = {host: self._answer(stream, startFromHead=False, limit=lines) for host, stream in latest.items()}
        return {host: "\n".join(event["message"] for event in page["events"]) for host, page in pages.items()}

    def stream_locations(self) -> dict[str, str]:
        """Return the log group and the latest stream of each host."""
        return {_host(stream): f"CloudWatch log group {LOG_GROUP}, stream {stream}" for stream in self._find_streams()}

    def follow(
        self, describe: Callable[[], JobDescription], on_description: Callable[[JobDescription], None] | None
    ) -> Iterator[LogEvent]:
        """Yield lines as they come, until the job has ended and CloudWatch has had time to catch up.

        Ends within one poll after the job's end, or a little after the last line if lines come later. Throttling
        and lost connections are retried; raises `TransientError` if they persist.
        """
        clock = self._connection.clock
        unread: deque[str] = deque()
        tell, shown = on_description or (lambda _: None), 0
        while True:
            description = self._retry(describe)
            # Lines precede the status that ended them, as far as they are there when it is.
            is_at_once = self._tail < _TAIL_SECONDS and 0 < shown < len(description.transitions)
            if description.has_ended or is_at_once:
                # Else lines of a job that began and ended within a poll would precede its first status.
                tell(_before_end(description, shown))
                yield from self._late_lines() if description.has_ended else self.read_available()
            tell(description)
            if description.has_ended:
                return
            shown = len(description.transitions)
            # One for each host, and more for each restart.
            restarts = sum(transition.status in _RESTARTS for transition in description.transitions)
            if len(self._positions) < description.job.resources.count * (1 + restarts):
                self._find_streams()
            if not unread:
                unread = deque(self._streams())
            look_again = clock.now() + self._pause
            # With many streams, or a host that logs faster than is read, the job's end must still be noticed.
            while unread and clock.now() < look_again:
                if not (yield from self._next_page(unread[0])):
                    unread.popleft()
            if not unread and clock.now() < look_again:
                clock.sleep(look_again - clock.now())

    def _late_lines(self) -> Iterator[LogEvent]:
        """Yield lines that arrive after the job's end: of all streams, then again of those that had new lines."""
        self._connection.clock.sleep(self._tail)
        going_on = self._find_streams()
        for _ in range(_LATE_READS):
            looked_at, going_on = going_on, []
            for stream in looked_at:
                before = self._positions[stream].read
                yield from self._rest(stream)
                if self._positions[stream].read > before:
                    going_on.append(stream)
            if not going_on:
                return
            self._connection.clock.sleep(self._tail)

    def _streams(self) -> list[str]:
        # Names end with the start time: the streams of a host that restarted are in order.
        return sorted(self._positions)

    def _find_streams(self) -> list[str]:
        selection = {"logGroupName": LOG_GROUP, "logStreamNamePrefix": f"{self._name}/"}
        listed = (f"the log of {self._name}", "logs", "describe_log_streams", "logStreams", selection)
        with suppress(JobNotFoundError):  # no job of this account has logged yet: the log group does not exist
            for stream in self._retry(lambda: self._connection.list_all(*listed)):
                self._positions.setdefault(stream["logStreamName"], _StreamPosition())
        return self._streams()

    def _next_page(self, stream: str) -> Generator[LogEvent, None, bool]:
        """Yield the next lines of a stream; return whether there may be more now."""
        host = _host(stream)
        position = self._positions[stream]
        try:
            page = self._page(stream, position)
        except JobNotFoundError:  # the stream was deleted
            return False
        for event in page["events"]:
            if position.is_new(event["timestamp"]):
                moment = datetime.fromtimestamp(event["timestamp"] / 1000, timezone.utc)
                yield LogEvent(host, event["message"], time=moment)
        # Only now: a reader that stops within a page has not read it.
        return position.advance(page)

    def _page(self, stream: str, position: _StreamPosition) -> Mapping[str, Any]:
        def read() -> Mapping[str, Any]:
            return self._retry(lambda: self._answer(stream, startFromHead=True, **position.arguments()))

        try:
            return read()
        except PlatformError as error:
            # The request was refused: the token is too old.
            if not position.token or type(error) not in (PlatformError, RequestError):
                raise
        position.forget_token()
        return read()

    def _answer(self, stream: str, **arguments: Any) -> Mapping[str, Any]:
        asked = {"logGroupName": LOG_GROUP, "logStreamName": stream, **arguments}
        answer: Mapping[str, Any] = self._connection.call(
            f"the log stream {stream}", lambda: self._connection.client("logs").get_log_events(**asked)
        )
        return answer


class _StreamPosition:
    """The position in a stream: a token for the next page, and a time from which to read if the token is refused.

    A token expires after 24 hours (GetLogEvents, CloudWatch Logs API reference), and a host may be silent for longer.
    After it has expired, the stream is read from the timestamp of the last line, and as many lines of that timestamp
    as were read before are skipped.
    """

    def __init__(self) -> None:
        #: Empty if the next page starts at ``_start``.
        self.token = ""
        #: Epoch milliseconds from which the stream is read; 0 for its beginning.
        self._start = 0
        #: Timestamp of the last line read, and the number of lines read with that timestamp.
        self._time = self._lines = 0
        #: Number of lines with that timestamp that are still to be skipped.
        self._repeated = 0
        self._empty_pages = 0
        #: Number of lines read.
        self.read = 0

    def arguments(self) -> Mapping[str, object]:
        """Return the arguments of GetLogEvents."""
        start = {"startTime": self._start} if self._start else {}
        return {**start, "nextToken": self.token} if self.token else start

    def is_new(self, timestamp: int) -> bool:
        """Return whether a line was not read before, and count it."""
        if self._repeated and timestamp == self._time:
            self._repeated -= 1
            return False
        self._repeated = 0
        self.read += 1
        self._lines = self._lines + 1 if timestamp == self._time else 1
        self._time = timestamp
        return True

    def advance(self, page: Mapping[str, Any]) -> bool:
        """Move behind a page; return whether there may be another one now.

        A page without lines is not the end, the token that was sent is (GetLogEvents, CloudWatch Logs API reference).
        """
        sent, self.token = self.token, page["nextForwardToken"]
        self._empty_pages = 0 if page["events"] else self._empty_pages + 1
        has_more: bool = self.token != sent and self._empty_pages < _EMPTY_PAGES
        self._empty_pages *= has_more
        return has_more

    def forget_token(self) -> None:
        """Continue from the time of the last line."""
        self.token = ""
        self._start, self._repeated = self._time, self._lines


def _before_end(description: JobDescription, shown: int) -> JobDescription:
    """Return a job as it was while it had its lines so far: up to its training, or what was ``shown`` of it."""
    statuses = [transition.status for transition in description.transitions]
    trained = max((number for number, name in enumerate(statuses, 1) if name == "Training"), default=len(statuses) - 1)
    transitions = description.transitions[: max(trained, shown)]
    secondary = transitions[-1].status if transitions else ""
    return replace(description, status=JobStatus.IN_PROGRESS, secondary=secondary, transitions=transitions)


def _host(stream: str) -> str:
    return stream.rsplit("/", 1)[-1].rpartition("-")[0]
