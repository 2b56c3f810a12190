"""The panel below the log in a terminal: a job's state in few rows, each no wider than the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from scriptmode.display import formatting
from scriptmode.display.downsampled_series import sparkline
from scriptmode.display.row_allocation import allocate_rows, visible_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scriptmode.display.snapshot import ChannelStatus, HostStatus, JobSnapshot, MetricSummary

STATUS_STYLES = {
    "Completed": "bold green",
    "Failed": "bold red",
    "Stopped": "bold yellow",
    "Stopping": "bold yellow",
}
_RUNNING_STYLE = "bold cyan"
#: Of a row: a sparkline's columns at most, and at least where a host's name stands beside it; a name's part of all.
_SPARK, _LEAST_SPARK, _PART = 40, 8, 3


class StatusPanel:
    """Draws a job's state into rows of ``rich.text.Text``; ``plain`` with ASCII characters alone."""

    def __init__(self, width: int, *, plain: bool = False) -> None:
        self._width = max(1, width)
        self._plain = plain
        self._arrow, self._dot, self._rule = (">", "-", "-") if plain else ("\u203a", "\u00b7", "\u2500")

    def rows(self, view: JobSnapshot, room: int) -> list[Text]:
        """Give at most ``room`` rows, the most telling ones where there are more."""
        sections = {
            "statuses": self._history(view),
            "messages": self._message(view),
            "channels": self._data(view),
            "metrics": self._metrics(view),
            "hosts": self._hosts(view),
        }
        given = allocate_rows(max(1, room) - 1, [len(section) for section in sections.values()])
        parts = (self._part(section, rows, name) for (name, section), rows in zip(sections.items(), given))
        return [self._head(view), *(row for part in parts for row in part)]

    def summary(self, view: JobSnapshot) -> list[Text]:
        """Give what stays once the job was followed to its end: its history, data and metrics."""
        # Nothing is drawn anew below: what is too wide may go on in the next row.
        return [*self._history(view, whole=True), *self._data(view), *self._metrics(view)]

    def _part(self, section: Sequence[Text], rows: int, name: str) -> list[Text]:
        shown = list(section[: visible_count(len(section), rows)])
        left = len(section) - len(shown)
        return [*shown, self._row((f"  and {left} more {name}" if shown else f"  {left} {name}", "dim"))][:rows]

    def _head(self, view: JobSnapshot) -> Text:
        status = view.secondary or view.status or "Starting"
        head = Text(f"{self._rule * 2} ", "dim")
        head.append(status, STATUS_STYLES.get(view.status, _RUNNING_STYLE))
        head.append(f" {formatting.format_duration(view.elapsed)} ")
        head.append(f"{self._rule * 2} {view.name} ", "dim")
        head.append(self._rule * max(0, self._width - head.cell_len), "dim")
        return self._fitted(head)

    def _history(self, view: JobSnapshot, *, whole: bool = False) -> list[Text]:
        row = Text("  ")
        for index, stay in enumerate(view.stays):
            is_last = index == len(view.stays) - 1
            if index:
                row.append(f" {self._arrow} ", "dim")
            row.append(stay.status, STATUS_STYLES.get(view.status, _RUNNING_STYLE) if is_last else "")
            row.append("" if view.ended and is_last else f" {formatting.format_duration(stay.seconds)}")
        return [row if whole else self._fitted(row, keep_end=True)] if view.stays else []

    def _message(self, view: JobSnapshot) -> list[Text]:
        """Give what the platform says of a status in which the hosts say nothing: that it waits for capacity."""
        is_known = view.ended or view.secondary in ("", "Training") or not view.message
        return [] if is_known else [self._row((f"  {view.message}", "dim"))]

    def _data(self, view: JobSnapshot) -> list[Text]:
        return [self._channel(each) for each in view.seen.data]

    def _channel(self, data: ChannelStatus) -> Text:
        return self._row((f"  {data.progress.channel} ", "bold"), (formatting.format_channel(data), ""))

    def _metrics(self, view: JobSnapshot) -> list[Text]:
        found = view.seen.metrics
        names = [formatting.truncate(each.name, max(1, self._width // _PART)) for each in found]
        lasts = [formatting.format_number(each.last) for each in found]
        # In columns.
        wide, deep = max(map(len, names), default=0), max(map(len, lasts), default=0)
        room = self._width - wide - deep - 4
        # Whose they are gives way to a curve that can be read.
        for_hosts = max((len(each.host) + 1 for each in found if each.host), default=0)
        hosts = [f" {each.host}" if each.host and room - for_hosts >= _LEAST_SPARK else "" for each in found]
        room = min(_SPARK, room - for_hosts if any(hosts) else room)
        return [
            self._row(
                (f"  {name:<{wide}} ", "bold"),
                (f"{last:>{deep}} ", ""),
                (self._spark(each, room), "cyan"),
                (host, "dim"),
            )
            for name, last, each, host in zip(names, lasts, found, hosts)
        ]

    def _spark(self, metric: MetricSummary, room: int) -> str:
        return sparkline(metric.points, room, plain=self._plain) if room > 0 else ""

    def _hosts(self, view: JobSnapshot) -> list[Text]:
        return [self._host(each) for each in view.seen.hosts]

    def _host(self, host: HostStatus) -> Text:
        role = f" {host.role}" if host.role else ""
        return self._row((f"  {host.name}", "bold"), (role, "magenta"), (f" {self._dot} {host.line or ''}", "dim"))

    def _row(self, *parts: tuple[str, str]) -> Text:
        if self._plain:
            parts = tuple((text.encode("ascii", "replace").decode(), style) for text, style in parts)
        return self._fitted(Text.assemble(*parts))

    def _fitted(self, row: Text, *, keep_end: bool = False) -> Text:
        """Cut a row to the width: at its end, or at its beginning where the end is what tells most."""
        mark = "~" if self._plain else "\u2026"
        over = row.cell_len - self._width
        if over <= 0:
            return row
        if keep_end:
            end = row[over + 1 :]
            end.truncate(self._width - 1)
            return Text.assemble((mark, "dim"), end)
        row.truncate(self._width - 1)
        row.append(mark, "dim")
        return row
