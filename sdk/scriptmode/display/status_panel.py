"""The panel below the log in a terminal: a job's state in few rows, none wider than the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from scriptmode.core.text import messages, terminal_text
from scriptmode.core.text.colours import RUNNING, STATUS_COLOURS
from scriptmode.display import formatting
from scriptmode.display.downsampled_series import sparkline
from scriptmode.display.snapshot import HostStatus, JobSnapshot

STATUS_STYLES = {status: f"bold {colour}" for status, colour in STATUS_COLOURS.items()}
_RUNNING_STYLE = f"bold {RUNNING}"
#: The most columns of a sparkline, the fewest where a host's name follows it, and the share of a row (1/_PART) that a
#: metric's name has.
_SPARK, _LEAST_SPARK, _PART = 40, 8, 3
#: The fewest columns of a host's line beside its resources.
_LEAST_LINE = 24
_MESSAGE = "message"
_ARROW, _DOT, _RULE = "\u203a", "\u00b7", "\u2500"


class StatusPanel:
    """Renderer of a job's state as rows of ``rich.text.Text``."""

    def __init__(self, width: int) -> None:
        self._width = max(1, width)

    def rows(self, snapshot: JobSnapshot, max_rows: int) -> list[Text]:
        """Return at most ``max_rows`` rows, allocated to the sections in order."""
        sections = {
            "statuses": self._history(snapshot),
            _MESSAGE: self._message(snapshot),
            "channels": self._channels(snapshot),
            "metrics": self._metrics(snapshot),
            "hosts": self._hosts(snapshot),
        }
        allocated = _allocate_rows(max(1, max_rows) - 1, [len(section) for section in sections.values()])
        parts = (self._part(section, rows, name) for (name, section), rows in zip(sections.items(), allocated))
        return [_printable(row) for row in (self._head(snapshot), *(row for part in parts for row in part))]

    def summary(self, snapshot: JobSnapshot) -> list[Text]:
        """Return the rows that stay when the job has ended: its history, channels and metrics."""
        # Nothing is redrawn below: a row that is too wide may continue in the next one.
        rows = (*self._history(snapshot, whole=True), *self._channels(snapshot), *self._metrics(snapshot))
        return [_printable(row) for row in rows]

    def _part(self, section: Sequence[Text], rows: int, name: str) -> list[Text]:
        if name == _MESSAGE:
            # The rows of one text: its beginning says more than a count of them.
            return list(section[:rows])
        shown = list(section[: formatting.visible_count(len(section), rows)])
        left = len(section) - len(shown)
        return [*shown, self._row((f"  and {left} more {name}" if shown else f"  {left} {name}", "dim"))][:rows]

    def _head(self, snapshot: JobSnapshot) -> Text:
        status = snapshot.secondary or snapshot.status or "Starting"
        # Without a style of its own, which the status would have too.
        head = Text.assemble(
            (f"{_RULE * 2} ", "dim"),
            (status, STATUS_STYLES.get(snapshot.status, _RUNNING_STYLE)),
            f" {messages.format_duration(snapshot.elapsed)} ",
        )
        head.append(f"{_RULE * 2} {snapshot.name} ", "dim")
        head.append(_RULE * max(0, self._width - head.cell_len), "dim")
        return self._fitted(head)

    def _history(self, snapshot: JobSnapshot, *, whole: bool = False) -> list[Text]:
        row = Text("  ")
        for index, interval in enumerate(snapshot.history):
            is_last = index == len(snapshot.history) - 1
            if index:
                row.append(f" {_ARROW} ", "dim")
            row.append(interval.status, STATUS_STYLES.get(snapshot.status, _RUNNING_STYLE) if is_last else "")
            row.append("" if snapshot.ended and is_last else f" {messages.format_duration(interval.seconds)}")
        return [row if whole else self._fitted(row, keep_end=True)] if snapshot.history else []

    def _message(self, snapshot: JobSnapshot) -> list[Text]:
        """Return the platform's message on a status in which the hosts log nothing, such as waiting for capacity."""
        is_known = snapshot.ended or snapshot.secondary in ("", "Training") or not snapshot.message
        # A scheduler's message has its position in the queue, its expected start and its reason.
        lines = [] if is_known else terminal_text.wrap_words(snapshot.message, self._width - 1).splitlines()
        return [self._row((f"  {line}", "dim")) for line in lines]

    def _channels(self, snapshot: JobSnapshot) -> list[Text]:
        return [
            self._row((f"  {each.progress.channel} ", "bold"), (formatting.format_channel(each), ""))
            for each in snapshot.channels
        ]

    def _metrics(self, snapshot: JobSnapshot) -> list[Text]:
        found = snapshot.metrics
        names = [formatting.truncate(each.name, max(1, self._width // _PART)) for each in found]
        lasts = [formatting.format_number(each.last) for each in found]
        # In columns.
        wide, deep = max(map(len, names), default=0), max(map(len, lasts), default=0)
        columns = self._width - wide - deep - 4
        # Hosts' names are omitted if the sparkline would be too narrow.
        for_hosts = max((len(each.host) + 1 for each in found if each.host), default=0)
        hosts = [f" {each.host}" if each.host and columns - for_hosts >= _LEAST_SPARK else "" for each in found]
        columns = min(_SPARK, columns - for_hosts if any(hosts) else columns)
        return [
            self._row(
                (f"  {name:<{wide}} ", "bold"),
                (f"{last:>{deep}} ", ""),
                (sparkline(each.points, columns) if columns > 0 else "", "cyan"),
                (host, "dim"),
            )
            for name, last, each, host in zip(names, lasts, found, hosts)
        ]

    def _hosts(self, snapshot: JobSnapshot) -> list[Text]:
        hosts = snapshot.hosts
        names = _column([host.name for host in hosts])
        roles = _column([host.role for host in hosts])
        usages = _usage_columns(hosts)
        if self._width - sum(len(column[0]) + 1 for column in (names, roles, usages) if column) < _LEAST_LINE:
            usages = [""] * len(hosts)
        return [self._host(*parts) for parts in zip(hosts, names, roles, usages)]

    def _host(self, host: HostStatus, name: str, role: str, usage: str) -> Text:
        silence = host.activity.silence
        return self._row(
            (f"  {name}", "bold"),
            (f" {role}" if role else "", "magenta"),
            (f" {usage}" if usage else "", ""),
            (f" {_DOT} ", "dim"),
            (f"{silence} {_DOT} " if silence else "", "yellow"),
            (host.line or "", "dim"),
        )

    def _row(self, *parts: tuple[str, str]) -> Text:
        return self._fitted(Text.assemble(*parts))

    def _fitted(self, row: Text, *, keep_end: bool = False) -> Text:
        """Truncate a row to the width: at its end, or with ``keep_end`` at its beginning."""
        mark = "\u2026"
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


def _usage_columns(hosts: Sequence[HostStatus]) -> list[str]:
    """Return the resources of each host, in columns."""
    cells = [formatting.usage_cells(host.activity) for host in hosts]
    return [
        " ".join(filter(None, row)).rstrip() for row in zip(*(_column(column, right=True) for column in zip(*cells)))
    ]


def _column(cells: Sequence[str], *, right: bool = False) -> list[str]:
    """Return cells in the width of the widest of them."""
    width = max(map(len, cells), default=0)
    return [cell.rjust(width) if right else cell.ljust(width) for cell in cells]


def _printable(row: Text) -> Text:
    """Return a row without control sequences: it contains names and messages of the platform."""
    return row if row.plain.isprintable() else Text(terminal_text.render_line(row.plain))


def _allocate_rows(rows: int, wanted: Sequence[int]) -> list[int]:
    """Allocate rows to sections by the rows that each wants: one to each in order, then one more to each in turn."""
    allocated = [0] * len(wanted)
    while rows > 0:
        unsatisfied = [index for index, count in enumerate(wanted) if allocated[index] < count]
        if not unsatisfied:
            break
        for index in unsatisfied[:rows]:
            allocated[index] += 1
        rows -= len(unsatisfied[:rows])
    return allocated
