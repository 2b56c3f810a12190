"""The web page of jobs at ``/``: one HTML file, and the operations that it calls beside those of AWS.

The page itself holds no data, and is sent to every browser. What it shows it asks for in requests of its own, which it
signs in the browser where the server has access keys.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Optional

from scriptmode.errors import JobNotFoundError
from scriptmode_runtime._terminal_line import render_line
from scriptmode_serve._http.wsgi import Environ, StartResponse
from scriptmode_serve._operations.aws_json import Operation, not_found_error, validation_error
from scriptmode_serve._operations.log_pages import MOST_LINES
from scriptmode_serve._operations.metric_operations import MetricValue, ReadValues

#: As the page gets it: time in seconds since the epoch, number from 1, value, step and epoch.
Point = tuple[float, int, Optional[float], Optional[int], Optional[int]]
#: The prefix of X-Amz-Target in calls of the operations below.
TARGET = "Scriptmode"
#: The most points of a curve; it is not drawn wider.
_MOST_POINTS = 600
#: The most pages of a log that are read for the page's first lines: progress bars are long in the log, and short here.
_MOST_LOG_PAGES = 16


def page_operations(values: ReadValues, get_log_events: Operation) -> dict[str, Operation]:
    """Return operations that AWS does not have; ``values`` returns those of a job's metrics by their names."""
    return {
        "GetTrainingJobMetrics": partial(_get_metrics, values),
        "GetLogEvents": partial(_get_log_events, get_log_events),
    }


def _get_log_events(get: Operation, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what CloudWatch Logs returns, with the text of each line that a terminal would show, and its colours.

    Without a token these are the last lines, up to the ``limit``.
    """
    answer = before = get(arguments)
    events, limit = answer["events"], arguments.get("limit", MOST_LINES)
    for _ in range(0 if arguments.get("startFromHead") else _MOST_LOG_PAGES):
        token = before["nextBackwardToken"]
        before = get({**arguments, "nextToken": token})
        if before["nextBackwardToken"] == token or len(events) >= limit:
            break
        events = [*before["events"], *events]
    shown = [{**event, "message": render_line(event["message"], colours=True)} for event in events[-limit:]]
    return {**answer, "events": shown}


def _get_metrics(values: ReadValues, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    name = arguments.get("TrainingJobName")
    if not isinstance(name, str):
        raise validation_error("TrainingJobName is required.")
    try:
        metrics = values(name)
    except (JobNotFoundError, FileNotFoundError) as error:
        raise not_found_error() from error
    return {"Metrics": [{"MetricName": name, "Curves": _curves(found)} for name, found in metrics.items()]}


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


@lru_cache(maxsize=1)
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
    """Return the curve of each host.

    The value of a point is None where it is not finite, a step or an epoch where the log names none.
    """
    hosts: dict[str, list[Point]] = {}
    for time, value, host, step, epoch in values:
        points = hosts.setdefault(host, [])
        points.append((time, len(points) + 1, value if math.isfinite(value) else None, step, epoch))
    ordered = sorted(hosts.items(), key=lambda item: (len(item[0]), item[0]))
    return [{"Host": host, "Count": len(points), "Points": _thinned(points)} for host, points in ordered]


def _thinned(points: list[Point]) -> list[Point]:
    """Return at most `_MOST_POINTS` points and the last one: of each part of the curve the lowest and the highest."""
    if len(points) <= _MOST_POINTS:
        return points
    size = math.ceil(len(points) / (_MOST_POINTS // 2))
    parts = (points[start : start + size] for start in range(0, len(points), size))
    heights = {point: -math.inf if point[2] is None else point[2] for point in points}
    kept = {points[-1], *(end(part, key=heights.__getitem__) for part in parts for end in (min, max))}
    return sorted(kept, key=lambda point: point[1])
