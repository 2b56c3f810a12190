"""Draw what a terminal showed as an animated SVG: one frame after another, without scripts and without web fonts."""  # noqa: INP001 - a module of screens.py, no package

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A character cell and the border around the screen, in pixels, with the font size that fits the cell.
CELL_WIDTH, CELL_HEIGHT, BORDER, FONT_SIZE = 8.4, 19, 14, 14
BACKGROUND, FOREGROUND = "#0d1117", "#e6edf3"
#: ECMA-48's colours by pyte's names ("brown" is yellow), readable on the background.
COLOURS = {
    "black": "#6e7681", "red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341", "blue": "#79c0ff",
    "magenta": "#d2a8ff", "cyan": "#76e3ea", "white": "#e6edf3",
}  # fmt: skip
#: Seconds that the last frame stays before the animation starts again.
LAST = 4.0

#: Text of one style within a line: its first column, the text, the colour, and whether it is bold.
Run = tuple[int, str, str, bool]
#: A line of a frame, and a frame: lines from top to bottom.
Line = tuple[Run, ...]


@dataclass(frozen=True)
class Frame:
    """What the screen showed, and for how many seconds."""

    lines: tuple[Line, ...]
    seconds: float


def capture_lines(screen: object) -> tuple[Line, ...]:
    """Return the lines of a `pyte.Screen` with their colours."""
    buffer, rows, columns = screen.buffer, screen.lines, screen.columns  # type: ignore[attr-defined] # pyte has no types
    return tuple(_runs([buffer[row][column] for column in range(columns)]) for row in range(rows))


def _runs(cells: Sequence[object]) -> Line:
    """Return the runs of equal style in a line, without the blank ones."""
    runs: list[Run] = []
    column = 0
    for (colour, bold), group in groupby(cells, key=lambda cell: (cell.fg, cell.bold)):  # type: ignore[attr-defined]
        text = "".join(cell.data for cell in group)  # type: ignore[attr-defined]
        if text.strip():
            runs.append((column, text.rstrip(), colour, bold))
        column += len(text)
    return tuple(runs)


def animate(frames: Sequence[Frame], columns: int, title: str) -> str:
    """Return the SVG: all frames below each other in a window that shows one at a time, in an endless loop.

    Equal lines are stored once. With ``prefers-reduced-motion`` the last frame stands still.

    Args:
        frames: What was shown, in order. All have the same number of lines.
        columns: The width of the terminal.
        title: The text for those who cannot see the picture.
    """
    rows = len(frames[0].lines)
    width, height = columns * CELL_WIDTH + 2 * BORDER, rows * CELL_HEIGHT + 2 * BORDER
    step = rows * CELL_HEIGHT
    names: dict[Line, str] = {}
    strip = []
    for index, frame in enumerate(frames):
        for row, line in enumerate(frame.lines):
            if line:
                name = names.setdefault(line, f"l{len(names)}")
                strip.append(f'<use href="#{name}" y="{index * step + row * CELL_HEIGHT}"/>')
    lines = [f'<text id="{name}">{_spans(line)}</text>' for line, name in names.items()]
    total = sum(frame.seconds for frame in frames)
    last = f"translateY(-{(len(frames) - 1) * step}px)"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>text {{ font: {FONT_SIZE}px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace;",
            f"  fill: {FOREGROUND}; white-space: pre }}",
            f".strip {{ animation: play {total:g}s steps(1, end) infinite }}",
            f"@keyframes play {{ {_keyframes(frames, step, total)} }}",
            f"@media (prefers-reduced-motion: reduce) {{ .strip {{ animation: none; transform: {last} }} }}</style>",
            "<defs>",
            *lines,
            "</defs>",
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
            f'<svg x="{BORDER}" y="{BORDER}" width="{columns * CELL_WIDTH:g}" height="{step}"><g class="strip">',
            *strip,
            "</g></svg>",
            "</svg>",
            "",
        ]
    )


def _spans(line: Line) -> str:
    """Return the SVG of a line; every run says its position, because fonts differ in width."""
    return "".join(
        f'<tspan x="{column * CELL_WIDTH:g}" y="{FONT_SIZE}" textLength="{len(text) * CELL_WIDTH:g}"'
        f"{_style(colour, bold=bold)}>{escape(text)}</tspan>"
        for column, text, colour, bold in line
    )


def _style(colour: str, *, bold: bool) -> str:
    fill = COLOURS.get(colour.removeprefix("bright"))
    return (f' fill="{fill}"' if fill else "") + (' font-weight="bold"' if bold else "")


def _keyframes(frames: Sequence[Frame], step: int, total: float) -> str:
    shown, start = [], 0.0
    for index, frame in enumerate(frames):
        shown.append(f"{100 * start / total:.2f}% {{ transform: translateY(-{index * step}px) }}")
        start += frame.seconds
    return " ".join(shown)
