"""Entry points of the installed packages: engines, and verbs of the command line."""

from __future__ import annotations

import glob
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@cache
def entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by their names; it takes 25 to 200 ms."""
    from importlib.metadata import distributions

    points: dict[str, EntryPoint] = {}
    # As an import does, the first of two installations counts.
    for point in (point for package in distributions() for point in package.entry_points if point.group == group):
        points.setdefault(point.name, point)
    return points


def find_entry_point(group: str, name: str) -> str:
    """Return the value of an entry point, ``module:object``, one of this package before all others; "" for none."""
    if value := _own_values(group).get(name):
        return value
    point = entry_points(group).get(name)
    return point.value if point else ""


@cache
def _own_values(group: str) -> dict[str, str]:
    """Return the values of this package's entry points, without `importlib.metadata`, whose import takes 20 ms."""
    # glob.glob passes over what this user may not read, as importlib.metadata does.
    names = (os.path.join(glob.escape(folder), "scriptmode-*.dist-info/entry_points.txt") for folder in sys.path)  # noqa: PTH118
    files = (path for name in names for path in glob.glob(name))  # noqa: PTH207
    text = next((Path(path).read_text(encoding="utf-8") for path in files), "")
    pairs = (line.partition("=") for line in text.partition(f"[{group}]\n")[2].partition("\n[")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
