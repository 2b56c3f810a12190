"""CloudWatch Logs' StartLiveTail: new lines of running jobs every second, as an event stream."""

from __future__ import annotations

import json
import struct
import threading
import time
import uuid
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scriptmode.core.spec.hosts import LOCAL_ACCOUNT
from scriptmode.serve.application import EVENTS
from scriptmode.serve.aws_json import ApiError
from scriptmode.serve.log_filter_pattern import parse_pattern
from scriptmode.serve.log_operations import EVER, LOG_GROUP, JobLogs, Logs, check_group, parse_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scriptmode.platforms.local import LocalPlatform
    from scriptmode.serve.log_operations import LogSource, Stream
    from scriptmode.serve.log_times import LogWatch
    from scriptmode.serve.training_jobs import Operation

#: The most sessions at once, each of which has a thread of the HTTP server.
_MOST_SESSIONS = 4
#: The most lines of an update, and the seconds until the next one (StartLiveTail, API reference).
_MOST_EVENTS, _UPDATE_SECONDS = 500, 1.0
#: The seconds after which a session ends (StartLiveTail, API reference).
_SESSION_SECONDS = 3 * 3600
_TEXT = 7


class LiveTail:
    """The operation, whose answer has an iterator of messages; all sessions end when ``ended`` is set."""

    def __init__(self, source: LogSource, ended: threading.Event, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._ended = ended
        self._clock = clock
        self._free = threading.Semaphore(_MOST_SESSIONS)

    def start(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer with the messages of a new session; raise `ApiError`."""
        for group in parse_texts(arguments, "logGroupIdentifiers") or ("",):
            check_group({"logGroupIdentifier": group})
        matches = parse_pattern(str(arguments.get("logEventFilterPattern", "")))
        names = parse_texts(arguments, "logStreamNames")
        prefixes = tuple(parse_texts(arguments, "logStreamNamePrefixes")) or ("",)
        since = time.time()

        def streams() -> list[Stream]:
            found = [stream for job in self._source.jobs(since) for stream in self._source.streams(job)]
            return [each for each in found if each.name in (names or [each.name]) and each.name.startswith(prefixes)]

        session = self._run(arguments, streams, matches)
        next(session)
        return {EVENTS: session}

    def _run(
        self, arguments: Mapping[str, Any], streams: Callable[[], list[Stream]], matches: Callable[[str], bool]
    ) -> Iterator[bytes]:
        if not self._free.acquire(blocking=False):
            raise ApiError("LimitExceededException", f"{_MOST_SESSIONS} Live Tail sessions are open, the most at once.")
        try:
            offsets = {stream.name: stream.log.end(EVER) for stream in streams()}
            yield b""  # from here on the end of the connection ends the session
            yield _message("initial-response", {})
            yield _message(
                "sessionStart", {**arguments, **dict.fromkeys(("requestId", "sessionId"), str(uuid.uuid4()))}
            )
            deadline, pause = self._clock() + _SESSION_SECONDS, 0.0
            while not self._ended.wait(pause):
                if self._clock() >= deadline:
                    yield _message("SessionTimeoutException", {"message": "The session has timed out."}, "exception")
                    return
                events = _new_events(streams(), offsets, matches)
                yield _message("sessionUpdate", {"sessionMetadata": {"sampled": False}, "sessionResults": events})
                pause = 0.0 if len(events) == _MOST_EVENTS else _UPDATE_SECONDS
        finally:
            self._free.release()


def log_operations(platform: LocalPlatform, watch: LogWatch) -> dict[str, Operation]:
    """Return the operations of CloudWatch Logs on the jobs of a platform by their names, with that of this module."""
    source = JobLogs(platform, watch)
    group = f"arn:aws:logs:{platform.region}:{LOCAL_ACCOUNT}:log-group:{LOG_GROUP}"
    return {**Logs(source, group).operations, "StartLiveTail": LiveTail(source, watch.ended).start}


def _new_events(streams: list[Stream], offsets: dict[str, int], matches: Callable[[str], bool]) -> list[dict[str, Any]]:
    """Return the lines after the offsets, which advance, oldest first."""
    events: list[dict[str, Any]] = []
    for stream in streams:
        with suppress(FileNotFoundError):  # the job was deleted
            for line in stream.log.forwards(offsets.get(stream.name, 0)):
                if len(events) == _MOST_EVENTS:
                    break
                offsets[stream.name] = line.end
                if matches(line.text):
                    events.append({"logStreamName": stream.name, "logGroupIdentifier": LOG_GROUP, **stream.event(line)})
    return sorted(events, key=lambda event: int(event["timestamp"]))


def _message(name: str, content: Mapping[str, Any], kind: str = "event") -> bytes:
    """Return a message of an event stream (Smithy, "Amazon Event Stream Specification")."""
    texts = {":message-type": kind, f":{kind}-type": name, ":content-type": "application/json"}
    headers = b"".join(
        struct.pack("!B", len(key)) + key.encode() + struct.pack("!BH", _TEXT, len(text)) + text.encode()
        for key, text in texts.items()
    )
    body = json.dumps(content).encode()
    prelude = struct.pack("!II", len(headers) + len(body) + 16, len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack("!I", zlib.crc32(message))
