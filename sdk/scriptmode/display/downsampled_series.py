"""A metric's values in bounded memory: what a sparkline shows of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

#: Number of points that are kept at most; after the first merge half as many at least.
MAX_POINTS = 120
_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


class DownsampledSeries:
    """Values of one metric as they arrive: all are counted, points of a sparkline are kept.

    Each point is the mean of the same number of values. When there are `MAX_POINTS`, each two become one.
    """

    def __init__(self, values: Iterable[float] = ()) -> None:
        self.count = 0
        self.last = math.nan
        self._points: list[float] = []
        self._each = 1
        #: The point that is not complete: its number of values, and the sum of the values divided by ``_each``. The sum
        #: of the values themselves may overflow.
        self._summed = 0
        self._sum = 0.0
        for value in values:
            self.add(value)

    def add(self, value: float) -> None:
        """Add a value."""
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
        """Return the points; the last one may be the mean of fewer values."""
        begun = (self._sum / (self._summed / self._each),) if self._summed else ()
        return (*self._points, *begun)


def sparkline(points: Sequence[float], width: int) -> str:
    """Draw points as a line of at most ``width`` bars."""
    while len(points) > width:
        points = _merge_pairs(points)
    top = len(_BARS) - 1
    return "".join(_BARS[round(height * top)] for height in scaled_heights(points))


def scaled_heights(points: Sequence[float]) -> list[float]:
    """Scale points to heights from 0, the minimum, to 1, the maximum; all 0 if they are equal."""
    # Halves: the difference of two floats may overflow.
    halves = [point / 2 for point in points]
    least = min(halves, default=0.0)
    span = max(halves, default=0.0) - least
    return [(half - least) / span if span else 0.0 for half in halves]


def _merge_pairs(points: Sequence[float]) -> list[float]:
    """Return the mean of each two points; the last one of an odd number stays."""
    pairs = [first / 2 + second / 2 for first, second in zip(points[::2], points[1::2])]
    return pairs if len(points) % 2 == 0 else [*pairs, points[-1]]
