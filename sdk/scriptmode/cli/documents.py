"""Files that say what a job is: their text, and what YAML and TOML make of it."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scriptmode import SpecError

if TYPE_CHECKING:
    from pathlib import Path


def text(flag: str, path: Path, kind: str) -> str:
    """Read the file that an option names; raise `SpecError` for one that cannot be read as text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SpecError(f"{flag} {str(path)!r} cannot be read: {error}; name a {kind} file") from error


def toml(path: Path, content: str) -> Any:
    """Read TOML; raise `SpecError` for what is none."""
    # The standard library has it from Python 3.11 on.
    parser = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        return parser.loads(content)
    except (ValueError, RecursionError) as error:
        raise _refused(path, "TOML", error) from error


def yaml(path: Path, content: str) -> Any:
    """Read YAML; raise `SpecError` for what is none, and for an alias inside of what it stands for."""
    import yaml as parser

    try:
        found = parser.safe_load(content)
        # An alias may stand within its own anchor; nothing that comes after could carry that.
        json.dumps(found, default=str, skipkeys=True)
    except (parser.YAMLError, ValueError, RecursionError) as error:
        raise _refused(path, "YAML", error) from error
    return found


def _refused(path: Path, kind: str, error: Exception) -> SpecError:
    if isinstance(error, RecursionError) or "Circular" in str(error):
        return SpecError(f"{path} has values too deep within one another; make it flatter")
    return SpecError(f"{path} is no {kind}: {' '.join(str(error).split())}; correct it")
