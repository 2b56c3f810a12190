"""A job's metrics as a Matplotlib figure that is readable on light and dark pages."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_Row = Mapping[str, Any]

#: Inches: of the figure's width, and of the height of each metric's axes.
_WIDTH, _HEIGHT = 7.0, 2.4
#: Characters of a line of a metric's name above its axes.
_NAME_CHARACTERS = 72
#: At most this many values are marked one by one, and at most this many hosts have a line of their own beside the mean.
_MARKED, _NAMED = 100, 10
#: The page's own background, and colours from the middle of the scale, readable on white and on black.
_BACKGROUND, TEXT = "none", "#7b7b7b"
COLOURS = ("#2f78c4", "#d64530", "#1f8a4c", "#9c6d0e", "#8e5bc4", "#12868f", "#c2478a", "#6f7d1c", "#7b7b7b", "#b0592b")
_KEYS = ("step", "epoch", "timestamp")
_UNITS = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


class _Axis(NamedTuple):
    """What stands from left to right: its label, and the position of a row, by its number among its host's rows."""

    label: str
    key: str = ""
    begin: Any = None
    unit: float = 1.0

    def positions(self, rows: Sequence[_Row]) -> list[float]:
        if self.begin is not None:
            return [(row["timestamp"] - self.begin).total_seconds() / self.unit for row in rows]
        return [row[self.key] for row in rows] if self.key else list(range(1, len(rows) + 1))


def draw(metrics: Mapping[str, Sequence[_Row]]) -> Any:
    """Draw each metric's rows, at least one, in axes of its own, and return the ``matplotlib.figure.Figure``.

    Raises `MissingPackageError` where Matplotlib is not installed.
    """
    figure = create_figure(len(metrics))
    axis_of = {name: _choose_axis(list(_by_host(rows).values())) for name, rows in metrics.items()}
    rows_of_axes = figure.subplots(len(metrics), squeeze=False)[:, 0]
    for axes, (name, rows) in zip(rows_of_axes, metrics.items()):
        axes.set_facecolor(_BACKGROUND)
        axes.tick_params(colors=TEXT)
        axes.grid(visible=True, alpha=0.3, color=TEXT)
        for spine in axes.spines.values():
            spine.set_color(TEXT)
        _draw(axes, _by_host(rows), axis_of[name])
        axes.set_title("\n".join(textwrap.wrap(name, _NAME_CHARACTERS)), loc="left", fontsize="medium", color=TEXT)
    labels = [axis_of[name].label for name in metrics]
    for axes, label, below in zip(rows_of_axes, labels, [*labels[1:], ""]):
        if label != below:
            axes.set_xlabel(label, color=TEXT)
    return figure


def _by_host(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    """Return the rows of each host, "" for an unknown one, in the order of the hosts' numbers."""
    hosts: dict[str, list[_Row]] = {}
    for row in rows:
        hosts.setdefault(row.get("host") or "", []).append(row)
    return dict(sorted(hosts.items(), key=lambda item: (len(item[0]), item[0])))


def _choose_axis(hosts: Sequence[Sequence[_Row]]) -> _Axis:
    """Choose the first of step, epoch and time that every row has and that grows on each host.

    A step that counts from 0 in each epoch, or several values at one time, would draw one value over the other.
    """
    best = next((key for key in _KEYS if all(_grows([row.get(key) for row in rows]) for rows in hosts)), "")
    if best != "timestamp":
        return _Axis(best or "number of the value", best)
    times = [row["timestamp"] for rows in hosts for row in rows]
    seconds = (max(times) - min(times)).total_seconds()
    unit = next((candidate for candidate in _UNITS if seconds > 3 * candidate[1]), _UNITS[-1])
    return _Axis(f"time since the first value ({unit[0]})", begin=min(times), unit=unit[1])


def _grows(numbers: Sequence[Any]) -> bool:
    known = [number for number in numbers if number is not None]
    return len(known) == len(numbers) and all(before < after for before, after in zip(known, known[1:]))


def _draw(axes: Any, hosts: Mapping[str, Sequence[_Row]], axis: _Axis) -> None:
    lines = {host: dict(zip(axis.positions(rows), (row["value"] for row in rows))) for host, rows in hosts.items()}
    colours = dict(zip(lines, COLOURS[1:] if len(lines) > 1 else COLOURS))
    for host, line in lines.items() if len(lines) <= _NAMED else ():
        alone = len(lines) == 1
        own = {"linewidth": 1.6, "marker": _marker(line)} if alone else {"linewidth": 0.9, "alpha": 0.8}
        axes.plot(*zip(*sorted(line.items())), label=host or "?", color=colours.get(host), **own)
    if axis.begin is None:
        axes.xaxis.get_major_locator().set_params(integer=True)
    if len(lines) > 1:
        _draw_mean(axes, list(lines.values()))
        legend = axes.legend(
            loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, borderaxespad=0.2, fontsize="small"
        )
        for text in legend.get_texts():
            text.set_color(TEXT)


def _draw_mean(axes: Any, lines: Sequence[Mapping[float, float]]) -> None:
    """Draw the hosts' mean where all of them have a value, with a band from the least value to the greatest."""
    shared = sorted(set(lines[0]).intersection(*lines[1:]))
    if not shared:
        return
    values = [[line[position] for line in lines] for position in shared]
    mean = {position: sum(value / len(own) for value in own) for position, own in zip(shared, values)}
    axes.fill_between(shared, [min(own) for own in values], [max(own) for own in values], color=COLOURS[0], alpha=0.25)
    label = f"mean of {len(lines)} hosts"
    axes.plot(*zip(*sorted(mean.items())), marker=_marker(mean), label=label, color=COLOURS[0], linewidth=2)


def _marker(line: Mapping[float, float]) -> str | None:
    return "." if len(line) <= _MARKED else None


def create_figure(count: int) -> Any:
    """Return an empty figure with space for ``count`` axes below one another, which a notebook displays.

    Raises `MissingPackageError` where Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        from scriptmode._core.machine.installation import missing_package

        raise missing_package("plot()", "Matplotlib", otherwise="use metrics(), which needs nothing") from error

    class MetricFigure(Figure):
        """Displays itself in a notebook, whatever pyplot was told to draw on."""

        def _repr_png_(self) -> bytes:
            import io

            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return MetricFigure(figsize=(_WIDTH, _HEIGHT * count), layout="constrained", facecolor=_BACKGROUND)
