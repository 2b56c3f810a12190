"""A job as HTML without scripts and style sheets, readable on light and dark pages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from scriptmode._core.spec.failure_text import traceback_below_error
from scriptmode._core.spec.job_failure import Failure
from scriptmode._core.text import messages
from scriptmode._display import formatting
from scriptmode._display.snapshot import JobSnapshot, MetricSummary

#: Readable on white and on black: the middle of the scale.
_COLOURS = {"Completed": "#1f8a4c", "Failed": "#d64530", "Stopped": "#9c6d0e", "Stopping": "#9c6d0e"}
_RUNNING_COLOUR = "#2f78c4"
#: Rows of a section, and locations of logs; the last row says how many more there are.
_MOST_ROWS, _MOST_LOCATIONS = 8, 3
_FRAME = (
    "font:13px/1.5 system-ui,sans-serif;color:inherit;background:transparent;border:1px solid rgba(128,128,128,.4);"
    "border-radius:6px;padding:10px 14px;margin:4px 0;max-width:60em;box-sizing:border-box;overflow-wrap:anywhere"
)
_MONO = "font:12px/1.45 ui-monospace,monospace"
_PRE = (
    f"{_MONO};white-space:pre-wrap;overflow-wrap:anywhere;margin:6px 0 0;padding:6px 8px;color:inherit;"
    "background:rgba(128,128,128,.12);border-radius:4px"
)
#: A log that is higher is scrolled, from its end. Its text does not shrink: JupyterLab gives a ``pre`` a scroll bar of
#: its own (``overflow:auto``), which begins at the first line.
_SCROLLED = "max-height:24em;overflow-y:auto;display:flex;flex-direction:column-reverse"
_GRID = (
    "display:grid;grid-template-columns:fit-content(36%) fit-content(44%) minmax(0,1fr);gap:4px 14px;"
    "align-items:center;margin:6px 0 0"
)
#: The most bars of a sparkline.
_SPARK = 40


def render_card(snapshot: JobSnapshot, lines: Sequence[tuple[str, str]] = ()) -> str:
    """Render a job: name, status, history, channels, metrics, hosts, its model or failure, and the next commands.

    ``lines`` are the last lines of its log as host and text.
    """
    colour = _COLOURS.get(snapshot.status, _RUNNING_COLOUR)
    # What a notebook would run next, with a variable ``job``.
    expressions = [*(["job.plot()"] if snapshot.metrics else []), *(["job.model"] if "://" in snapshot.model else [])]
    parts = [
        _head(snapshot, colour),
        _failure(snapshot.failure, colour) if snapshot.failure else "",
        _dim(" \u203a ".join(snapshot.history)),
        _listed(snapshot.channels, "channels"),
        _listed([_metric(metric) for metric in snapshot.metrics], "metrics"),
        _listed(snapshot.hosts, "hosts"),
        _fact("model", snapshot.model),
        _fact("checkpoints", snapshot.checkpoints) if snapshot.ended else "",
        *map(_dim, snapshot.notes),
        _log(snapshot, lines),
        _log_locations(snapshot),
        _commands([*expressions, *snapshot.commands()]),
    ]
    return f'<div style="{_FRAME}">{"".join(parts)}</div>'


def render_unknown(name: str, reason: str) -> str:
    """Render a job that could not be described, with the reason."""
    return f'<div style="{_FRAME}"><b>{escape(name)}</b>{_dim(f"It cannot be described: {reason}")}</div>'


def _head(snapshot: JobSnapshot, colour: str) -> str:
    badge = (
        f"display:inline-block;color:{colour};border:1px solid {colour};border-radius:9px;padding:0 8px;"
        "margin-right:8px;font-weight:600"
    )
    status = snapshot.secondary or snapshot.status or "Starting"
    if snapshot.ended and status != snapshot.status:
        status = f"{snapshot.status}: {status}"
    facts = " \u00b7 ".join(filter(None, (messages.format_duration(snapshot.elapsed), snapshot.instances)))
    message = "" if snapshot.ended else _dim(snapshot.message)
    name = f'<b style="margin-right:8px">{escape(snapshot.name)}</b>'
    return (
        f'<div><span style="{badge}">{escape(status)}</span>{name}'
        f'<span style="opacity:.75">{escape(facts)}</span></div>{message}'
    )


def _metric(metric: MetricSummary) -> tuple[str, str, str]:
    name = f"{metric.name} of {metric.host}" if metric.host else metric.name
    return name, formatting.format_number(metric.last), formatting.sparkline(metric.points, _SPARK)


def _listed(rows: Sequence[tuple[str, str, str]], name: str) -> str:
    """Render rows of three texts; the first two cells are as wide as their content, within a maximum."""
    shown, rest = formatting.cut(rows, _MOST_ROWS, name)
    cells = "".join(
        f'<div><b>{escape(key)}</b></div><div>{escape(text)}</div><div style="{_MONO};opacity:.75">{escape(line)}</div>'
        for key, text, line in shown
    )
    return (f'<div style="{_GRID}">{cells}</div>' if cells else "") + _dim(rest)


def _failure(failure: Failure, colour: str) -> str:
    lines = "\n".join(filter(None, (failure.hint, traceback_below_error(failure))))
    rest = f'<pre style="{_PRE}">{escape(lines)}</pre>' if lines else ""
    style = f"border-left:3px solid {colour};padding-left:10px;margin:8px 0"
    return f'<div style="{style}"><b>{escape(failure.cause)}</b>{rest}</div>'


def _log(snapshot: JobSnapshot, lines: Sequence[tuple[str, str]]) -> str:
    if not lines:
        return ""
    body = "\n".join(f"{escape(host)} | {escape(text)}" for host, text in lines)
    is_cut = snapshot.lines > len(lines)
    more = f"the last {len(lines)} of {snapshot.lines:,} lines; all: scriptmode logs {snapshot.name}" if is_cut else ""
    shown = f'<div style="{_SCROLLED}"><pre style="{_PRE};flex-shrink:0">{body}</pre></div>{_dim(more)}'
    if snapshot.failure is None or not snapshot.failure.traceback:
        return shown
    # The traceback is above already.
    summary = '<summary style="opacity:.75;margin-top:4px;cursor:pointer">the end of the log</summary>'
    return f"<details>{summary}{shown}</details>"


def _log_locations(snapshot: JobSnapshot) -> str:
    failed, places = snapshot.failure.log_host if snapshot.failure else "", snapshot.log_locations
    named = [(failed, places[failed])] if failed in places else list(places.items())
    shown, rest = formatting.cut(named, _MOST_LOCATIONS, "logs")
    return "".join(_fact(f"log of {host}", location) for host, location in shown) + _dim(rest)


def _commands(commands: Iterable[str]) -> str:
    shown = "".join(
        f'<code style="{_MONO};background:rgba(128,128,128,.15);color:inherit;border-radius:3px;padding:1px 6px;'
        f'margin:2px 10px 2px 0;display:inline-block;max-width:100%;box-sizing:border-box">{escape(command)}</code> '
        for command in commands
    )
    return f'<div style="margin-top:8px">{shown}</div>'


def _fact(name: str, value: str) -> str:
    if not value:
        return ""
    return f'<div style="margin-top:4px"><span style="opacity:.75">{escape(name)}:</span> {escape(value)}</div>'


def _dim(text: str) -> str:
    return f'<div style="opacity:.75;font-size:12px">{escape(text)}</div>' if text else ""
