"""A metric's values in bounded memory: what a sparkline shows of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Number of points that are kept at most; after the first halving half as many at least.
MAX_POINTS = 120
_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


class DownsampledSeries:
    """Values of one metric as they arrive, of which points of a sparkline are kept.

    The points are every n-th value, and the last one. When there are `MAX_POINTS`, every second one is dropped, and n
    doubles.
    """

    def __init__(self) -> None:
        self.last = math.nan
        self._count = 0
        self._points: list[float] = []
        self._step = 1

    def add(self, value: float) -> None:
        """Add a value."""
        if self._count % self._step == 0 and math.isfinite(value):
            self._points.append(value)
        self._count += 1
        self.last = value
        if len(self._points) == MAX_POINTS:
            del self._points[1::2]
            self._step *= 2

    def points(self) -> tuple[float, ...]:
        """Return the points."""
        is_kept = (self._count - 1) % self._step == 0 or not math.isfinite(self.last)
        return tuple(self._points if is_kept else [*self._points, self.last])


def sparkline(points: Sequence[float], width: int) -> str:
    """Draw points, the last one included, as a line of at most ``width`` bars."""
    step = max(1, math.ceil(len(points) / width))
    # Halves: the difference of two floats may overflow.
    halves = [point / 2 for point in points[::-step][::-1]]
    least = min(halves, default=0.0)
    span = max(halves, default=0.0) - least
    return "".join(_BARS[round((half - least) / span * (len(_BARS) - 1)) if span else 0] for half in halves)
