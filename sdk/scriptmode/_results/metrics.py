"""A job's metrics: rows, a summary, a table, a pandas DataFrame, a figure."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scriptmode._core.spec import metric_definitions
from scriptmode._core.text.messages import did_you_mean, pluralize
from scriptmode._core.text.terminal_text import align_columns
from scriptmode.errors import DataError, MissingPackageError, SpecError

_DEFINE = (
    'define what to find in the log: metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}], on the command '
    "line --metric 'loss=loss=([0-9.]+)', or --metric keras for the lines of Keras"
)
#: Keys of rows whose line of the log names them.
_POSITIONS = ("step", "epoch")
#: Lines that the display of metrics has at most.
_SUMMARIZED = 20


class Metrics(list[dict[str, Any]]):
    """The rows of a job's metrics: ``metric_name``, ``value``, ``timestamp`` and ``host``; displayed as a summary.

    A row whose line of the log names a step or an epoch has them as ``step`` and ``epoch``. `table` has a column for
    each metric; its lines are the times of the values where the platform knows them, else each metric's first value,
    its second, and so on; those of each host apart where several hosts have some. ``definitions`` are the names and
    the regular expressions that the job's metrics were looked for with.
    """

    def __init__(self, rows: Iterable[dict[str, Any]] = (), definitions: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(rows)
        self.definitions = dict(definitions)

    @property
    def names(self) -> list[str]:
        """The metrics that have values, in the order of their first."""
        return list(dict.fromkeys(row["metric_name"] for row in self))

    @property
    def hosts(self) -> list[str]:
        """The hosts that have values, in the order of their numbers; none where the platform does not say whose."""
        return sorted({row["host"] for row in self if row.get("host")}, key=lambda host: (len(host), host))

    def values(self, name: str, host: str | None = None) -> list[float]:
        """Return a metric's values in the order of time: of one host, or of all, one host after the other.

        Raises `SpecError` for a metric that was not defined and for a host without values of it, and `DataError` for a
        metric that has no values yet.
        """
        rows = self.of(name)
        if host is None:
            return [row["value"] for row in rows]
        if host not in rows.hosts:
            advice = did_you_mean(str(host), rows.hosts) or "leave host out for the values of all"
            raise SpecError(f"there are no values of metric {name!r} of a host {host!r}", advice, argument="host")
        return [row["value"] for row in rows if row.get("host") == host]

    def of(self, *names: str) -> Metrics:
        """Return the rows of these metrics alone; raises what `values` raises."""
        for name in names:
            self._check(name)
        return Metrics((row for row in self if row["metric_name"] in names), self.definitions.items())

    def columns(self) -> list[str]:
        """Return the table's heads: what its lines go by, the host where there are several, and the metrics."""
        return ["time" if self._is_timed() else "#", *(["host"] if len(self._whose()) > 1 else []), *self.names]

    def lines(self) -> list[list[Any]]:
        """Return the table's lines: a time or a number from 1 on, the host where there are several, and the values.

        A metric without a value there is ``None``.
        """
        places: dict[tuple[Any, int, int], dict[str, float]] = {}
        seen: dict[tuple[str, int, Any], int] = {}
        is_timed, names, hosts = self._is_timed(), self.names, self._whose()
        order = {host: index for index, host in enumerate(hosts)}
        for row in self:
            name, host = row["metric_name"], order[row.get("host") or ""]
            time = row["timestamp"] if is_timed else None
            # Lines that were written at once have the same time.
            number = seen[name, host, time] = seen.get((name, host, time), 0) + 1
            places.setdefault((time or 0, number, host), {})[name] = row["value"]
        return [
            [time or number, *([hosts[host]] if len(hosts) > 1 else []), *map(places[time, number, host].get, names)]
            for time, number, host in sorted(places)
        ]

    def table(self) -> str:
        """Return the table as text, in columns as wide as their widest cell."""
        if not self:
            return str(_no_values("no values of metrics", self.definitions))
        return _aligned([self.columns(), *self.lines()])

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` of the rows; raise `MissingPackageError` where there is no pandas."""
        pd = import_pandas("to_pandas()", "use table(), which needs nothing")
        named = [name for name in _POSITIONS if any(name in row for row in self)]
        return pd.DataFrame(list(self), columns=["metric_name", "value", "timestamp", "host", *named])

    def plot(self, *names: str) -> Any:
        """Draw metrics (all, if none is named) below one another, and return the ``matplotlib.figure.Figure``.

        From left to right stands the step that the values' lines of the log name, else the epoch, else the time since
        the first value, else the number of the value. Several hosts have a line each, where they are not too many, and
        the mean of all with a band from the least to the greatest.

        Raises what `values` raises, `DataError` where there are no values at all, and `MissingPackageError`
        where Matplotlib is not installed.
        """
        if not self:
            raise _no_values("there are no values of metrics to draw", self.definitions)
        from scriptmode._results import metric_plot

        return metric_plot.draw({name: list(self.of(name)) for name in names or self.names})

    def summary(self) -> list[list[Any]]:
        """Return a line for each metric, and for each host of it: its values' number, first, last, least, greatest."""
        hosts = self._whose()
        lines: list[list[Any]] = [
            ["metric", *(["host"] if len(hosts) > 1 else []), "values", "first", "last", "min", "max"]
        ]
        groups: dict[tuple[str, str], list[float]] = {}
        for row in self:
            groups.setdefault((row["metric_name"], row.get("host") or ""), []).append(row["value"])
        for name, host in itertools.product(self.names, hosts):
            if its := groups.get((name, host)):
                own = [host] if len(hosts) > 1 else []
                lines.append([name, *own, len(its), its[0], its[-1], min(its), max(its)])
        return lines

    def _whose(self) -> list[str]:
        """Return the hosts of the rows, "" first where there are rows of unknown hosts."""
        return ([""] if any(not row.get("host") for row in self) else []) + self.hosts

    def __repr__(self) -> str:
        heads, *lines = self.summary()
        if not lines:
            return f"<{self.table()}>"
        return "\n".join([_aligned([heads, *lines[:_SUMMARIZED]]), *self._notes(len(lines))])

    def _repr_html_(self) -> str:
        heads, *lines = self.summary()
        if not lines:
            return f"<div>{html.escape(self.table())}</div>"
        head = "".join(f"<th>{html.escape(head)}</th>" for head in heads)
        rows = ("".join(f"<td>{html.escape(_text(cell))}</td>" for cell in line) for line in lines[:_SUMMARIZED])
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        notes = "<br>".join(map(html.escape, self._notes(len(lines))))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><div>{notes}</div>"

    def _notes(self, lines: int) -> list[str]:
        more = [f"and {lines - _SUMMARIZED} more lines: summary()"] if lines > _SUMMARIZED else []
        return [*more, f"{pluralize(len(self), 'row')}; all of them: list(...), .table(), .to_pandas(), .plot()"]

    def _is_timed(self) -> bool:
        return bool(self) and all(row["timestamp"] is not None for row in self)

    def _check(self, name: str) -> None:
        if name not in self.names:
            what = f"there are no values of a metric {name!r}"
            if name in self.definitions:
                raise _no_values(what, {name: self.definitions[name]})
            raise SpecError(what, argument="names", advice=did_you_mean(str(name), self.names) or _DEFINE)


def import_pandas(call: str, advice: str) -> Any:
    """Import pandas for a call; raise `MissingPackageError` where there is none, or a damaged one."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        from scriptmode._core.machine.installation import missing_package

        raise missing_package(call, "pandas", otherwise=advice) from error
    except ImportError as error:
        raise MissingPackageError(f"{call} needs pandas, which cannot be imported: {error}", advice=advice) from error
    return pd


def _no_values(what: str, definitions: Mapping[str, str]) -> DataError:
    """Return the error for metrics without values: which regular expressions found nothing, and what to do."""
    if not definitions:
        return DataError(what, advice=_DEFINE)
    preset = metric_definitions.PRESETS["keras"]
    own = [f"{regex!r} of metric {name!r}" for name, regex in definitions.items() if (name, regex) not in preset]
    listed = " and ".join([*own, *(["of each metric of 'keras'"] if len(own) < len(definitions) else [])])
    what = f"{what}: the Regex {listed} found no number in the log so far"
    return DataError(what, advice="print such a line, or correct the Regex")


def _aligned(lines: Iterable[Sequence[Any]]) -> str:
    """Return lines as text, in columns aligned right."""
    cells = [[_text(cell) for cell in line] for line in lines]
    return "\n".join(align_columns(cells, right=range(len(cells[0]))))


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, (int, float)):
        return f"{cell:g}"
    return f"{cell.astimezone():%Y-%m-%d %H:%M:%S}" if hasattr(cell, "strftime") else str(cell)


def to_metrics(metrics: Sequence[Any], definitions: Iterable[tuple[str, str]] = ()) -> Metrics:
    """Return a platform's metrics as rows, with the names and regular expressions of their definitions."""
    return Metrics(map(_row, metrics), definitions)


def _row(metric: Any) -> dict[str, object]:
    row = {"metric_name": metric.name, "value": metric.value, "timestamp": metric.timestamp, "host": metric.host}
    return {**row, **{name: at for name in _POSITIONS if (at := getattr(metric, name)) is not None}}
