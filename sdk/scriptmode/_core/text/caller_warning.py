"""Warnings at the line that called this library."""

from __future__ import annotations

import inspect
import re
import warnings
from pathlib import Path

#: The packages of this library, and its pytest plugin.
_OWN = re.compile(rf"{re.escape(str(Path(__file__).parents[2]))}(_pytest\.py|(_(cli|kubernetes|local|serve|slurm))?/)")


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this library, however deep."""
    frame, level = inspect.currentframe(), 1
    while frame and frame.f_back and _OWN.match(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
