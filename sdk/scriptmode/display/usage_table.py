"""A table of the resources that the hosts of several jobs use, and its display in a terminal, refreshed in place."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import TextIO

from rich.text import Text

from scriptmode.core.spec.job_description import JobDescription
from scriptmode.core.spec.service_values import HostActivity
from scriptmode.core.text import messages
from scriptmode.core.text.terminal_text import align_columns, render_line
from scriptmode.display.live_region import LiveRegion

_HEAD = ("JOB", "STATUS", "HOST", "CPU", "MEMORY", "GPU", "GPU MEMORY", "LAST OUTPUT")
#: Columns of texts; the others have numbers.
_TEXTS = frozenset(("JOB", "STATUS", "HOST"))
#: Columns that are left out where no host has a value.
_OPTIONAL = frozenset(("GPU", "GPU MEMORY"))
_NONE = "-"
#: Seconds between two drawings.
_SECONDS = 1.0


def usage_lines(jobs: Sequence[tuple[JobDescription, Mapping[str, HostActivity]]]) -> list[str]:
    """Return the table: a head, and a line for each host, or for a job of whose hosts nothing is known."""
    rows = [row for description, activity in jobs for row in _rows(description, activity)]
    columns = [
        (name, *cells)
        for name, *cells in zip(_HEAD, *rows)
        if name not in _OPTIONAL or any(cell != _NONE for cell in cells)
    ]
    numbers = [index for index, (name, *_) in enumerate(columns) if name not in _TEXTS]
    return align_columns(list(zip(*columns)), right=numbers)


def _rows(description: JobDescription, activity: Mapping[str, HostActivity]) -> list[tuple[str, ...]]:
    job = (description.name, description.secondary or str(description.status))
    found = {host: activity[host] for host in description.hosts if host in activity} or {_NONE: HostActivity()}
    return [tuple(map(render_line, (*job, host, *_cells(each)))) for host, each in found.items()]


def _cells(activity: HostActivity) -> tuple[str, ...]:
    def percent(value: float | None) -> str:
        return _NONE if value is None else f"{value:.0f}%"

    def amount(value: int | None) -> str:
        return _NONE if value is None else messages.format_bytes(value)

    silent = activity.silent_seconds
    return (
        percent(activity.cpu_percent),
        amount(activity.memory_bytes),
        percent(activity.gpu_percent),
        amount(activity.gpu_memory_bytes),
        _NONE if silent is None else f"{messages.format_duration(silent)} ago",
    )


def watch_lines(read: Callable[[], Sequence[str]], stream: TextIO) -> None:
    """Show the lines that ``read`` returns in a terminal, refreshed in place until it returns none, or until Ctrl-C.

    The first one is a head. The last ones stay. Only the main thread can call it, because it handles SIGINT.
    """
    region = LiveRegion(stream)
    last: Sequence[str] = ()
    # Not an exception, which might come in the middle of a drawing.
    interrupted = Event()
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        with region.session():
            try:
                while not interrupted.is_set() and (lines := read()):
                    last = lines
                    columns, rows = region.measure()
                    region.draw(_fitted(lines, columns - 1, rows - 1))
                    interrupted.wait(_SECONDS)
            finally:
                region.close("", [Text(line) for line in last])
    finally:
        signal.signal(signal.SIGINT, before)


def _fitted(lines: Sequence[str], columns: int, rows: int) -> list[Text]:
    """Return the lines that fit into a terminal, with the number of the others."""
    count = len(lines) if len(lines) <= rows else max(1, rows - 1)
    left = len(lines) - count
    shown = [*lines[:count], *([f"and {left} more"] if left else [])]
    texts = [Text(line, "bold" if index == 0 else "") for index, line in enumerate(shown)]
    for text in texts:
        text.truncate(columns, overflow="ellipsis")
    return texts
