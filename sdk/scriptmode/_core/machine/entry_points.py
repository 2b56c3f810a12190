"""Entry points of the installed packages: engines, and verbs of the command line."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, distributions


@cache
def entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by their names; it takes 25 to 200 ms."""
    points: dict[str, EntryPoint] = {}
    # As an import does, the first of two installations counts.
    for point in (point for package in distributions() for point in package.entry_points if point.group == group):
        points.setdefault(point.name, point)
    return points


def find_entry_point(group: str, name: str) -> EntryPoint | None:
    """Return an entry point: one of this package before all others, which takes longer."""
    with suppress(PackageNotFoundError):
        for point in distribution("scriptmode").entry_points:
            if (point.group, point.name) == (group, name):
                return point
    return entry_points(group).get(name)
