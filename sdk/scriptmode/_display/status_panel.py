"""The panel below the log in a terminal: a job's state in few rows, none wider than the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from scriptmode._core.text import messages
from scriptmode._core.text.colours import RUNNING, STATUS_COLOURS
from scriptmode._core.text.terminal_text import wrap_words
from scriptmode._display import formatting
from scriptmode._display.snapshot import JobSnapshot
from scriptmode_runtime._terminal_line import render_line

#: The most columns of a sparkline, and the share of a row (1/_PART) that a metric's name has.
_SPARK, _PART = 40, 3
_ARROW, _RULE = " \u203a ", "\u2500"


def panel_rows(snapshot: JobSnapshot, width: int, max_rows: int) -> list[Text]:
    """Return at most ``max_rows`` rows, at least one; the sections that do not fit have as many rows each."""
    top = [_head(snapshot, width), *_history(snapshot), *_message(snapshot, width)]
    sections = {"channels": _channels(snapshot), "metrics": _metrics(snapshot, width), "hosts": _hosts(snapshot)}
    room = max_rows - len(top)
    fits = (rows for rows in range(room, 1, -1) if sum(min(len(part), rows) for part in sections.values()) <= room)
    section_rows = next(fits, 1)
    for name, section in sections.items():
        shown, rest = formatting.cut(section, section_rows, name)
        top += [*shown, *([Text(f"  {rest}", "dim")] if rest else [])]
    rows = [_printable(row) for row in top[: max(1, max_rows)]]
    for row in rows:
        row.truncate(max(1, width), overflow="ellipsis")
    return rows


def summary_rows(snapshot: JobSnapshot, width: int) -> list[Text]:
    """Return the rows that stay when the job has ended: its history, channels and metrics."""
    # Nothing is redrawn below: a row that is too wide may continue in the next one.
    return [_printable(row) for row in (*_history(snapshot), *_channels(snapshot), *_metrics(snapshot, width))]


def _status_style(snapshot: JobSnapshot) -> str:
    return f"bold {STATUS_COLOURS.get(snapshot.status, RUNNING)}"


def _head(snapshot: JobSnapshot, width: int) -> Text:
    status = snapshot.secondary or snapshot.status or "Starting"
    head = Text.assemble((f"{_RULE * 2} ", "dim"), (status, _status_style(snapshot)))
    head.append(f" {messages.format_duration(snapshot.elapsed)} ").append(f"{_RULE * 2} {snapshot.name} ", "dim")
    return head.append(_RULE * max(0, width - head.cell_len), "dim")


def _history(snapshot: JobSnapshot) -> list[Text]:
    before, arrow, last = _ARROW.join(snapshot.history).rpartition(_ARROW)
    return [Text.assemble(f"  {before}{arrow}", (last, _status_style(snapshot)))] if last else []


def _message(snapshot: JobSnapshot, width: int) -> list[Text]:
    """Return the platform's message on a status in which the hosts log nothing, such as waiting for capacity."""
    if snapshot.ended or snapshot.secondary in ("", "Training") or not snapshot.message:
        return []
    # A scheduler's message has its position in the queue, its expected start and its reason.
    return [Text(f"  {line}", "dim") for line in wrap_words(snapshot.message, max(8, width - 1)).splitlines()]


def _channels(snapshot: JobSnapshot) -> list[Text]:
    return [Text.assemble((f"  {channel.name} ", "bold"), channel.text) for channel in snapshot.channels]


def _metrics(snapshot: JobSnapshot, width: int) -> list[Text]:
    names = _column([formatting.truncate(metric.name, max(1, width // _PART)) for metric in snapshot.metrics])
    lasts = _column([formatting.format_number(metric.last) for metric in snapshot.metrics])
    rows = []
    for name, last, metric in zip(names, lasts, snapshot.metrics):
        row = Text.assemble((f"  {name} ", "bold"), f"{last} ")
        columns = width - row.cell_len - len(metric.host) - 1
        if columns > 0:
            curve = formatting.sparkline(metric.points, min(_SPARK, columns))
            row.append(curve, "cyan").append(f" {metric.host}".rstrip(), "dim")
        rows.append(row)
    return rows


def _hosts(snapshot: JobSnapshot) -> list[Text]:
    return [
        Text.assemble((f"  {name}", "bold"), f" {host.text}".rstrip(), (f" \u00b7 {host.line}", "dim"))
        for name, host in zip(_column([host.name for host in snapshot.hosts]), snapshot.hosts)
    ]


def _column(cells: Sequence[str]) -> list[str]:
    """Return cells in the width of the widest of them."""
    width = max(map(len, cells), default=0)
    return [cell.ljust(width) for cell in cells]


def _printable(row: Text) -> Text:
    """Return a row without control sequences: it contains names and messages of the platform."""
    return row if row.plain.isprintable() else Text(render_line(row.plain))
