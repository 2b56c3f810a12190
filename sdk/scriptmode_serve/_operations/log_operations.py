"""CloudWatch Logs' operations on the logs of training jobs, which `scriptmode serve` and `FakeSageMaker` share.

The log of a host is a log stream, ``<job>/<host>-<milliseconds>``. All times are milliseconds since the epoch.
"""

from __future__ import annotations

import base64
import heapq
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from scriptmode._core.spec.hosts import LOCAL_ACCOUNT
from scriptmode.errors import JobNotFoundError, UnreadableJobError
from scriptmode_serve._operations.aws_json import ApiError, Operation
from scriptmode_serve._operations.log_pages import MOST_BYTES, MOST_LINES, Line

if TYPE_CHECKING:
    from scriptmode_local import LocalPlatform
    from scriptmode_serve._operations.log_times import KnownTimes

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
#: A time after those of all lines.
EVER = 1 << 62
#: The most streams of a page (DescribeLogStreams, API reference).
_STREAMS = 50
#: The most characters of a filter pattern (FilterLogEvents, API reference); and a term, quoted or not.
_LONGEST_PATTERN = 1024
_TERM = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)')
_TOKEN = re.compile(r"([fb])/(\d{1,20})")
#: Bytes that an event has beside its text (PutLogEvents, API reference).
_EVENT_BYTES = 26
#: Seconds that one FilterLogEvents call searches; the next page goes on.
_SEARCH_SECONDS = 5.0


class Log(Protocol):
    """The lines of a log. Their offsets grow; those of a file are in bytes."""

    @property
    def span(self) -> tuple[int, int]:
        """The times of the first and of the last line."""

    def forwards(self, offset: int) -> Iterator[Line]:
        """Yield the lines from an offset on, which is that of a line's beginning."""

    def start_at(self, moment: int) -> int:
        """Return the offset of the first line that may be as new as ``moment``."""

    def start_of_page(self, end: int, limit: int) -> int:
        """Return where a page begins whose last line ends at the offset ``end``."""

    def end(self, until: int) -> int:
        """Return the offset after the last line that is older than ``until``."""


class Stream(NamedTuple):
    """The log of one host that has lines; ``delay`` is the time that the service took to have each."""

    name: str
    created: int
    log: Log
    delay: int = 0

    def event(self, line: Line) -> dict[str, object]:
        """Return a line as the service's answers have it."""
        return {"timestamp": line.time, "message": line.text, "ingestionTime": line.time + self.delay}


