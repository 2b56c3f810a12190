"""Draw which package imports which, as SVG pictures for the guide about the architecture.

    python -m tests.house.architecture

The pictures come from the import statements of the SDK and of the runtime alone: the same sources give the same bytes.
The ``<desc>`` of a picture lists its arrows as text.
A solid arrow is an import with its module, a dashed one an import inside a function. An arrow that other arrows imply
is left out (transitive reduction). Arrows lead down; one that would close a circle leads up and is red.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from tests.house import imports, sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PICTURES = sources.ROOT / "sdk" / "docs" / "pictures"
COMMAND = "python -m tests.house.architecture"
#: Modules of the SDK's top level that are drawn, as one box.
TOP = {"estimator": "estimator, job", "job": "estimator, job"}
#: Packages that serve every other, and are not drawn.
EVERYWHERE = ("machine", "text")
#: The runtime's modules that hold values, and those on the path of one call; each group is drawn as one box.
VALUES = {"contract", "errors", "failure", "plan", "cluster", "settings", "variables"}
PATH = {"__main__", "user_code", "supervisor", "report", "preview", "rank", "script_process", "sagemaker_training"}
#: Sizes in pixels: of a character, a box, the space between boxes and between levels.
CHARACTER, HEIGHT, GAP, LEVEL = 7.4, 26, 22, 56
ORDERINGS = 4
Edge = tuple[str, str]


@dataclass
class Graph:
    """Boxes and arrows; ``down`` has no circle, ``up`` are the arrows that would close one; both say which are lazy."""

    boxes: set[str] = field(default_factory=set)
    down: dict[Edge, bool] = field(default_factory=dict)
    up: dict[Edge, bool] = field(default_factory=dict)

    def successors(self, box: str) -> list[str]:
        """Return the boxes that a box has arrows down to."""
        return sorted(end for begin, end in self.down if begin == box)

    def reaches(self, begin: str, end: str) -> bool:
        """Return whether arrows down lead from one box to another."""
        return begin == end or any(self.reaches(each, end) for each in self.successors(begin))

    def reduced(self) -> Graph:
        """Return the graph without the arrows that a longer way of arrows implies."""
        kept = {
            (begin, end): lazy
            for (begin, end), lazy in self.down.items()
            if not any(self.reaches(each, end) for each in self.successors(begin) if each != end)
        }
        return Graph(self.boxes, kept, self.up)

    def levels(self) -> dict[str, int]:
        """Return the level of each box: 0 is lowest, and each arrow down ends on a lower level."""
        found: dict[str, int] = {}

        def level(box: str) -> int:
            if box not in found:
                found[box] = max((level(each) + 1 for each in self.successors(box)), default=0)
            return found[box]

        for box in sorted(self.boxes):
            level(box)
        return found


def sdk_box(module: str) -> str | None:
    """Return the box of a module of either half in the picture of the SDK, or ``None`` if it is not drawn."""
    root, *rest = module.split(".")
    if root == "scriptmode_runtime":
        return root
    # Its packages have boxes of their own.
    rest = rest[1:] if rest[:1] == ["core"] else rest
    if rest[:2] == ["platforms", "local"]:
        return f"local.{rest[2]}" if _is_package("platforms", "local", *rest[2:3]) and rest[2:] else "platforms.local"
    if rest[0:1] == ["platforms"] and rest[1:2] in (["base"], ["registry"], ["sagemaker"], ["slurm"]):
        return ".".join(rest[:2])
    name = rest[0] if rest and rest[0] not in EVERYWHERE else ""
    return name if name and (_is_package(name) or _is_package("core", name)) else TOP.get(name)


def _is_package(*names: str) -> bool:
    return (sources.ROOT / sources.SDK).joinpath(*names).is_dir()


def runtime_box(module: str) -> str | None:
    """Return the box of a module of the runtime in the picture of the runtime, or ``None`` if it is not drawn."""
    root, *rest = module.split(".")
    name = rest[0] if rest else "__init__"
    if root != "scriptmode_runtime" or name == "__init__":
        return None
    if name in PATH:
        return "__main__, supervisor, report"
    return "contract, plan, settings" if name in VALUES else name


PICTURED = {"architecture_sdk.svg": sdk_box, "architecture_runtime.svg": runtime_box}


def packages(picture: str) -> Graph:
    """Return the graph of a picture: first the imports with a module, then the lazy ones that close no circle."""
    box, files, graph = PICTURED[picture], sources.product(), Graph()
    for times, lazy in (((imports.AT_ONCE,), False), ((imports.AT_ONCE, imports.LAZY), True)):
        for begin, ends in sorted(imports.graph(files, when=times).items()):
            for end in sorted(ends):
                _add(graph, box(begin), box(end), lazy=lazy)
    return graph


def _add(graph: Graph, begin: str | None, end: str | None, *, lazy: bool) -> None:
    graph.boxes |= {box for box in (begin, end) if box is not None}
    if begin is None or end is None or begin in (end, "scriptmode_runtime"):
        return
    edge = (begin, end)
    if edge in graph.down or edge in graph.up:
        return
    (graph.up if graph.reaches(end, begin) else graph.down)[edge] = lazy


@dataclass
class Layout:
    """Places of boxes and of the bends of arrows, level by level (Sugiyama's method)."""

    graph: Graph
    rows: list[list[str]] = field(default_factory=list)
    #: The bends of each arrow from its begin to its end, which are in the rows too.
    ways: dict[Edge, list[str]] = field(default_factory=dict)
    x: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        levels = self.graph.levels()
        self.rows = [[] for _ in range(max(levels.values()) + 1)]
        for box in sorted(self.graph.boxes):
            self.rows[levels[box]].append(box)
        for begin, end in sorted(self.graph.down):
            bends = [f"{begin}>{end}@{level}" for level in range(levels[begin] - 1, levels[end], -1)]
            for level, bend in zip(range(levels[begin] - 1, levels[end], -1), bends):
                self.rows[level].append(bend)
            self.ways[begin, end] = [begin, *bends, end]
        self._order()
        self._place()

    def _order(self) -> None:
        """Sort each row by the mean position of the adjacent nodes, to and fro."""
        for turn in range(ORDERINGS):
            indices = range(1, len(self.rows)) if turn % 2 else range(len(self.rows) - 2, -1, -1)
            for index in indices:
                other = self.rows[index - 1 if turn % 2 else index + 1]
                position = {name: place for place, name in enumerate(other)}
                centre = {name: self._mean(name, position) for name in self.rows[index]}
                self.rows[index].sort(key=centre.__getitem__)

    def _mean(self, name: str, position: Mapping[str, float]) -> float:
        near = [position[each] for each in self._adjacent(name) if each in position]
        return sum(near) / len(near) if near else len(position) / 2

    def _adjacent(self, name: str) -> list[str]:
        return [each for segment in self._segments() if name in segment for each in segment if each != name]

    def _segments(self) -> Iterator[tuple[str, str]]:
        for way in self.ways.values():
            yield from zip(way, way[1:])

    def _place(self) -> None:
        """Put the boxes of a row beside each other, each row in the middle."""
        widths = [sum(map(width, row)) + GAP * (len(row) - 1) for row in self.rows]
        for row, length in zip(self.rows, widths):
            at = (max(widths) - length) / 2 + GAP
            for name in row:
                self.x[name] = at + width(name) / 2
                at += width(name) + GAP
        self.width = max(widths) + 2 * GAP
        self.height = LEVEL * (len(self.rows) - 1) + HEIGHT + 2 * GAP

    def y(self, name: str) -> float:
        """Return the middle of a box or bend; the highest level is at the top."""
        level = next(number for number, row in enumerate(self.rows) if name in row)
        return GAP + HEIGHT / 2 + (len(self.rows) - 1 - level) * LEVEL


def width(name: str) -> float:
    """Return the width of a box, or of the bend of an arrow."""
    return 6 if "@" in name else len(name) * CHARACTER + 18


def render(picture: str) -> str:
    """Return the picture as SVG."""
    layout = Layout(packages(picture).reduced())
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}"'
            f' width="{layout.width:.0f}" height="{layout.height:.0f}" font-family="monospace" font-size="12" role="img">'
        ),
        f"<!-- Drawn by: {COMMAND} -->",
        "<title>Imports between packages</title>",
        f"<desc>{escape(describe(layout.graph))}</desc>",
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>'
        ),
        f'<rect width="{layout.width:.0f}" height="{layout.height:.0f}" fill="white"/>',
    ]
    down, up = sorted(layout.graph.down.items()), sorted(layout.graph.up.items())
    parts += [_arrow(layout, layout.ways[edge], "#667788", lazy=lazy) for edge, lazy in down]
    parts += [_arrow(layout, list(edge), "#cc3333", lazy=lazy) for edge, lazy in up]
    parts += [_box(layout, name) for name in sorted(layout.graph.boxes)]
    return "\n".join((*parts, "</svg>", ""))


