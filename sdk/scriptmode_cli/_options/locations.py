"""Locations as they are typed: a URI, or a path of this machine, which becomes a ``file://`` URI for local jobs."""

from __future__ import annotations

import os
from pathlib import Path

from scriptmode import SpecError
from scriptmode._core.text.messages import did_you_mean_path

_FILE = "file://"


def location_uri(what: str, text: str, *, is_local: bool) -> str:
    """Return a remote URI unchanged, and a path of this machine as the URI of its absolute path.

    ``what`` names the option in errors. Raises `SpecError` for a location that the platform cannot use.
    """
    path = text.removeprefix(_FILE)
    if "://" in path:
        return text
    scheme, colon, rest = path.replace("//", ":", 1).partition(":")
    if colon and scheme in ("s3", "file"):
        step = f"write {scheme}://{'/' * (scheme == 'file')}{rest.lstrip(':/')}, or ./{path} for a path"
        raise SpecError(f"{what} {text!r} is no URI", advice=step)
    if not is_local or not path:
        needed = "an s3:// URI" + (", or a directory of this machine" if is_local else ", which Amazon SageMaker needs")
        raise SpecError(f"{what} {text!r} is not {needed}", advice="write s3://bucket/prefix")
    return f"{_FILE}{Path(os.path.expanduser(path)).absolute()}"  # noqa: PTH111 - it raises no error


def existing_location_uri(what: str, text: str, *, is_local: bool) -> str:
    """Return the result of `location_uri`; raise `SpecError` also for a path of this machine that does not exist."""
    uri = location_uri(what, text, is_local=is_local)
    path = uri.removeprefix(_FILE)
    if path != uri and not os.path.lexists(path):
        step = did_you_mean_path(Path(path)) or "correct the path, or create it"
        raise SpecError(f"{what} {text!r}: there is no file or directory {path!r}", advice=step)
    return uri
