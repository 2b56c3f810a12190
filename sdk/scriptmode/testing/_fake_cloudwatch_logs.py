"""The fake's Amazon CloudWatch Logs: the operations of `scriptmode serve` on the logs of the fake's training jobs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import Any

from scriptmode.testing._fake_account import FakeAccount, Operation
from scriptmode.testing._fake_job import FakeJob
from scriptmode.testing._job_life import Line as ScriptedLine
from scriptmode_serve._operations.aws_json import ApiError
from scriptmode_serve._operations.log_operations import LOG_GROUP, Logs, Stream
from scriptmode_serve._operations.log_pages import MOST_LINES, Line


@dataclass(frozen=True)
class _Log:
    """The lines that CloudWatch Logs has of a host's log; the offset of a line is its number."""

    lines: Sequence[ScriptedLine]
    created: float

    @cached_property
    def times(self) -> list[int]:
        """The times of the lines in milliseconds since the epoch."""
        return [round((self.created + line.second) * 1000) for line in self.lines]

    @property
    def span(self) -> tuple[int, int]:
        return self.times[0], self.times[-1]

    def forwards(self, offset: int) -> Iterator[Line]:
        return (Line(at, at + 1, self.times[at], self.lines[at].text) for at in range(offset, len(self.lines)))

    def start_at(self, moment: int) -> int:
        return bisect_left(self.times, moment)

    def start_of_page(self, end: int, limit: int) -> int:
        return max(0, end - limit)

    end = start_at


class FakeLogs:
    """The operations on log streams."""

    def __init__(self, account: FakeAccount) -> None:
        self._account = account
        group = account.arn("logs", f"log-group:{LOG_GROUP}")
        self._served = Logs(lambda: account.jobs, self.streams, group).operations
        self.operations: dict[str, Operation] = {name: partial(self._call, name) for name in self._served}

    def streams(self, name: str) -> list[Stream]:
        """Return the streams of a job that have a line by now."""
        job = self._account.jobs.get(name)
        if job is None:
            return []
        created, streams = job.moment(0).timestamp(), []
        for host, lines in self._lines(job):
            # Hosts that start again have new streams.
            for _, of_start in groupby(lines, job.start_of):
                log = _Log([*of_start], created)
                first = log.times[0]
                streams.append(Stream(f"{name}/{host}-{first}", first, log, round(self._account.log_delay * 1000)))
        return streams

    def _lines(self, job: FakeJob) -> Iterator[tuple[str, Sequence[ScriptedLine]]]:
        """Yield the lines that the service has by now of each host that has some."""
        now = self._account.clock.now()
        until = min(now - self._account.log_delay - job.created, job.age(now))
        for host, lines in job.logs.items():
            if written := [line for line in lines if line.second <= until]:
                yield host, written

    def _call(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if not any(True for job in self._account.jobs.values() for _ in self._lines(job)):
            raise ApiError("ResourceNotFoundException", "The specified log group does not exist.")
        return self._page(arguments) if name == "GetLogEvents" else self._served[name](arguments)

    def _page(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a page of lines, or an empty one whose token has the number of empty ones at this place."""
        token, _, count = arguments.get("nextToken", "").partition("#")
        limit = arguments.get("limit", MOST_LINES)
        limit = limit if limit > MOST_LINES else min(limit, self._account.page_lines)
        page = self._served["GetLogEvents"]({**arguments, "nextToken": token or None, "limit": limit})
        empty = int(count or 0)
        if not page["events"] or empty >= self._account.empty_log_pages:
            return page
        is_forwards = token.startswith("f") if token else bool(arguments.get("startFromHead"))
        side, other = ("Forward", "Backward") if is_forwards else ("Backward", "Forward")
        here = page[f"next{other}Token"]
        return {"events": [], f"next{side}Token": f"{side[0].lower()}{here[1:]}#{empty + 1}", f"next{other}Token": here}
