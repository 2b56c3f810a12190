"""Files that say what a job is: their text, and what YAML and TOML make of it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scriptmode import SpecError, bounded_yaml

if TYPE_CHECKING:
    from pathlib import Path


def read_text(flag: str, path: Path, kind: str) -> str:
    """Return the text of the file that an option names; raise `SpecError` for one that is unreadable or too large."""
    try:
        content = bounded_yaml.read_yaml(path)
        bounded_yaml.require_size(content)
        return content.decode("utf-8")
    except bounded_yaml.BoundsError as error:
        raise _refused(path, kind, error) from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise SpecError(
            f"{flag} {str(path)!r} is not UTF-8: byte {error.start + 1:,} is {byte:#04x}; save it as UTF-8"
        ) from error
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise SpecError(f"{flag} {str(path)!r} cannot be read: {reason}; name a {kind} file") from error


def parse_toml(path: Path, content: str) -> Any:
    """Read TOML; raise `SpecError` for what is none."""
    # The standard library has it from Python 3.11 on.
    parser = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        return parser.loads(content)
    except (ValueError, RecursionError) as error:
        raise _refused(path, "TOML", error) from error


def parse_yaml(path: Path, content: str) -> Any:
    """Return what YAML holds; raise `SpecError` for what is none, and for what exceeds the bounds of `bounded_yaml`."""
    import yaml as parser

    try:
        return bounded_yaml.load_yaml(content)
    except (parser.YAMLError, ValueError, RecursionError) as error:
        raise _refused(path, "YAML", error) from error


def _refused(path: Path, kind: str, error: Exception) -> SpecError:
    if isinstance(error, RecursionError):
        return SpecError(f"{path} is refused: its values are too deep within one another; make it flatter")
    if isinstance(error, bounded_yaml.RefusedError):
        return SpecError(f"{path} is refused: {error}")
    return SpecError(f"{path} is no {kind}: {' '.join(str(error).split())}; correct it")
