"""A job's metrics: rows, a table, a pandas DataFrame, a figure."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from scriptmode.errors import DataError, MissingPackageError, SpecError
from scriptmode.messages import did_you_mean
from scriptmode.spec import metric_definitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_DEFINE = 'define what to find in the log: metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}]'
#: Inches: of all axes' width, and of the height of each.
_WIDTH, _HEIGHT = 7.0, 2.4
#: At most this many values are marked one by one, and at most this many hosts' lines are named.
_MARKED, _NAMED = 100, 10


class Metrics(list[dict[str, Any]]):
    """The rows of a job's metrics: ``metric_name``, ``value``, ``timestamp`` and ``host``; shown as a table.

    The table has a column for each metric. Its lines are the times of the values where the platform knows them, else
    each metric's first value, its second, and so on; those of each host apart where several hosts have some.
    ``definitions`` are the names and the regular expressions that the job's metrics were looked for with.
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
            raise SpecError(
                f"there are no values of metric {name!r} of a host {host!r}", argument="host", advice=advice
            )
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
        places: dict[tuple[Any, int], dict[str, float]] = {}
        seen: dict[tuple[str, int], int] = {}
        is_timed, names, hosts = self._is_timed(), self.names, self._whose()
        order = {host: index for index, host in enumerate(hosts)}
        for row in self:
            name, host = row["metric_name"], order[row.get("host") or ""]
            seen[name, host] = seen.get((name, host), 0) + 1
            key = row["timestamp"] if is_timed else seen[name, host]
            places.setdefault((key, host), {})[name] = row["value"]
        return [
            [key, *([hosts[host]] if len(hosts) > 1 else []), *(places[key, host].get(name) for name in names)]
            for key, host in sorted(places)
        ]

    def table(self) -> str:
        """Return the table as text, in columns as wide as their widest cell."""
        if not self:
            return str(_no_values("no values of metrics", self.definitions))
        cells = [self.columns(), *([_text(cell) for cell in line] for line in self.lines())]
        widths = [max(map(len, column)) for column in zip(*cells)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in cells)

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` of the rows; raise `MissingPackageError` where there is no pandas."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingPackageError(
                "to_pandas() needs pandas, which is not installed: pip install pandas",
                advice="rows and lines() need nothing",
            ) from error
        return pd.DataFrame(list(self), columns=["metric_name", "value", "timestamp", "host"])

    def plot(self, *names: str) -> Any:
        """Draw metrics (all, if none is named) below one another, and return the ``matplotlib.figure.Figure``.

        Each host that has values has a line of its own, named where they are not too many for that.

        Raises what `values` raises, `DataError` where there are no values at all, and `MissingPackageError`
        where Matplotlib is not installed.
        """
        if not self:
            raise _no_values("there are no values of metrics to draw", self.definitions)
        for name in names:
            self._check(name)
        chosen = names or tuple(self.names)
        figure = _figure(len(chosen))
        for axes, name in zip(figure.subplots(len(chosen), squeeze=False)[:, 0], chosen):
            self._draw(axes, name)
            axes.set_ylabel(name)
            axes.grid(visible=True, alpha=0.3)
        axes.set_xlabel("time" if self._is_timed() else "number of the value")
        return figure

    def _draw(self, axes: Any, name: str) -> None:
        own: dict[str, list[dict[str, Any]]] = {host: [] for host in self._whose()}
        for row in self.of(name):
            own[row.get("host") or ""].append(row)
        own = {host: rows for host, rows in own.items() if rows}
        is_timed = self._is_timed()
        for host, its in own.items():
            across = [row["timestamp"] for row in its] if is_timed else range(1, len(its) + 1)
            mark = "." if len(its) <= _MARKED else None
            axes.plot(across, [row["value"] for row in its], marker=mark, label=host or "?")
        if 1 < len(own) <= _NAMED:
            axes.legend()

    def _whose(self) -> list[str]:
        """Return the hosts of the rows, "" first where there are rows of unknown hosts."""
        return ([""] if any(not row.get("host") for row in self) else []) + self.hosts

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{html.escape(head)}</th>" for head in self.columns())
        lines = ("".join(f"<td>{html.escape(_text(cell))}</td>" for cell in line) for line in self.lines())
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"

    def _is_timed(self) -> bool:
        return bool(self) and all(row["timestamp"] is not None for row in self)

    def _check(self, name: str) -> None:
        if name not in self.names:
            what = f"there are no values of a metric {name!r}"
            if name in self.definitions:
                raise _no_values(what, {name: self.definitions[name]})
            raise SpecError(what, argument="metric_definitions", advice=did_you_mean(str(name), self.names) or _DEFINE)


def _no_values(what: str, definitions: Mapping[str, str]) -> DataError:
    """Return the error for metrics without values: which regular expressions found nothing, and what to do."""
    if not definitions:
        return DataError(what, argument="metric_definitions", advice=_DEFINE)
    listed = " and ".join(f"{regex!r} of metric {name!r}" for name, regex in definitions.items())
    slow = any(metric_definitions.may_be_slow(regex) for regex in definitions.values())
    off = ", or was switched off because it took too long, as a warning says" if slow else ""
    what = f"{what}: the Regex {listed} found no number in the log so far{off}"
    return DataError(what, argument="metric_definitions", advice="print such a line, or correct the Regex")


def _figure(count: int) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError(
            "plot() needs Matplotlib, which is not installed: pip install matplotlib", advice="metrics() needs nothing"
        ) from error

    class Shown(Figure):
        """Shows itself in a notebook, whatever pyplot was told to draw on."""

        def _repr_png_(self) -> bytes:
            import io

            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return Shown(figsize=(_WIDTH, _HEIGHT * count), layout="constrained")


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, (int, float)):
        return f"{cell:g}"
    return f"{cell:%Y-%m-%d %H:%M:%S}" if hasattr(cell, "strftime") else str(cell)


def to_metrics(metrics: Sequence[Any], definitions: Iterable[tuple[str, str]] = ()) -> Metrics:
    """Return a platform's metrics as rows, with the names and regular expressions of their definitions."""
    rows = (
        {"metric_name": each.name, "value": each.value, "timestamp": each.timestamp, "host": each.host}
        for each in metrics
    )
    return Metrics(rows, definitions)
