"""YAML and TOML files: their text, and the values they contain."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scriptmode import SpecError, bounded_yaml

if TYPE_CHECKING:
    from pathlib import Path


def read_text(option: str, path: Path, kind: str) -> str:
    """Return the text of the file that an option names; raise `SpecError` if it is unreadable or too large.

    ``kind`` is the format that the error asks for, such as ``YAML``.
    """
    try:
        content = bounded_yaml.read_yaml(path)
        bounded_yaml.require_size(content)
        return content.decode("utf-8")
    except bounded_yaml.BoundsError as error:
        raise _parse_error(path, kind, error) from error
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
    except (ValueError, RecursionError) as error:
        raise _parse_error(path, "TOML", error) from error


def parse_yaml(path: Path, content: str) -> Any:
    """Parse YAML; raise `SpecError` for invalid YAML, and for YAML that exceeds the bounds of `bounded_yaml`."""
    import yaml as parser

    try:
        return bounded_yaml.load_yaml(content)
    except (parser.YAMLError, ValueError, RecursionError) as error:
        raise _parse_error(path, "YAML", error) from error


def _parse_error(path: Path, kind: str, error: Exception) -> SpecError:
    if isinstance(error, RecursionError):
        return SpecError(f"{path} is refused: its values are nested too deeply", advice="use fewer levels")
    if isinstance(error, bounded_yaml.RefusedError):
        return SpecError(f"{path} is refused: {error.message}", advice=error.advice)
    return SpecError(f"{path} is not valid {kind}: {bounded_yaml.syntax_error_text(error)}", advice="correct it")
