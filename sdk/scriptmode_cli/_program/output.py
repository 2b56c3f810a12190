"""The output of the command: JSON, log lines, and columns of text."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import click

from scriptmode import LogEvent
from scriptmode._core.text.colours import RUNNING, STATUS_COLOURS, colours_enabled
from scriptmode._core.text.terminal_text import pad_columns, wrap_words
from scriptmode_runtime._terminal_line import sanitize

_PAGE = 118


def to_json_value(value: Any) -> Any:
    """Return a value that JSON can represent: times as ISO 8601, NaN and infinity as ``"NaN"`` and ``"Infinity"``."""
    if isinstance(value, dict):
        return {str(key): to_json_value(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json_value(member) for member in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime):
        return value.isoformat()
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def echo(text: str, *, err: bool = False) -> None:
    """Print a text. A terminal gets colors but no other control sequences; a pipe or a file gets the text unchanged."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = sanitize(text)
        # The output itself is aligned for a terminal where that is possible, or is long.
        text = wrap_words(text, shutil.get_terminal_size().columns) if err else text
    # click searches a text for colours to remove, which takes longer than all else for thousands of lines.
    click.echo(text, err=err, color=colours_enabled(stream) or "\x1b" not in text or None)


def coloured(text: str, colour: str, *, err: bool = False) -> str:
    """Return a text in a colour, and unchanged where the output has none."""
    return click.style(text, fg=colour) if colours_enabled(sys.stderr if err else sys.stdout) else text


def status_text(status: str, text: str = "") -> str:
    """Return a job's status, or ``text`` instead, in the colour of the status."""
    return coloured(text or status, STATUS_COLOURS.get(status, RUNNING))


def print_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(to_json_value(value), indent=2))


def print_result(value: Any, text: str, *, as_json: bool) -> None:
    """Print one JSON document; without ``as_json`` a text, unless it is empty."""
    if as_json:
        print_json(value)
    elif text:
        echo(text)


def print_json_line(value: Any) -> None:
    """Print one JSON object on one line, and flush."""
    click.echo(json.dumps(to_json_value(value)))


def print_log_as_json(events: Iterable[LogEvent]) -> None:
    """Print each line of a log as one JSON object, as soon as it is read."""
    for event in events:
        # A line longer than 1 MiB arrives in several events.
        more: dict[str, object] = {"continues": True} if event.continues else {}
        more |= {"time": event.time} if event.time else {}
        print_json_line({"host": event.host, "message": event.message, **more})


def terminal_width() -> int:
    """Return the columns of the terminal; without one those of a page, 118."""
    return shutil.get_terminal_size((_PAGE, 0)).columns if sys.stdout.isatty() else _PAGE


def print_columns(rows: Sequence[Sequence[str]], *, status_column: int) -> None:
    """Print rows in columns as wide as their widest cell; below the head one column has statuses."""
    columns = pad_columns(rows)
    head, *statuses = columns[status_column]
    # Few statuses, of thousands of jobs.
    columns[status_column] = [head, *map(cache(lambda cell: status_text(cell.rstrip(), cell)), statuses)]
    # One write: there may be thousands of rows.
    echo("\n".join("  ".join(row).rstrip() for row in zip(*columns)))
