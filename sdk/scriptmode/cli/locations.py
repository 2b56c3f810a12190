"""Locations as they are typed: a URI, or a path of this machine, which becomes a ``file://`` URI for local jobs."""

from __future__ import annotations

import os
from pathlib import Path

from scriptmode import SpecError
from scriptmode.core.text.messages import did_you_mean_path

_FILE = "file://"


def resolve_location(what: str, text: str, *, is_local: bool, base: Path | None = None) -> str:
    """Return a remote URI unchanged, and a path of this machine as an absolute path.

    Relative paths begin at ``base``, by default the current directory. ``what`` names the option or key in errors.
    Raises `SpecError` for a location that the platform cannot use.
    """
    if text.startswith("gs://"):
        raise SpecError(
            f"{what} {text!r} is in Google Cloud Storage, which no platform here can read",
            advice="write an s3:// URI" + (", or a directory of this machine" if is_local else ""),
        )
    if "://" in text and not text.startswith(_FILE):
        return text
    if text.lower().startswith("s3:"):
        raise SpecError(f"{what} is {text!r}", advice=f"write s3://{text[3:].lstrip('/')}")
    if not is_local:
        raise SpecError(
            f"{what} {text!r} is not in S3, which Amazon SageMaker needs", advice="write s3://bucket/prefix"
        )
    if not text.removeprefix(_FILE):
        raise SpecError(f"{what} {text!r} does not name a directory", advice="write s3://bucket/prefix, or a directory")
    try:
        return str(((base or Path()) / Path(text.removeprefix(_FILE)).expanduser()).absolute())
    except RuntimeError as error:
        raise SpecError(
            f"{what} {text!r} begins with a home directory that cannot be determined", advice="write an absolute path"
        ) from error


def location_uri(what: str, text: str, *, is_local: bool, base: Path | None = None) -> str:
    """Return the result of `resolve_location` as a URI."""
    found = resolve_location(what, text, is_local=is_local, base=base)
    return found if "://" in found else f"{_FILE}{found}"


def existing_location_uri(what: str, text: str, *, is_local: bool, base: Path | None = None) -> str:
    """Return the result of `location_uri`; raise `SpecError` also for a path of this machine that does not exist."""
    found = location_uri(what, text, is_local=is_local, base=base)
    path = found.removeprefix(_FILE)
    if path != found and not os.path.lexists(path):
        step = did_you_mean_path(Path(path)) or "correct the path, or create it"
        raise SpecError(f"{what} {text!r}: there is no file or directory {path!r}", advice=step)
    return found
