"""What a path that is not there was probably meant to be."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def near(path: Path) -> str:
    """Say what of the same kind of name is there: ``; did you mean 'x'?``; "" where nothing is.

    The last part of the path that is not there is the one that is looked for, in the folder before it.
    """
    import difflib

    for place in (path, *path.parents):
        if not place.parent.is_dir():
            continue
        with suppress(OSError):
            close = difflib.get_close_matches(place.name, sorted(each.name for each in place.parent.iterdir()), n=1)
            if not close or place.exists():
                return ""
            meant = close[0] if place == path else str(place.with_name(close[0]))
            return f"; did you mean {meant!r}?"
    return ""
