"""The web page of jobs at ``/``: one HTML file, and the operations that it calls beside those of AWS.

The page itself holds no data, and is sent to every browser. What it shows it asks for in requests of its own, which it
signs in the browser where the server has access keys.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scriptmode.errors import JobNotFoundError
from scriptmode_runtime._terminal_line import render_line
from scriptmode_serve._http.wsgi import Environ, StartResponse
from scriptmode_serve._operations.aws_json import Operation, not_found_error, validation_error
from scriptmode_serve._operations.log_pages import MOST_LINES
from scriptmode_serve._operations.metric_operations import MetricValue, ReadValues

#: The prefix of X-Amz-Target in calls of the operations below.
TARGET = "Scriptmode"
#: The most points of a curve; it is not drawn wider.
_MOST_POINTS = 600
#: The most pages of a log that are read for the page's first lines: progress bars are long in the log, and short here.
_MOST_LOG_PAGES = 16


class _Point(NamedTuple):
    """A point of a curve, as the page gets it; ``time`` is in seconds since the epoch, ``number`` counts from 1."""

    time: float
    number: int
    value: float | None
    step: int | None
    epoch: int | None


class PageOperations:
    """Operations that AWS does not have.

    Args:
        values: Returns the values of a job's metrics.
        logs: The operations of CloudWatch Logs.
    """

    def __init__(self, values: ReadValues, logs: Mapping[str, Operation]) -> None:
        self._values = values
        self._logs = logs
        self.operations: dict[str, Operation] = {
            "GetTrainingJobMetrics": self._metrics,
            "GetLogEvents": self._get_log_events,
        }

    def _get_log_events(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what CloudWatch Logs returns, with the text of each line that a terminal would show.

        Without a token these are the last lines, up to the ``limit``.
        """
        get = self._logs["GetLogEvents"]
        answer = before = get(arguments)
        events, limit = answer["events"], arguments.get("limit", MOST_LINES)
        for _ in range(0 if arguments.get("startFromHead") else _MOST_LOG_PAGES):
            token = before["nextBackwardToken"]
            before = get({**arguments, "nextToken": token})
            if before["nextBackwardToken"] == token or len(events) >= limit:
                break
            events = [*before["events"], *events]
        shown = [{**event, "message": render_line(event["message"])} for event in events[-limit:]]
        return {**answer, "events": shown}

    def _metrics(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        name = arguments.get("TrainingJobName")
        if not isinstance(name, str):
            raise validation_error("TrainingJobName is required.")
        try:
            metrics = self._values(name)
        except (JobNotFoundError, FileNotFoundError) as error:
            raise not_found_error() from error
        return {"Metrics": [{"MetricName": name, "Curves": _curves(values)} for name, values in metrics.items()]}


def is_for_page(environ: Environ) -> bool:
    """Return whether a request is a browser's for the page; ``GET /`` of other clients is S3's ListBuckets."""
    return (
        environ.get("REQUEST_METHOD") == "GET"
        and environ.get("PATH_INFO") == "/"
        and not environ.get("QUERY_STRING")
        and "HTTP_AUTHORIZATION" not in environ
        and "text/html" in environ.get("HTTP_ACCEPT", "")
    )


def respond_with_page(start_response: StartResponse) -> list[bytes]:
    """Send the page, and return its body."""
    content, policy = _page()
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Length": str(len(content)),
        "Content-Security-Policy": policy,
        "Cache-Control": "no-cache",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    start_response("200 OK", [*headers.items()])
    return [content]


@functools.lru_cache(maxsize=1)
def _page() -> tuple[bytes, str]:
    """Return the page, and its policy: its own script and style alone, no other site, and no frames."""
    content = Path(__file__).with_name("page.html").read_bytes()
    script, style = (_hash(content, tag) for tag in (b"script", b"style"))
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
    return content, policy


def _hash(content: bytes, tag: bytes) -> str:
    match = re.search(rb"<%b>(.*?)</%b>" % (tag, tag), content, re.DOTALL)
    text = match[1] if match else b""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


def _curves(values: Sequence[MetricValue]) -> list[dict[str, object]]:
    """Return the curve of each host: points of time, number, value, step and epoch.

    The value of a point is None where it is not finite, a step or an epoch where the log names none.
    """
    hosts: dict[str, list[_Point]] = {}
    for value in values:
        points = hosts.setdefault(value.host, [])
        points.append(_Point(value.time, len(points) + 1, value.value, value.step, value.epoch))
    ordered = sorted(hosts.items(), key=lambda item: (len(item[0]), item[0]))
    return [{"Host": host, "Count": len(points), "Points": _thinned(points)} for host, points in ordered]


def _thinned(points: list[_Point]) -> list[_Point]:
    """Return at most `_MOST_POINTS` points and the last one: of each part of the curve the lowest and the highest."""
    kept = points
    if len(points) > _MOST_POINTS:
        size = math.ceil(len(points) / (_MOST_POINTS // 2))
        parts = [points[start : start + size] for start in range(0, len(points), size)]
        peaks = {point.number: point for part in parts for point in (min(part, key=_height), max(part, key=_height))}
        kept = [point for _, point in sorted({**peaks, points[-1].number: points[-1]}.items())]
    return [point._replace(value=None) if not math.isfinite(point.value or 0.0) else point for point in kept]


def _height(point: _Point) -> float:
    # Nothing is less or greater than NaN, which would hide the other values of its part.
    return -math.inf if point.value is None or math.isnan(point.value) else point.value
