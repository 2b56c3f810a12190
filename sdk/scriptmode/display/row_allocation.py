"""Allocation of a panel's rows to its sections. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def allocate_rows(rows: int, wanted: Sequence[int]) -> list[int]:
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


def visible_count(count: int, rows: int) -> int:
    """Return how many of ``count`` items fit in ``rows``; if not all do, the last row holds the number of the rest."""
    return count if count <= rows else max(0, rows - 1)
