"""Show a job's log lines as they come: each with its host before it, coloured on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scriptmode.platforms import LogEvent

#: ANSI foreground colours, one a host in turn: cyan, yellow, green, magenta, blue.
_COLOURS = (36, 33, 32, 35, 34)


def show(events: Iterable[LogEvent], stream: TextIO | None = None) -> None:
    """Write each event as ``host | line``; colours only where ``stream`` is a terminal."""
    out = sys.stdout if stream is None else stream
    coloured = out.isatty()
    seen: dict[str, int] = {}
    for event in events:
        turn = seen.setdefault(event.host, len(seen))
        prefix = f"{event.host} |"
        if coloured:
            prefix = f"\x1b[{_COLOURS[turn % len(_COLOURS)]}m{prefix}\x1b[0m"
        out.write(f"{prefix} {event.message}\n")
        out.flush()
