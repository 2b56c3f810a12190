"""Warnings at the line that called this library."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

#: What the paths of the packages begin with.
_HERE = str(Path(__file__).parents[2])
#: The lines at which texts were shown first, and Python's own record of what it showed.
_FIRST_LINES: dict[str, tuple[str, int]] = {}
_SHOWN: dict[str | tuple[str, type[Warning], int], int] = {}


def warn_caller(text: str) -> None:
    """Warn at the line that called this library, however deep; Python shows a text once, whichever lines lead to it."""
    frame = inspect.currentframe()
    while frame and frame.f_back and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("scriptmode", 1)
    file, number = _FIRST_LINES.setdefault(text, line)
    warnings.warn_explicit(text, UserWarning, file, number, registry=_SHOWN)
