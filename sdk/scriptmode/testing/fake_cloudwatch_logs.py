"""The fake's Amazon CloudWatch Logs: one stream for each host of a training job."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scriptmode.testing import botocore_models
from scriptmode.testing.fake_account import FakeAccount
from scriptmode.testing.fake_client import Operation
from scriptmode.testing.fake_job import FakeJob, HostLog
from scriptmode.testing.service_calls import ServiceError

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
#: The most streams in an answer (DescribeLogStreams, API reference).
_STREAMS_A_PAGE = 50
#: A token has the side, the number of lines before it, and how many empty pages were given there.
_TOKEN = re.compile(r"([fb])/(\d{40})(\d{16})")


@dataclass(frozen=True)
class _Stream:
    """A host's log as far as CloudWatch Logs has it: the first ``count`` lines. Times are epoch milliseconds."""

    name: str
    log: HostLog
    created: float
    count: int
    delay: float

    def timestamp(self, second: float) -> int:
        return round((self.created + second) * 1000)

    def event(self, index: int) -> dict[str, Any]:
        line = self.log.lines[index]
        timestamp = self.timestamp(line.second)
        return {"timestamp": timestamp, "message": line.text, "ingestionTime": timestamp + round(self.delay * 1000)}

    def description(self, arn: str) -> dict[str, Any]:
        last = self.timestamp(self.log.seconds[self.count - 1])
        return {
            "logStreamName": self.name,
            "creationTime": self.timestamp(self.log.seconds[0]),
            "firstEventTimestamp": self.timestamp(self.log.seconds[0]),
            "lastEventTimestamp": last,
            "lastIngestionTime": last + round(self.delay * 1000),
            "uploadSequenceToken": "0",
            "arn": f"{arn}:log-stream:{self.name}",
            "storedBytes": 0,
        }


class FakeLogs:
    """The operations on log streams."""

    def __init__(self, account: FakeAccount) -> None:
        self._account = account
        self.operations: dict[str, Operation] = {
            "describe_log_streams": self._describe_streams,
            "get_log_events": self._events,
        }

    def _describe_streams(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        botocore_models.check_limits("logs", "describe_log_streams", arguments)
        self._check_group(arguments)
        by_time = arguments.get("orderBy") == "LastEventTime"
        if by_time and "logStreamNamePrefix" in arguments:
            raise ServiceError("InvalidParameterException", "Cannot order by LastEventTime with a logStreamNamePrefix.")
        arn = self._account.arn("logs", f"log-group:{LOG_GROUP}")
        found = [stream.description(arn) for stream in self._streams(arguments.get("logStreamNamePrefix", ""))]
        found.sort(
            key=lambda stream: stream["lastEventTimestamp" if by_time else "logStreamName"],
            reverse=arguments.get("descending", False),
        )
        token = arguments.get("nextToken", "0")
        if not token.isdigit():
            raise _invalid_token()
        start = int(token)
        end = start + arguments.get("limit", _STREAMS_A_PAGE)
        return {"logStreams": found[start:end], **({"nextToken": str(end)} if end < len(found) else {})}

    def _events(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        botocore_models.check_limits("logs", "get_log_events", arguments)
        self._check_group(arguments)
        name = arguments["logStreamName"]
        stream = next((each for each in self._streams(name) if each.name == name), None)
        if stream is None:
            raise ServiceError("ResourceNotFoundException", "The specified log stream does not exist.")
        first, last = _span(stream, arguments)
        side, position, empty = _position(arguments, first, last)
        limit = min(arguments.get("limit", self._account.page_lines), self._account.page_lines)
        position = min(max(position, first), last)
        more = position < last if side == "f" else position > first
        if more and empty < self._account.empty_log_pages:
            return _answer(stream, (position, position), (side, empty + 1))
        if side == "f":
            return _answer(stream, (position, min(position + limit, last)))
        return _answer(stream, (max(position - limit, first), position))

    def _check_group(self, arguments: Mapping[str, Any]) -> None:
        group = arguments.get("logGroupName") or arguments.get("logGroupIdentifier", "").rpartition("log-group:")[2]
        if group != LOG_GROUP or not any(
            log.written(self._known(job)) for job in self._account.jobs.values() for log in job.logs.values()
        ):
            raise ServiceError("ResourceNotFoundException", "The specified log group does not exist.")

    def _streams(self, prefix: str) -> list[_Stream]:
        """Find the streams that have a line by now."""
        found = []
        for job in self._account.jobs.values():
            if f"{job.name}/".startswith(prefix[: len(job.name) + 1]):
                streams = [self._stream_of(job, host) for host in job.logs]
                found += [stream for stream in streams if stream.count and stream.name.startswith(prefix)]
        return found

    def _stream_of(self, job: FakeJob, host: str) -> _Stream:
        log = job.logs[host]
        created = self._account.clock.wall_time(job.created).timestamp()
        name = f"{job.name}/{host}-{round((created + log.seconds[0]) * 1000)}"
        return _Stream(name, log, created, log.written(self._known(job)), self._account.log_delay)

    def _known(self, job: FakeJob) -> float:
        """Return the second of a job's life up to which CloudWatch Logs has its lines."""
        now = self._account.clock.now()
        return min(now - self._account.log_delay - job.created, job.age(now))


def _span(stream: _Stream, arguments: Mapping[str, Any]) -> tuple[int, int]:
    """Return the lines between startTime and endTime: the index of the first, and the one after the last."""
    first, last = 0, stream.count
    while first < last and stream.timestamp(stream.log.seconds[first]) < arguments.get("startTime", 0):
        first += 1
    while first < last and stream.timestamp(stream.log.seconds[last - 1]) >= arguments.get("endTime", math.inf):
        last -= 1
    return first, last


def _position(arguments: Mapping[str, Any], first: int, last: int) -> tuple[str, int, int]:
    """Return the direction, the line to continue at, and the number of empty pages returned there."""
    token = arguments.get("nextToken")
    if token is None:
        return ("f", first, 0) if arguments.get("startFromHead") else ("b", last, 0)
    read = _TOKEN.fullmatch(token)
    if read is None:
        raise _invalid_token()
    return read.group(1), int(read.group(2)), int(read.group(3))


def _invalid_token() -> ServiceError:
    return ServiceError("InvalidParameterException", "The specified nextToken is invalid.")


def _answer(stream: _Stream, lines: tuple[int, int], empty: tuple[str, int] = ("", 0)) -> dict[str, Any]:
    """Return a response with lines and tokens; ``empty`` counts the empty pages of each direction."""
    side, count = empty
    start, end = lines
    return {
        "events": [stream.event(index) for index in range(start, end)],
        "nextForwardToken": _token("f", end, count if side == "f" else 0),
        "nextBackwardToken": _token("b", start, count if side == "b" else 0),
    }


def _token(side: str, position: int, empty: int) -> str:
    return f"{side}/{position:040d}{empty:016d}"
