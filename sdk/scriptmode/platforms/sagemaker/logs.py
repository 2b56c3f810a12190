"""A job's CloudWatch log streams, one a host, read to their ends: no line lost, none twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.errors import JobNotFoundError
from scriptmode.job import ENDED
from scriptmode.patience import Patience, goes_on
from scriptmode.platforms import LogEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scriptmode.platforms.sagemaker.connection import Connection

#: Where the service logs (Amazon SageMaker developer guide, "Log groups and streams").
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
#: CloudWatch usually has a line within these seconds.
TAIL_SECONDS = 2.0
#: Secondary statuses after which every host starts again, with a stream of its own.
_RESTARTS = ("Interrupted", "Restarting")


class LogTail:
    """The place reached in each stream of a job."""

    def __init__(self, name: str, connection: Connection, poll_seconds: float) -> None:
        self._name = name
        self._connection = connection
        self._pause = poll_seconds - TAIL_SECONDS
        self._patience = Patience(connection.clock, goes_on(name))
        #: Each stream's token for what comes next; the empty one is the stream's beginning.
        self._tokens: dict[str, str] = {}

    def so_far(self) -> Iterator[LogEvent]:
        """Yield every line there is."""
        self._find_streams()
        yield from self._new_lines()

    def follow(
        self, describe: Callable[[], dict[str, Any]], on_description: Callable[[dict[str, Any]], None] | None
    ) -> Iterator[LogEvent]:
        """Yield lines as they come, until the job ended and CloudWatch has had the time to catch up.

        Throttling and lost connections are waited out; raises `TransientError` when they do not end.
        """
        while True:
            description = self._patience.through(describe)
            if on_description is not None:
                on_description(description)
            ended = description["TrainingJobStatus"] in ENDED
            if ended:
                self._connection.clock.sleep(TAIL_SECONDS)
            if ended or len(self._tokens) < _expected(description):
                self._find_streams()
            yield from self._new_lines()
            if ended:
                return
            self._connection.clock.sleep(self._pause)

    def _find_streams(self) -> None:
        def read() -> list[str]:
            pages = self._connection.client("logs").get_paginator("describe_log_streams")
            found = pages.paginate(logGroupName=LOG_GROUP, logStreamNamePrefix=f"{self._name}/")
            return [stream["logStreamName"] for page in found for stream in page["logStreams"]]

        try:
            found = self._patience.through(lambda: self._connection.call(f"the log of {self._name}", read))
        except JobNotFoundError:  # no job of this account has logged yet: there is no log group
            return
        for stream in found:
            self._tokens.setdefault(stream, "")

    def _new_lines(self) -> Iterator[LogEvent]:
        # By name, which ends with the time it began: a host that started again continues its earlier stream.
        for stream in sorted(self._tokens):
            yield from self._new_lines_of(stream)

    def _new_lines_of(self, stream: str) -> Iterator[LogEvent]:
        host = stream.rsplit("/", 1)[-1].rpartition("-")[0]
        while True:
            token = self._tokens[stream]
            page = self._page(stream, token)
            for event in page["events"]:
                yield LogEvent(host, event["message"])
            # Only now: whoever stops reading within a page has not read it. An empty page is not the end; the same
            # token is (GetLogEvents, CloudWatch Logs API reference).
            self._tokens[stream] = page["nextForwardToken"]
            if page["nextForwardToken"] == token:
                return

    def _page(self, stream: str, token: str) -> Mapping[str, Any]:
        arguments = {"logGroupName": LOG_GROUP, "logStreamName": stream, "startFromHead": True}
        if token:
            arguments["nextToken"] = token

        def read() -> Mapping[str, Any]:
            page: Mapping[str, Any] = self._connection.client("logs").get_log_events(**arguments)
            return page

        return self._patience.through(lambda: self._connection.call(f"the log stream {stream}", read))


def _expected(description: Mapping[str, Any]) -> int:
    """Give how many streams there will be: one for each host, and again for each time they start again."""
    resources = description.get("ResourceConfig", {})
    groups = resources.get("InstanceGroups") or [resources]
    hosts = sum(int(group.get("InstanceCount", 1)) for group in groups)
    transitions = description.get("SecondaryStatusTransitions", ())
    restarts = sum(each["Status"] in _RESTARTS for each in transitions)
    return hosts * (1 + restarts)
