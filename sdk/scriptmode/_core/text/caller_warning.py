"""Warnings at the line that called this library."""

from __future__ import annotations

import inspect
import re
import warnings
from pathlib import Path
from typing import Any

#: The packages of this library, and its pytest plugin.
_OWN = re.compile(rf"{re.escape(str(Path(__file__).parents[2]))}(_pytest\.py|(_(cli|kubernetes|local|serve|slurm))?/)")
#: The lines at which texts were shown first, and Python's own record of what it showed.
_FIRST_LINES: dict[str, tuple[str, int]] = {}
_SHOWN: dict[str | tuple[str, type[Warning], int], int] = {}


def warn_caller(text: str) -> None:
    """Warn at the line that called this library, however deep; Python shows a text once, whichever lines lead to it."""
    frame, _ = _find_caller()
    line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("scriptmode", 1)
    file, number = _FIRST_LINES.setdefault(text, line)
    warnings.warn_explicit(text, UserWarning, file, number, registry=_SHOWN)


def caller_level() -> int:
    """Return the ``stacklevel`` with which a warning of the caller is at the line that `warn_caller` has."""
    return _find_caller()[1] - 1


def _find_caller() -> tuple[Any, int]:
    """Return the frame that called this library, and how many frames are below it."""
    frame, level = inspect.currentframe(), 0
    while frame and frame.f_back and _OWN.match(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return frame, level