class Logs:
    """The operations of CloudWatch Logs on the log group of training jobs, whose ARN is ``group``.

    ``jobs`` returns the names of the jobs that may have lines, and ``streams`` the streams of one: none for a job that
    does not exist, and for hosts without output.
    """

    def __init__(
        self,
        jobs: Callable[[], Iterable[str]],
        streams: Callable[[str], list[Stream]],
        group: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs, self._streams_of = jobs, streams
        self._group = group
        self._clock = clock
        self.operations: dict[str, Operation] = {
            "DescribeLogGroups": self._describe_groups,
            "DescribeLogStreams": self._describe_streams,
            "GetLogEvents": self._events,
            "FilterLogEvents": self._filter,
        }

    def _describe_groups(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        prefix, part = (str(arguments.get(f"logGroupName{name}") or "") for name in ("Prefix", "Pattern"))
        if prefix and part:
            raise _invalid("LogGroup name prefix and LogGroup name pattern are mutually exclusive parameters.")
        is_asked = LOG_GROUP.startswith(prefix) and part.lower() in LOG_GROUP.lower()
        row = {"logGroupName": LOG_GROUP, "arn": f"{self._group}:*", "logGroupArn": self._group, "storedBytes": 0}
        return {"logGroups": [row] if is_asked else []}

    def _describe_streams(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        _check_group(arguments)
        prefix = str(arguments.get("logStreamNamePrefix", ""))
        order = arguments.get("orderBy") or "LogStreamName"
        if order not in ("LogStreamName", "LastEventTime"):
            raise _invalid(f"orderBy is {order!r}; it must be LogStreamName or LastEventTime.")
        by_time = order == "LastEventTime"
        if by_time and prefix:
            raise _invalid("Cannot order by LastEventTime with a logStreamNamePrefix.")
        rows = [self._describe(stream) for stream in self._streams(prefix)]
        key = "lastEventTimestamp" if by_time else "logStreamName"
        rows.sort(key=lambda row: (row[key], row["logStreamName"]), reverse=bool(arguments.get("descending")))
        token = arguments.get("nextToken", "0")
        if not isinstance(token, str) or not token.isdecimal():
            raise _invalid_token()
        start = int(token)
        end = start + _limit(arguments, _STREAMS)
        return {"logStreams": rows[start:end], **({"nextToken": str(end)} if end < len(rows) else {})}

    def _describe(self, stream: Stream) -> dict[str, object]:
        first, last = stream.log.span
        return {
            "logStreamName": stream.name,
            "creationTime": stream.created,
            "firstEventTimestamp": first,
            "lastEventTimestamp": last,
            "lastIngestionTime": last + stream.delay,
            "uploadSequenceToken": "0",
            "arn": f"{self._group}:log-stream:{stream.name}",
            "storedBytes": 0,
        }

    def _events(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        _check_group(arguments)
        stream = self._stream(str(arguments.get("logStreamName", "")))
        limit = _limit(arguments, MOST_LINES)
        since, until = _span(arguments)
        log = stream.log
        first, last = log.start_at(since), log.end(until)
        token = arguments.get("nextToken")
        if token is None:
            is_forwards = bool(arguments.get("startFromHead"))
            offset = first if is_forwards else last
        else:
            parsed = _TOKEN.fullmatch(str(token))
            if parsed is None:
                raise _invalid_token()
            is_forwards, offset = parsed[1] == "f", min(int(parsed[2]), last)
        if is_forwards:
            offset = max(offset, first)
            lines = _page(takewhile(lambda line: line.end <= last, log.forwards(offset)), limit)
        else:
            end, offset = offset, max(first, log.start_of_page(offset, limit)) if offset > first else offset
            lines = list(takewhile(lambda line: line.end <= end, log.forwards(offset))) if offset < end else []
        return {
            "events": [stream.event(line) for line in lines if line.time >= since],
            "nextForwardToken": f"f/{lines[-1].end if lines else offset:020d}",
            "nextBackwardToken": f"b/{lines[0].start if lines else offset:020d}",
        }

    def _filter(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        _check_group(arguments)
        terms = _parse_terms(str(arguments.get("filterPattern", "")))
        names = arguments.get("logStreamNames") or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise _invalid("logStreamNames is not a list of texts.")
        prefix = str(arguments.get("logStreamNamePrefix", ""))
        streams = [self._stream(name) for name in names] if names else self._streams(prefix)
        since, until = _span(arguments)
        offsets = _parse_offsets(arguments.get("nextToken"))
        events: list[dict[str, object]] = []
        limit, used, more = _limit(arguments, MOST_LINES), 0, False
        deadline = self._clock() + _SEARCH_SECONDS
        for line, stream in heapq.merge(
            *(_tagged(stream, offsets, since) for stream in streams), key=lambda pair: (pair[0].time, pair[1].name)
        ):
            if line.time >= until:
                break
            if len(events) == limit or used > MOST_BYTES or self._clock() >= deadline:
                more = True
                break
            offsets[stream.name] = line.end
            if line.time >= since and all(term in line.text for term in terms):
                used += len(line.text) + _EVENT_BYTES
                identifier = f"{stream.created:020d}{line.time:016d}{line.start:020d}"
                events.append({"logStreamName": stream.name, **stream.event(line), "eventId": identifier})
        searched = [{"logStreamName": stream.name, "searchedCompletely": not more} for stream in streams]
        token = base64.urlsafe_b64encode(json.dumps(offsets).encode()).decode()
        return {"events": events, "searchedLogStreams": searched, **({"nextToken": token} if more else {})}

    def _streams(self, prefix: str) -> list[Stream]:
        """Return the streams of jobs that have output, by a prefix of their names."""
        job, slash, _ = prefix.partition("/")
        names = [job] if slash else [name for name in self._jobs() if name.startswith(job)]
        return [stream for name in names for stream in self._streams_of(name) if stream.name.startswith(prefix)]

    def _stream(self, name: str) -> Stream:
        for stream in self._streams_of(name.partition("/")[0]):
            if stream.name == name:
                return stream
        raise ApiError("ResourceNotFoundException", "The specified log stream does not exist.")


def log_operations(platform: LocalPlatform, known: KnownTimes) -> dict[str, Operation]:
    """Return the operations of CloudWatch Logs on the jobs of a platform by their names."""
    group = f"arn:aws:logs:{platform.region}:{LOCAL_ACCOUNT}:log-group:{LOG_GROUP}"
    return Logs(known.jobs, partial(streams_of_job, platform, known), group).operations


def streams_of_job(platform: LocalPlatform, known: KnownTimes, job: str) -> list[Stream]:
    """Return the streams of a job of a platform; none for a job that does not exist, and for hosts without output."""
    streams = []
    try:
        # Before the logs are measured: what a job that has ended wrote is complete.
        description = platform.describe(job)
        created = round(description.created.timestamp() * 1000) if description.created else 0
        for host, log in known.logs(description):
            if log.length:
                streams.append(Stream(f"{job}/{host}-{created}", created, log))
    except (JobNotFoundError, UnreadableJobError, FileNotFoundError):
        return []
    return streams


def _tagged(stream: Stream, offsets: Mapping[str, int], since: int) -> Iterator[tuple[Line, Stream]]:
    start = max(offsets.get(stream.name, 0), stream.log.start_at(since))
    return ((line, stream) for line in stream.log.forwards(start))


def _page(lines: Iterator[Line], limit: int) -> list[Line]:
    page: list[Line] = []
    used = 0
    for line in lines:
        used += len(line.text) + _EVENT_BYTES
        if page and used > MOST_BYTES:
            break
        page.append(line)
        if len(page) == limit:
            break
    return page


def _check_group(arguments: Mapping[str, Any]) -> None:
    """Raise `ApiError` for a log group that is not the one of training jobs."""
    group = arguments.get("logGroupName") or str(arguments.get("logGroupIdentifier", "")).rpartition("log-group:")[2]
    if group != LOG_GROUP:
        raise ApiError("ResourceNotFoundException", "The specified log group does not exist.")


def _parse_terms(pattern: str) -> list[str]:
    """Return the terms that a line has to have; raise `ApiError` for another kind of pattern."""
    read, rest = pattern[:_LONGEST_PATTERN], pattern[_LONGEST_PATTERN:]
    terms = list(_TERM.finditer(read))
    if rest or _TERM.sub("", read).strip() or any(term[2] and term[2][0] in "?-%{[" for term in terms):
        served = f"terms and quoted terms, {_LONGEST_PATTERN} characters at most"
        raise _invalid(f"Invalid filter pattern: {read!r}. Served are {served}.")
    return [re.sub(r"\\(.)", r"\1", term[1]) if term[1] is not None else term[2] for term in terms]


def _span(arguments: Mapping[str, Any]) -> tuple[int, int]:
    since, until = arguments.get("startTime") or 0, arguments.get("endTime") or EVER
    if not isinstance(since, int) or not isinstance(until, int):
        raise _invalid("startTime and endTime are milliseconds since the epoch.")
    return since, until


def _limit(arguments: Mapping[str, Any], most: int) -> int:
    limit = arguments.get("limit", most)
    if not isinstance(limit, int) or not 1 <= limit <= most:
        raise _invalid(f"limit is {limit!r}; it must be from 1 to {most}.")
    return limit


def _parse_offsets(token: object) -> dict[str, int]:
    if token is None:
        return {}
    try:
        offsets = json.loads(base64.urlsafe_b64decode(str(token)))
        return {str(name): int(offset) for name, offset in offsets.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise _invalid_token() from error


def _invalid_token() -> ApiError:
    return _invalid("The specified nextToken is invalid.")


def _invalid(message: str) -> ApiError:
    return ApiError("InvalidParameterException", message)
