"""Parse ``file://`` URIs: inputs and outputs of jobs on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from scriptmode.errors import DataError
from scriptmode_runtime import contract

SCHEME = "file://"


def is_file(uri: str) -> bool:
    """Return whether a URI has the scheme ``file://``."""
    return uri.startswith(SCHEME)


def file_path(uri: str) -> Path:
    """Return the path of a ``file://`` URI; raise `DataError` unless it is absolute, and can be one.

    The path is taken as it is written, spaces and bytes that are not UTF-8 (as `os.fsdecode` returns them) and all.
    Percent-decoding (as ``Path.as_uri`` needs it) is applied only where the decoded path leads deeper into what exists.
    """
    rest = uri[len(SCHEME) :]
    rest = rest[len("localhost") :] if rest.startswith("localhost/") else rest
    if not rest.startswith("/"):
        raise DataError(f"{uri!r} has no absolute path", f"write {SCHEME}/ and the path from the root")
    if problem := contract.text_problem(rest, encoding_errors="surrogateescape"):
        raise DataError(f"{uri!r} {problem}, which no path has", "correct it")
    written, decoded = Path(rest), Path(unquote(rest))
    return decoded if _existing_depth(decoded) > _existing_depth(written) else written


def exists(path: Path) -> bool:
    """Return whether a path exists; False for one that is too long or whose directory may not be searched."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises for those


def _existing_depth(path: Path) -> int:
    return next((len(parent.parts) for parent in (path, *path.parents) if exists(parent)), 0)
