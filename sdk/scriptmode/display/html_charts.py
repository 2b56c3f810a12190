"""Small charts in HTML: a bar of parts, a line of values. Pure."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from scriptmode.display.downsampled_series import scaled_heights

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Size of a line chart, in units of its own view box.
_WIDTH, _HEIGHT = 160, 22
#: Share of a bar that the smallest part has, so that it can be seen.
_LEAST = 0.01


def stacked_bar(parts: Sequence[tuple[str, float, str]], colour: str, shades: Sequence[float]) -> str:
    """Draw parts side by side, each a name, a size and the size as text, in shades of one colour in turn."""
    whole = sum(size for _, size, _ in parts)
    if not whole:
        return ""
    drawn = "".join(
        f'<span title="{escape(f"{name} {said}".strip())}" style="flex:{max(_LEAST, size / whole):.4f} 0 0;'
        f'background:{colour};opacity:{shades[index % len(shades)]}"></span>'
        for index, (name, size, said) in enumerate(parts)
    )
    style = "display:flex;gap:1px;height:6px;border-radius:3px;overflow:hidden;margin:6px 0 2px"
    return f'<div style="{style}">{drawn}</div>'


def line_chart(points: Sequence[float], title: str) -> str:
    """Draw values as a line from left to right, in the colour of the text."""
    if not points:
        return ""
    last = max(1, len(points) - 1)
    coordinates = " ".join(
        f"{1 + index / last * (_WIDTH - 2):.1f},{_HEIGHT - 2 - height * (_HEIGHT - 4):.1f}"
        for index, height in enumerate(scaled_heights(points if len(points) > 1 else [*points, *points]))
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'style="vertical-align:middle;max-width:100%"><title>{escape(title)}</title>'
        f'<polyline points="{coordinates}" fill="none" stroke="currentColor" stroke-width="1.5" opacity=".85"/></svg>'
    )
