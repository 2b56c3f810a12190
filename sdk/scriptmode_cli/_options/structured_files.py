"""YAML and TOML files that options name: their text, and the values they contain."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from scriptmode import SpecError


def read_text(option: str, path: Path, kind: str) -> str:
    """Return the text of the file that an option names; raise `SpecError` if it is unreadable.

    ``kind`` is the format that the error asks for, such as ``YAML``.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise SpecError(
            f"{option} {str(path)!r} is not UTF-8: byte {error.start + 1:,} is {byte:#04x}", advice="save it as UTF-8"
        ) from error
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise SpecError(f"{option} {str(path)!r} cannot be read: {reason}", advice=f"name a {kind} file") from error


def parse_toml(path: Path, content: str) -> Any:
    """Parse TOML; raise `SpecError` for invalid TOML."""
    # The standard library has a TOML parser since Python 3.11.
    parser = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        return parser.loads(content)
    except RecursionError as error:
        raise SpecError(f"{path} is refused: its values are nested too deeply", advice="use fewer levels") from error
    except ValueError as error:
        raise SpecError(f"{path} is not valid TOML: {error}", advice="correct the file") from error
