"""A job as HTML that needs no script and no style sheet, and reads on light and dark pages alike. Pure."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, TypeVar

from scriptmode.display import formatting
from scriptmode.display.html_charts import line_chart, stacked_bar
from scriptmode.display.row_allocation import visible_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from scriptmode.display.snapshot import ChannelStatus, HostStatus, JobSnapshot, MetricSummary, StatusInterval
    from scriptmode.results.outcome import FailureReason

    _Row = tuple[str, ...]
    _T = TypeVar("_T")

#: Readable on white and on black: the middle of the scale.
_COLOURS = {"Completed": "#1f8a4c", "Failed": "#d64530", "Stopped": "#9c6d0e", "Stopping": "#9c6d0e"}
_RUNNING_COLOUR = "#2f78c4"
#: Shades of the job's own colour, for the statuses one after another.
_SHADES = (0.35, 0.6, 1.0)
#: Rows of a kind, and places of logs: the last one of them says how many more there are.
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
#: Higher ones are scrolled, from their end.
_SCROLLED = "max-height:24em;overflow-y:auto;display:flex;flex-direction:column-reverse"
_GRID = (
    "display:grid;grid-template-columns:fit-content(36%) fit-content(44%) minmax(0,1fr);gap:4px 14px;"
    "align-items:center;margin:6px 0 0"
)


def render_card(
    view: JobSnapshot, *, lines: Sequence[tuple[str, str]] = (), notes: Iterable[str] = (), places: Mapping[str, str]
) -> str:
    """Draw a job: name, status, history, hosts, data, metrics, its model or why it failed, and the next commands.

    ``lines`` are the last ones of its log, each host and text; ``places`` say where the whole log is, by host.
    """
    colour = _COLOURS.get(view.status, _RUNNING_COLOUR)
    parts = [
        _head(view, colour),
        _failure(view.failure, colour) if view.failure else "",
        _history(view.stays, colour),
        _listed(view.seen.data, _channel, "channels"),
        _listed(view.seen.metrics, _metric, "metrics"),
        _listed(view.seen.hosts, _host, "hosts"),
        _fact("model", view.model),
        _fact("checkpoints", view.checkpoints) if view.ended else "",
        *(_dim(note) for note in notes),
        _log(view, lines),
        _log_locations(view, places),
        _commands(view.commands()),
    ]
    return f'<div style="{_FRAME}">{"".join(parts)}</div>'


def render_unknown(name: str, reason: str) -> str:
    """Draw a job that nothing is known of but why."""
    head = f"<b>{escape(name)}</b>"
    return f'<div style="{_FRAME}"><div>{head}</div>{_dim(f"It cannot be described: {reason}")}</div>'


def _head(view: JobSnapshot, colour: str) -> str:
    badge = (
        f"display:inline-block;color:{colour};border:1px solid {colour};border-radius:9px;padding:0 8px;"
        "margin-right:8px;font-weight:600"
    )
    status = view.secondary if view.secondary and not view.ended else view.status or "Starting"
    if view.ended and view.secondary not in ("", view.status):
        status = f"{view.status}: {view.secondary}"
    facts = " \u00b7 ".join(escape(fact) for fact in (formatting.format_duration(view.elapsed), view.instances) if fact)
    message = _dim(view.message) if view.message and not view.ended else ""
    name = f'<b style="margin-right:8px">{escape(view.name)}</b>'
    return (
        f'<div><span style="{badge}">{escape(status)}</span>{name}'
        f'<span style="opacity:.75">{facts}</span></div>{message}'
    )


def _history(stays: Sequence[StatusInterval], colour: str) -> str:
    if not stays:
        return ""
    parts = stacked_bar(
        [(stay.status, stay.seconds, formatting.format_duration(stay.seconds)) for stay in stays], colour, _SHADES
    )
    said = " \u203a ".join(
        escape(stay.status) + (f" {formatting.format_duration(stay.seconds)}" if stay.seconds else "") for stay in stays
    )
    return f'{parts}<div style="opacity:.75;font-size:12px">{said}</div>'


def _channel(data: ChannelStatus) -> _Row:
    progress = data.progress
    share = progress.done / progress.total if progress.total else None
    shown = (
        ""
        if share is None or share >= 1
        else stacked_bar([("", share, ""), ("", 1 - share, "")], _RUNNING_COLOUR, (1.0, 0.2))
    )
    return f"<b>{escape(progress.channel)}</b>", escape(formatting.format_channel(data)), shown


def _metric(metric: MetricSummary) -> _Row:
    whose = f" of {metric.host}" if metric.host else ""
    said = f"{metric.name}: {formatting.pluralize(metric.count, 'value')}{whose}"
    return (
        f"<b>{escape(metric.name)}</b>{escape(whose)}",
        formatting.format_number(metric.last),
        line_chart(metric.points, said),
    )


def _host(host: HostStatus) -> _Row:
    line = f'<span style="{_MONO};opacity:.75">{escape(host.line or "")}</span>'
    return f"<b>{escape(host.name)}</b>", escape(host.role), line


def _listed(things: Sequence[_T], row: Callable[[_T], _Row], name: str) -> str:
    """Lay rows of three cells out, the first two as wide as they need to be unless that is too much."""
    shown = things[: visible_count(len(things), _MOST_ROWS)]
    cells = "".join(f"<div>{cell}</div>" for each in shown for cell in row(each))
    return (f'<div style="{_GRID}">{cells}</div>' if cells else "") + _more(len(things) - len(shown), name)


def _more(left: int, name: str) -> str:
    return _dim(f"and {left} more {name}") if left else ""


def _failure(failure: FailureReason, colour: str) -> str:
    rest = f'<pre style="{_PRE}">{escape(failure.rest)}</pre>' if failure.rest else ""
    style = f"border-left:3px solid {colour};padding-left:10px;margin:8px 0"
    return f'<div style="{style}"><b>{escape(failure.cause)}</b>{rest}</div>'


def _log(view: JobSnapshot, lines: Sequence[tuple[str, str]]) -> str:
    if not lines:
        return ""
    body = "\n".join(f"{escape(host)} | {escape(text)}" for host, text in lines)
    left = view.seen.lines - len(lines)
    more = f"the last {len(lines)} of {view.seen.lines:,} lines; all: scriptmode logs {view.name}" if left > 0 else ""
    return f'<div style="{_SCROLLED}"><pre style="{_PRE}">{body}</pre></div>' + (_dim(more) if more else "")


def _log_locations(view: JobSnapshot, places: Mapping[str, str]) -> str:
    wanted = view.failure.host if view.failure else ""
    if wanted in places:
        places = {wanted: places[wanted]}
    shown = list(places.items())[: visible_count(len(places), _MOST_LOCATIONS)]
    facts = "".join(_fact(f"whole log of {host}", place) for host, place in shown)
    return facts + _more(len(places) - len(shown), "logs")


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
