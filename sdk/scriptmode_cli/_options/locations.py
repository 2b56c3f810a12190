"""Locations as they are typed: a URI, or a path of this machine, which becomes a ``file://`` URI for local jobs."""

from __future__ import annotations

import os
from pathlib import Path

from scriptmode import SpecError
from scriptmode._core.text.messages import did_you_mean_path

_FILE = "file://"


def location_uri(what: str, text: str, *, is_local: bool, exists: bool = False) -> str:
    """Return a remote URI unchanged, and a path of this machine as the URI of its absolute path.

    ``what`` names the option in errors. Raises `SpecError` for a location that the platform cannot use, and with
    ``exists`` for a path that does not exist.
    """
    path = text.removeprefix(_FILE)
    if "://" in path:
        return text
    scheme, colon, rest = path.partition(":")
    if colon and scheme in ("s3", "file"):
        step = f"write {scheme}://{'/' * (scheme == 'file')}{rest.lstrip('/')}, or ./{path} for a path"
        raise SpecError(f"{what} {text!r} is no URI", advice=step)
    if not is_local or not path:
        needed = "an s3:// URI" + (", or a directory of this machine" if is_local else ", which Amazon SageMaker needs")
        raise SpecError(f"{what} {text!r} is not {needed}", advice="write s3://bucket/prefix")
    absolute = Path(os.path.expanduser(path)).absolute()  # noqa: PTH111 - it raises no error
    if exists and not os.path.lexists(absolute):
        step = did_you_mean_path(absolute) or "correct the path, or create it"
        raise SpecError(f"{what} {text!r}: there is no file or directory {str(absolute)!r}", advice=step)
    return f"{_FILE}{absolute}"
