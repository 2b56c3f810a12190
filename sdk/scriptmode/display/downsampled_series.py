"""A metric's values in bounded room, however many there are: what a sparkline shows of them. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: As many points are kept at most, and half as many at least.
MAX_POINTS = 120
_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
#: Where the terminal has no blocks.
_ASCII_BARS = "_.-=+*#@"


class DownsampledSeries:
    """Values of one metric as they come: all of them counted, a picture of them kept.

    Each point stands for equally many values and is their mean.
    """

    def __init__(self, values: Iterable[float] = ()) -> None:
        self.count = 0
        self.last = math.nan
        self._points: list[float] = []
        self._each = 1
        #: Of a point that is begun: how many values, and the sum of the part that each has in it. The sum of the values
        #: themselves may be more than a number can be.
        self._summed = 0
        self._sum = 0.0
        for value in values:
            self.add(value)

    def add(self, value: float) -> None:
        """Take one more value."""
        self.count += 1
        self.last = value
        if not math.isfinite(value):
            return
        self._sum += value / self._each
        self._summed += 1
        if self._summed == self._each:
            self._points.append(self._sum)
            self._sum, self._summed = 0.0, 0
        if len(self._points) == MAX_POINTS:
            self._points = _merge_pairs(self._points)
            self._each *= 2

    def points(self) -> tuple[float, ...]:
        """Give the points so far, the last one of as many values as it has yet."""
        begun = (self._sum / (self._summed / self._each),) if self._summed else ()
        return (*self._points, *begun)


def sparkline(points: Sequence[float], width: int, *, plain: bool = False) -> str:
    """Draw points as a line of at most ``width`` bars, the least the lowest; ``plain`` without block characters."""
    bars = _ASCII_BARS if plain else _BARS
    while len(points) > width:
        points = _merge_pairs(points)
    top = len(bars) - 1
    return "".join(bars[round(height * top)] for height in scaled_heights(points))


def scaled_heights(points: Sequence[float]) -> list[float]:
    """Give how high each point is, from the least, 0, to the most, 1; 0 for all of them where they are equal."""
    # Halves: what lies between two numbers may be more than a number can be.
    halves = [point / 2 for point in points]
    least = min(halves, default=0.0)
    span = max(halves, default=0.0) - least
    return [(half - least) / span if span else 0.0 for half in halves]


def _merge_pairs(points: Sequence[float]) -> list[float]:
    """Give the means of each two points; of an odd number the last one stays."""
    pairs = [first / 2 + second / 2 for first, second in zip(points[::2], points[1::2])]
    return pairs if len(points) % 2 == 0 else [*pairs, points[-1]]
