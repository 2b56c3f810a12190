"""One measured figure with its bound, and the ways of measuring."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from typing import Callable, TypeVar

#: Set if every benchmark runs once at its smallest size, to test that it works; its figures are not valid then.
SMALLEST_VARIABLE = "SCRIPTMODE_BENCHMARKS_SMALLEST"

Size = TypeVar("Size")


def amount(usual: Size, *, smallest: Size) -> Size:
    """Return the size of a part of a benchmark: ``usual``, or ``smallest`` in a run of the smallest size."""
    return smallest if SMALLEST_VARIABLE in os.environ else usual


@dataclass(frozen=True)
class Figure:
    """``value`` in ``unit``; ``bound`` is what is promised, ``at_most`` or at least."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    at_most: bool = True

    @property
    def is_kept(self) -> bool:
        """Whether it keeps its bound; always in a run of the smallest size."""
        if self.bound is None or SMALLEST_VARIABLE in os.environ:
            return True
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def line(self) -> str:
        text = f"  {self.name:<66} {self.value:>10,.3g} {self.unit:<6}"
        if self.bound is None or SMALLEST_VARIABLE in os.environ:
            return text.rstrip()
        return f"{text} {self._promise}  {'ok' if self.is_kept else 'MISSED'}"

    def row(self) -> str:
        """Return the row of a table of Markdown."""
        measured = f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:.3g}"
        return f"| {self.name} | {measured} {self.unit}".rstrip() + f" | {self._promise} |\n"

    @property
    def _promise(self) -> str:
        return "" if self.bound is None else f"{'<=' if self.at_most else '>='} {self.bound:,g}"


#: What each benchmark has as ``run``: it is called with an empty directory.
Benchmark = Callable[[str], "list[Figure]"]


def in_turn(
    runs: int, *measures: Callable[[], float], of: Callable[[list[float]], float] = statistics.median
) -> list[float]:
    """Return the median of each measure, taken ``runs`` times in turn after one run that warms up.

    Each second turn goes backwards, so that each measure follows every other. With ``of=min`` it is the least: other
    programs only add to a time, and by more than a small difference.
    """
    if SMALLEST_VARIABLE in os.environ:
        return [measure() for measure in measures]
    for measure in measures:
        measure()
    taken: list[list[float]] = [[] for _ in measures]
    for number in range(runs):
        for values, measure in [*zip(taken, measures)][:: -1 if number % 2 else 1]:
            values.append(measure())
    return [of(values) for values in taken]


def rates(layout: str, runs: int, ours: Callable[[], float], by_hand: Callable[[], float]) -> list[Figure]:
    """Return the figures of steps/s measured in pairs, in alternating order, because the speed of a machine drifts."""
    pairs = []
    for number in range(runs):
        first, second = (by_hand, ours) if number % 2 else (ours, by_hand)
        taken = first(), second()
        pairs.append(taken[::-1] if number % 2 else taken)
    ratio = statistics.median(one / other for one, other in pairs)
    return [
        Figure(f"{layout}: steps/s inside fit", statistics.median(one for one, _ in pairs), "1/s"),
        Figure(f"{layout}: steps/s started by hand", statistics.median(other for _, other in pairs), "1/s"),
        Figure(f"{layout}: inside fit / by hand", ratio, "x", 0.98, at_most=False),
    ]
