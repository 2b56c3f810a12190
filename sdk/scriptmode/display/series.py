"""A metric's values in bounded room, however many there are: what a sparkline shows of them. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: As many points are kept at most, and half as many at least.
POINTS = 120
_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
#: Where the terminal has no blocks.
_PLAIN_BARS = "_.-=+*#@"


class Series:
    """Values of one metric as they come: all of them counted, a picture of them kept.

    Each point stands for equally many values and is their mean.
    """

    def __init__(self, values: Iterable[float] = ()) -> None:
        self.count = 0
        self.last = math.nan
        self._points: list[float] = []
        self._each = 1
        self._sum = 0.0
        self._summed = 0
        for value in values:
            self.add(value)

    def add(self, value: float) -> None:
        """Take one more value."""
        self.count += 1
        self.last = value
        if not math.isfinite(value):
            return
        self._sum += value
        self._summed += 1
        if self._summed == self._each:
            self._points.append(self._sum / self._each)
            self._sum, self._summed = 0.0, 0
        if len(self._points) == POINTS:
            self._points = _halved(self._points)
            self._each *= 2

    def points(self) -> tuple[float, ...]:
        """Give the points so far, the last one of as many values as it has yet."""
        begun = (self._sum / self._summed,) if self._summed else ()
        return (*self._points, *begun)


def sparkline(points: Sequence[float], width: int, *, plain: bool = False) -> str:
    """Draw points as a line of at most ``width`` bars, the least the lowest; ``plain`` without block characters."""
    bars = _PLAIN_BARS if plain else _BARS
    while len(points) > width:
        points = _halved(points)
    if not points:
        return ""
    least, span = min(points), max(points) - min(points)
    if not span or not math.isfinite(span):
        return bars[0] * len(points)
    top = len(bars) - 1
    return "".join(bars[round((point - least) / span * top)] for point in points)


def _halved(points: Sequence[float]) -> list[float]:
    """Give the means of each two points; of an odd number the last one stays."""
    pairs = [(first + second) / 2 for first, second in zip(points[::2], points[1::2])]
    return pairs if len(points) % 2 == 0 else [*pairs, points[-1]]
