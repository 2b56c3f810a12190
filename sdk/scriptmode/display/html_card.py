"""A job as HTML without scripts and style sheets, readable on light and dark pages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import TypeVar

from scriptmode.core.spec.job_failure import Failure, traceback_below_error
from scriptmode.core.text import messages
from scriptmode.display import formatting
from scriptmode.display.downsampled_series import scaled_heights
from scriptmode.display.snapshot import ChannelStatus, HostStatus, JobSnapshot, MetricSummary

_Row = tuple[str, ...]
_T = TypeVar("_T")

#: Readable on white and on black: the middle of the scale.
_COLOURS = {
    "Completed": "#1f8a4c",
    "Failed": "#d64530",
    "Unreadable": "#d64530",
    "Stopped": "#9c6d0e",
    "Stopping": "#9c6d0e",
}
_RUNNING_COLOUR = "#2f78c4"
#: Shades of the job's own colour, for the statuses one after another.
_SHADES = (0.35, 0.6, 1.0)
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
#: Size of a line chart, in units of its own view box.
_WIDTH, _HEIGHT = 160, 22
#: Share of a bar that the smallest part has, so that it can be seen.
_LEAST = 0.01


def render_card(
    snapshot: JobSnapshot,
    *,
    lines: Sequence[tuple[str, str]] = (),
    notes: Iterable[str] = (),
    log_locations: Mapping[str, str],
) -> str:
    """Render a job: name, status, history, channels, metrics, hosts, its model or failure, and the next commands.

    ``lines`` are the last lines of its log as host and text; ``log_locations`` are the locations of the log by host.
    """
    colour = status_colour(snapshot.status)
    # What a notebook would run next, with a variable ``job``.
    expressions = [*(["job.plot()"] if snapshot.metrics else []), *(["job.model"] if snapshot.model else [])]
    parts = [
        _head(snapshot, colour),
        _failure(snapshot.failure, colour) if snapshot.failure else "",
        _history(snapshot, colour),
        _listed(snapshot.channels, _channel, "channels"),
        _listed(snapshot.metrics, _metric, "metrics"),
        _listed(snapshot.hosts, _host, "hosts"),
        _fact("model", snapshot.model),
        _fact("checkpoints", snapshot.checkpoints) if snapshot.ended else "",
        *(_dim(note) for note in notes),
        _log(snapshot, lines),
        _log_locations(snapshot, log_locations),
        _commands([*expressions, *snapshot.commands()]),
    ]
    return f'<div style="{_FRAME}">{"".join(parts)}</div>'


def status_colour(status: str) -> str:
    """Return the colour of a status, which is readable on light and dark pages."""
    return _COLOURS.get(status, _RUNNING_COLOUR)


def render_unknown(name: str, reason: str) -> str:
    """Render a job that could not be described, with the reason."""
    head = f"<b>{escape(name)}</b>"
    return f'<div style="{_FRAME}"><div>{head}</div>{_dim(f"It cannot be described: {reason}")}</div>'


def _head(snapshot: JobSnapshot, colour: str) -> str:
    badge = (
        f"display:inline-block;color:{colour};border:1px solid {colour};border-radius:9px;padding:0 8px;"
        "margin-right:8px;font-weight:600"
    )
    status = snapshot.secondary if snapshot.secondary and not snapshot.ended else snapshot.status or "Starting"
    if snapshot.ended and snapshot.secondary not in ("", snapshot.status):
        status = f"{snapshot.status}: {snapshot.secondary}"
    facts = " \u00b7 ".join(
        escape(fact) for fact in (messages.format_duration(snapshot.elapsed), snapshot.instances) if fact
    )
    message = _dim(snapshot.message) if snapshot.message and not snapshot.ended else ""
    name = f'<b style="margin-right:8px">{escape(snapshot.name)}</b>'
    return (
        f'<div><span style="{badge}">{escape(status)}</span>{name}'
        f'<span style="opacity:.75">{facts}</span></div>{message}'
    )


def _history(snapshot: JobSnapshot, colour: str) -> str:
    """Render the statuses one after another; of a job that has ended also as a bar, which is full by its nature."""
    intervals = [(each.status, each.seconds, messages.format_duration(each.seconds)) for each in snapshot.history]
    if not intervals:
        return ""
    parts = _stacked_bar(intervals, colour, _SHADES) if snapshot.ended else ""
    text = " \u203a ".join(
        escape(status) + (f" {duration}" if seconds else "") for status, seconds, duration in intervals
    )
    return f'{parts}<div style="opacity:.75;font-size:12px">{text}</div>'


def _channel(data: ChannelStatus) -> _Row:
    progress = data.progress
    share = progress.done / progress.total if progress.total else None
    shown = (
        ""
        if share is None or share >= 1
        else _stacked_bar([("", share, ""), ("", 1 - share, "")], _RUNNING_COLOUR, (1.0, 0.2))
    )
    return f"<b>{escape(progress.channel)}</b>", escape(formatting.format_channel(data)), shown


def _metric(metric: MetricSummary) -> _Row:
    whose = f" of {metric.host}" if metric.host else ""
    text = f"{metric.name}: {messages.pluralize(metric.count, 'value')}{whose}"
    return (
        f"<b>{escape(metric.name)}</b>{escape(whose)}",
        formatting.format_number(metric.last),
        line_chart(metric.points, text),
    )


def _host(host: HostStatus) -> _Row:
    line = f'<span style="{_MONO};opacity:.75">{escape(host.line or "")}</span>'
    facts = (host.role, formatting.format_usage(host.activity), host.activity.silence)
    return f"<b>{escape(host.name)}</b>", " \u00b7 ".join(map(escape, filter(None, facts))), line


def _listed(items: Sequence[_T], row: Callable[[_T], _Row], name: str) -> str:
    """Render items as rows of three cells; the first two cells are as wide as their content, within a maximum."""
    shown = items[: formatting.visible_count(len(items), _MOST_ROWS)]
    cells = "".join(f"<div>{cell}</div>" for each in shown for cell in row(each))
    return (f'<div style="{_GRID}">{cells}</div>' if cells else "") + _more(len(items) - len(shown), name)


def _more(left: int, name: str) -> str:
    return _dim(f"and {left} more {name}") if left else ""


def _failure(failure: Failure, colour: str) -> str:
    lines = "\n".join(filter(None, (failure.hint, traceback_below_error(failure))))
    rest = f'<pre style="{_PRE}">{escape(lines)}</pre>' if lines else ""
    style = f"border-left:3px solid {colour};padding-left:10px;margin:8px 0"
    return f'<div style="{style}"><b>{escape(failure.cause)}</b>{rest}</div>'


def _log(snapshot: JobSnapshot, lines: Sequence[tuple[str, str]]) -> str:
    if not lines:
        return ""
    body = "\n".join(f"{escape(host)} | {escape(text)}" for host, text in lines)
    left = snapshot.lines - len(lines)
    more = (
        f"the last {len(lines)} of {snapshot.lines:,} lines; all: scriptmode logs {snapshot.name}" if left > 0 else ""
    )
    box = f'<div style="{_SCROLLED}"><pre style="{_PRE};flex-shrink:0">{body}</pre></div>'
    shown = box + (_dim(more) if more else "")
    if snapshot.failure is None or not snapshot.failure.traceback:
        return shown
    # The traceback is above already.
    summary = '<summary style="opacity:.75;margin-top:4px;cursor:pointer">the end of the log</summary>'
    return f"<details>{summary}{shown}</details>"


def _log_locations(snapshot: JobSnapshot, log_locations: Mapping[str, str]) -> str:
    failed = snapshot.failure.host if snapshot.failure else ""
    if failed in log_locations:
        log_locations = {failed: log_locations[failed]}
    shown = list(log_locations.items())[: formatting.visible_count(len(log_locations), _MOST_LOCATIONS)]
    facts = "".join(_fact(f"whole log of {host}", location) for host, location in shown)
    return facts + _more(len(log_locations) - len(shown), "logs")


def _commands(commands: Iterable[str]) -> str:
    shown = "".join(
        f'<code style="{_MONO};background:rgba(128,128,128,.15);color:inherit;border-radius:3px;padding:1px 6px;'
        f'margin:2px 10px 2px 0;display:inline-block;max-width:100%;box-sizing:border-box">{escape(command)}</code> '
        for command in commands
    )
    return f'<div style="margin-top:8px">{shown}</div>' if shown else ""


def _fact(name: str, value: str) -> str:
    if not value:
        return ""
    return f'<div style="margin-top:4px"><span style="opacity:.75">{escape(name)}:</span> {escape(value)}</div>'


def _dim(text: str) -> str:
    return f'<div style="opacity:.75;font-size:12px">{escape(text)}</div>'


def _stacked_bar(parts: Sequence[tuple[str, float, str]], colour: str, shades: Sequence[float]) -> str:
    """Draw parts side by side, each a name, a size and the size as text, in shades of one colour in turn."""
    whole = sum(size for _, size, _ in parts)
    if not whole:
        return ""
    drawn = "".join(
        f'<span title="{escape(f"{name} {said}".strip())}" style="flex:{max(_LEAST, size / whole):.4f} 0 0;'
        f'background:{colour};opacity:{shades[index % len(shades)]}"></span>'
        for index, (name, size, said) in enumerate(parts)
    )
    style = "display:flex;gap:1px;height:6px;border-radius:3px;overflow:hidden;margin:6px 0 2px"
    return f'<div style="{style}">{drawn}</div>'


def line_chart(points: Sequence[float], title: str) -> str:
    """Draw values as a line from left to right, in the colour of the text."""
    if not points:
        return ""
    last = max(1, len(points) - 1)
    coordinates = " ".join(
        f"{1 + index / last * (_WIDTH - 2):.1f},{_HEIGHT - 2 - height * (_HEIGHT - 4):.1f}"
        for index, height in enumerate(scaled_heights(points if len(points) > 1 else [*points, *points]))
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'style="vertical-align:middle;max-width:100%"><title>{escape(title)}</title>'
        f'<polyline points="{coordinates}" fill="none" stroke="currentColor" stroke-width="1.5" opacity=".85"/></svg>'
    )
