"""Entry points of the installed packages: engines, and verbs of the command line."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class OwnEntryPoint(NamedTuple):
    """An entry point of this package, found without `importlib.metadata`, whose import takes 20 ms."""

    name: str
    value: str

    def load(self) -> object:
        """Return its object."""
        return resolve_name(self.value)


@cache
def entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by their names; it takes 25 to 200 ms."""
    from importlib.metadata import distributions

    points: dict[str, EntryPoint] = {}
    # As an import does, the first of two installations counts.
    for point in (point for package in distributions() for point in package.entry_points if point.group == group):
        points.setdefault(point.name, point)
    return points


def find_entry_point(group: str, name: str) -> EntryPoint | OwnEntryPoint | None:
    """Return an entry point: one of this package before all others, which takes longer."""
    for path in (path for folder in sys.path for path in Path(folder).glob("scriptmode-*.dist-info/entry_points.txt")):
        section = path.read_text(encoding="utf-8").partition(f"[{group}]\n")[2].partition("\n[")[0]
        for known, _, value in (line.partition("=") for line in section.splitlines()):
            if known.strip() == name:
                return OwnEntryPoint(name, value.strip())
    return entry_points(group).get(name)