def describe(graph: Graph) -> str:
    """Return the arrows as text, a line for each box."""
    arrows = {**graph.down, **graph.up}
    lines = []
    for box in sorted(graph.boxes):
        ends = [
            f"[{end}]{' inside a function' if lazy else ''}{' (closes a circle)' if (begin, end) in graph.up else ''}"
            for (begin, end), lazy in sorted(arrows.items())
            if begin == box
        ]
        if ends:
            lines.append(f"[{box}] imports {'; '.join(ends)}.")
    return "\n".join(lines)


def _arrow(layout: Layout, way: list[str], colour: str, *, lazy: bool) -> str:
    sign = 1 if layout.y(way[-1]) > layout.y(way[0]) else -1
    # An arrow up is drawn beside one that leads down between the same boxes.
    aside = 0 if sign > 0 else 12
    points = [(layout.x[name] + aside, layout.y(name)) for name in way]
    points[0] = (points[0][0], points[0][1] + sign * HEIGHT / 2)
    points[-1] = (points[-1][0], points[-1][1] - sign * HEIGHT / 2)
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        middle = (y0 + y1) / 2
        path += f"C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} {x1:.0f} {y1:.0f}"
    dashes = ' stroke-dasharray="4 3"' if lazy else ""
    return f'<path d="{path}" fill="none" stroke="{colour}"{dashes} marker-end="url(#tip)"/>'


def _box(layout: Layout, name: str) -> str:
    x, y, length = layout.x[name], layout.y(name), width(name)
    return (
        f'<rect x="{x - length / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{length:.0f}" height="{HEIGHT}" rx="5"'
        f' fill="#eef3f8" stroke="#446688"/><text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">{escape(name)}</text>'
    )


def main(folder: Path = PICTURES) -> None:
    """Write the pictures."""
    for picture in PICTURED:
        (folder / picture).write_text(render(picture), encoding="utf-8")


if __name__ == "__main__":
    main()
