"""``file://`` URIs: the local platform's spelling of an input or output place."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

SCHEME = "file://"


def is_file(uri: str) -> bool:
    """Say whether a URI names a place of this machine."""
    return uri.startswith(SCHEME)


def file_path(uri: str) -> Path:
    """Give the path a ``file://`` URI names; raise ``ValueError`` unless it is absolute.

    The path is taken as it is written, spaces and all. Percent-decoding (as ``Path.as_uri`` needs it) is applied only
    where the decoded path leads deeper into what exists.
    """
    rest = uri[len(SCHEME) :]
    rest = rest[len("localhost") :] if rest.startswith("localhost/") else rest
    if not rest.startswith("/"):
        raise ValueError(f"{uri!r} holds no absolute path; write {SCHEME}/ and the path from the root")
    written, decoded = Path(rest), Path(unquote(rest))
    return decoded if _existing_depth(decoded) > _existing_depth(written) else written


def exists(path: Path) -> bool:
    """Say whether there is something; no for a path that is too long or may not be asked about."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises for those


def _existing_depth(path: Path) -> int:
    return next((len(place.parts) for place in (path, *path.parents) if exists(place)), 0)
