"""How few rows are shared out to what is to be seen. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def allocate_rows(room: int, wants: Sequence[int]) -> list[int]:
    """Share ``room`` rows out to sections by what each wants: one to each in order, then one more to each in turn."""
    given = [0] * len(wants)
    while room > 0:
        hungry = [index for index, want in enumerate(wants) if given[index] < want]
        if not hungry:
            break
        for index in hungry[:room]:
            given[index] += 1
        room -= len(hungry[:room])
    return given


def visible_count(count: int, rows: int) -> int:
    """Give how many of ``count`` things are shown in so many rows, the last of which may say how many are not."""
    return count if count <= rows else max(0, rows - 1)
