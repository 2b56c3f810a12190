"""One measured figure beside its bound, and how they are printed."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Figure:
    """``value`` in ``unit``; ``bound`` is what is promised, ``at_most`` or at least."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    at_most: bool = True

    def line(self) -> str:
        text = f"  {self.name:<66} {self.value:>10,.3g} {self.unit:<6}"
        if self.bound is None:
            return text.rstrip()
        kept = self.value <= self.bound if self.at_most else self.value >= self.bound
        sign = "<=" if self.at_most else ">="
        return f"{text} {sign} {self.bound:g}  {'ok' if kept else 'MISSED'}"


def in_turn(runs: int, *measures: Callable[[], float]) -> list[float]:
    """Take each measure once to warm up, then ``runs`` times in turn; give the median of each."""
    for measure in measures:
        measure()
    taken: list[list[float]] = [[] for _ in measures]
    for _ in range(runs):
        for values, measure in zip(taken, measures):
            values.append(measure())
    return [statistics.median(values) for values in taken]
